"""The OpenAPI document: what FastAPI knows about the routes, in words and an order for readers.

The docstring of a route is its documentation: the first paragraph is the summary of the operation,
the rest its description. docs/reference/http-api.md is generated from this document too.
"""

import re
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from treadle.api import problems
from treadle.api.auth import OPEN_PATHS
from treadle.api.bodies import BODIES

# The statuses with which the middlewares may answer any request.
EVERYWHERE = (400, 401, 403, 408, 413, 414, 415, 422, 429, 431, 503)
# The groups of operations, in the order in which they are shown: /v1 first.
TAGS = {
    "tasks": "Enqueue tasks, follow them, cancel, retry and fork them.",
    "claims": "Claim tasks, work on them and end them.",
    "agents": "Agents, which register before they claim tasks.",
    "dags": "Tasks that depend on each other, created and managed together.",
    "waits": "Questions and approvals that tasks wait for.",
    "events": "What happened: lists, the stream, and events of your own.",
    "dead letters": "Tasks that failed for good and need a decision.",
    "schedules": "Tasks and DAGs that are created at fixed times.",
    "triggers": "Tasks and DAGs that are created when an event happens.",
    "webhooks": "Events that are sent to other servers, and calls that come from them.",
    "queues": "Queues: settings, depth, order and pauses.",
    "types": "Types of tasks: settings and pauses.",
    "gates": "Rate limits, and keys that can be closed for a while.",
    "breakers": "Circuit breakers, which stop a type after repeated failures.",
    "concurrency keys": "How many tasks of a key may run at once.",
    "budgets": "Limits of spending, and what was spent.",
    "artifacts": "Files of tasks.",
    "history": "Tasks that were archived.",
    "retention": "How long data is kept.",
    "harness": "Actions of the harness, and the agents that it nudges.",
    "work API": "Work items, for dispatchers.",
    "projects": "Projects of work items and tasks.",
    "queue API": "Prompts that are sent to agents.",
    "harness protocol": "Tasks of agents that decide what the harness does.",
    "health": "Whether the process runs and is ready.",
}
TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token from `treadle tokens create`. Each operation names the scope it needs.",
}

# Examples of request bodies, by the name of the model. They work on a new database as they are,
# once the objects that they name exist. The tests send all of them, with the ids of real objects
# for CLAIM_TOKEN, TASK_ID, WAIT_ID and EVENT_ID.
CLAIM_TOKEN = "0b7c3a52-4f1e-4a86-9d0b-6a4f2c9e8d17"
TASK_ID = "0198f3c2-7d1e-7b2a-9c3d-4e5f60718293"
WAIT_ID = "0198f3c2-9a40-7c11-8f02-3b1d5e7a9c64"
EVENT_ID = 4711
AGENT = "coder-1"
AGENT_URL = "http://localhost:9000"

_TASK = {"type": "code", "spec": {"repository": "shop", "issue": 12}, "priority": 20}
_CALL = {
    "call_id": "draft-1",
    "usd": 0.04,
    "model": "sonnet",
    "input_tokens": 5200,
    "output_tokens": 800,
}
_PROMPT = {"prompt": "Fix the tests", "model": "sonnet", "timeout_seconds": 1800}

EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "NewTask": [_TASK],
    "NewTasks": [{"tasks": [_TASK, {"type": "test", "spec": {"repository": "shop"}}]}],
    "Bulk": [
        {
            "action": "cancel",
            "filter": {"queue": "default", "created_before": "2h"},
            "dry_run": True,
        }
    ],
    "SetPriority": [{"tier": "high", "reason": "a customer waits for it"}],
    "CancelTask": [{"reason": "the issue was closed"}],
    "RetryTask": [{"changes": {"timeout_s": 600}, "note": "it needs more time"}],
    "ForkTask": [{"from_step": "draft", "changes": {"priority": 10}}],
    "ClaimTasks": [{"agent": AGENT, "queues": ["default"], "limit": 1}],
    "Token": [{"token": CLAIM_TOKEN}],
    "Heartbeat": [{"token": CLAIM_TOKEN, "progress": {"done": 3, "of": 10}}],
    "HeartbeatMany": [{"claims": [{"id": TASK_ID, "token": CLAIM_TOKEN}]}],
    "Complete": [{"token": CLAIM_TOKEN, "output": {"pull_request": 34}}],
    "CompleteMany": [
        {"claims": [{"id": TASK_ID, "token": CLAIM_TOKEN, "output": {"pull_request": 34}}]}
    ],
    "Fail": [{"token": CLAIM_TOKEN, "error": "the tests failed", "failure_class": "transient"}],
    "SaveStep": [{"token": CLAIM_TOKEN, "name": "draft", "output": {"files": 2}, "calls": [_CALL]}],
    "Spend": [{"token": CLAIM_TOKEN, "calls": [_CALL]}],
    "Reserve": [{"token": CLAIM_TOKEN, "usd": 0.5}],
    "Ask": [
        {
            "token": CLAIM_TOKEN,
            "name": "merge",
            "question": "May I merge this?",
            "options": ["yes", "no"],
        }
    ],
    "Suspend": [{"token": CLAIM_TOKEN, "waits": [WAIT_ID]}],
    "Spawn": [
        {
            "token": CLAIM_TOKEN,
            "name": "checks",
            "tasks": [{"name": "test", "type": "test"}, {"name": "review", "type": "review"}],
        }
    ],
    "LinkArtifact": [
        {
            "token": CLAIM_TOKEN,
            "name": "report.md",
            "uri": "https://example.org/reports/12.md",
            "media_type": "text/markdown",
        }
    ],
    "Agent": [{"queues": ["default"], "capabilities": ["python"], "max_concurrent_tasks": 2}],
    "AgentStatus": [{"status": "draining"}],
    "Plan": [
        {
            "name": "Build landing page",
            "tasks": [
                {"name": "research", "type": "research", "spec": {"topic": "rivals"}},
                {"name": "build", "type": "code", "after": ["research"]},
            ],
        }
    ],
    "Reason": [{"reason": "maintenance until 14:00"}],
    "Note": [{"note": "the cause is fixed"}],
    "Answer": [{"value": "yes", "note": "looks good"}],
    "NewEvent": [{"event": "invoice.paid", "key": "invoice-42", "payload": {"amount_usd": 120}}],
    "Resolve": [{"resolution": "retry", "note": "the service is back"}],
    "ResolveMany": [{"resolution": "retry", "filter": {"type": "code", "dead_after": "1d"}}],
    "ScheduleSettings": [
        {
            "cron": "0 7 * * 1-5",
            "timezone": "Europe/Berlin",
            "task": {"type": "research", "spec": {"topic": "news"}},
        }
    ],
    "TriggerSettings": [
        {
            "on": "invoice.paid",
            "task": {"type": "code", "spec": {"invoice": {"$event": "key"}}},
            "max_per_hour": 100,
        }
    ],
    "Sample": [{"sample": {"kind": "invoice.paid", "key": "invoice-42"}}],
    "Fire": [{"event_id": EVENT_ID}],
    "WebhookSettings": [
        {"url": "https://example.org/hooks/treadle", "kinds": ["task.dead_lettered"]}
    ],
    "Rotate": [{"keep_s": 3600}],
    "QueueSettings": [{"max_depth": 10_000, "max_attempts": 5, "keep_completed_s": 604_800}],
    "TypeSettings": [
        {
            "description": "Write or change code",
            "timeout_s": 1800,
            "retry": {"strategy": "exponential", "initial_delay_s": 5},
        }
    ],
    "GateSettings": [{"limit": 60, "per_s": 60, "unit": "starts"}],
    "Close": [{"seconds": 300, "reason": "the provider is down"}],
    "Trip": [{"seconds": 300, "reason": "a bad release"}],
    "ConcurrencyLimit": [{"limit": 2}],
    "BudgetSettings": [
        {"scope": "type", "key": "code", "period": "day", "limit_usd": 50, "on_exhausted": "ask"}
    ],
    "RetentionAge": [{"keep_s": 2_592_000}],
    "Nudge": [{"agent_url": AGENT_URL, "allow_private": True}],
    "NewWork": [
        {
            "type": "code_review",
            "description": "Review PR #3 in shopping-list-api",
            "payload": {"pr": 3, "repo": "shopping-list-api"},
            "priority": 2,
            "assigned_agent": "steve-w",
        }
    ],
    "WorkChange": [
        {"status": "dispatched", "assigned_agent": "steve-w"},
        {"status": "in_progress"},
        {"status": "completed", "outcome": "success", "notes": "merged to main"},
    ],
    "NewProject": [{"name": "Shopping List API", "external_ref": "todoist:123"}],
    "ProjectChange": [{"name": "Shopping List"}],
    "Prompt": [_PROMPT],
    "Submission": [{**_PROMPT, "source": "scheduler"}],
    "NewHarnessTask": [{"agent_url": AGENT_URL, "payload": {"event": "push", "branch": "main"}}],
    "NextTask": [{"agent_url": AGENT_URL, "claim_token": CLAIM_TOKEN}],
    "HarnessHeartbeat": [{"claim_token": CLAIM_TOKEN}],
    "Decided-Input": [{"claim_token": CLAIM_TOKEN, "decision": {"action": "comment"}}],
    "Failure": [{"claim_token": CLAIM_TOKEN, "error": "the model did not answer"}],
    "Hint": [{"task_id": TASK_ID}],
}


