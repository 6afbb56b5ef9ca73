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
from treadle.api.examples import EXAMPLES

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
