"""Examples of request bodies for the OpenAPI document, by the name of the model.

They work on a new database as they are, once the objects that they name exist. The tests send all
of them, with the ids of real objects for `CLAIM_TOKEN`, `TASK_ID`, `WAIT_ID` and `EVENT_ID`.
"""

from typing import Any

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
    "Submission": [{**_PROMPT, "source": "scheduler", "source_job": "nightly"}],
    "NewHarnessTask": [{"agent_url": AGENT_URL, "payload": {"event": "push", "branch": "main"}}],
    "NextTask": [{"agent_url": AGENT_URL, "claim_token": CLAIM_TOKEN}],
    "HarnessHeartbeat": [{"claim_token": CLAIM_TOKEN}],
    "Decided-Input": [{"claim_token": CLAIM_TOKEN, "decision": {"action": "comment"}}],
    "Failure": [{"claim_token": CLAIM_TOKEN, "error": "the model did not answer"}],
    "Hint": [{"task_id": TASK_ID}],
}