def document_of(app: FastAPI) -> dict[str, Any]:
    """The document of an application, which is made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        models: list[type[BaseModel]] = [problems.Problem, *BODIES]
        for model in models:
            shape = model.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(shape.pop("$defs", {}))
            schemas[model.__name__] = shape
        for name, examples in EXAMPLES.items():
            schemas[name]["examples"] = examples
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        document["tags"] = [{"name": name, "description": TAGS[name]} for name in TAGS]
        document["paths"] = _in_order(document["paths"])
        _add_everywhere(document, _scopes(app))
        app.openapi_schema = document
    return app.openapi_schema


def _in_order(paths: dict[str, Any]) -> dict[str, Any]:
    """The paths by their tags; in the order of the routes, the most used ones are first."""
    tags = list(TAGS)

    def place(item: tuple[str, Any]) -> tuple[int, str]:
        path, operations = item
        return min(tags.index(each["tags"][0]) for each in operations.values()), path

    return dict(sorted(paths.items(), key=place))


def _scopes(app: FastAPI) -> dict[tuple[str, str], str]:
    """The scope that an operation needs, by method and path; absent where it needs none."""
    return {
        (method.lower(), re.sub(r":\w+\}", "}", path)): needs.scope
        for method, path, needs in app.state.needs
        if needs is not None and needs.scope is not None
    }


def _add_everywhere(document: dict[str, Any], scopes: dict[tuple[str, str], str]) -> None:
    """Add its summary, the responses of the middlewares, and its scope to every operation."""
    components = document["components"]
    components["securitySchemes"] = {"token": TOKEN}
    components["responses"] = {
        f"Problem{status}": answer for status, answer in problems.answers(*EVERYWHERE, 404).items()
    }
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            summary, _, rest = operation["description"].partition("\n\n")
            operation["summary"] = summary.removesuffix(".")
            operation["description"] = rest
            own = operation["responses"]
            # FastAPI documents its own format of validation errors.
            own.pop("422", None)
            # A path parameter with a slash or a line break matches no route.
            for status in (*EVERYWHERE, *((404,) if "{" in path else ())):
                own.setdefault(str(status), {"$ref": f"#/components/responses/Problem{status}"})
            if path not in OPEN_PATHS:
                operation["security"] = [{"token": [scopes[method, path]]}]
