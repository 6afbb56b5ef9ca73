"""The OpenAPI document is written for readers: summaries, scopes, and examples that work."""

import json
import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests import http_reference
from tests.drivers.http import harness
from tests.drivers.http.servers import Conn
from tests.drivers.http.v1 import act, enqueue, register, take
from treadle.api.openapi import (
    AGENT,
    AGENT_URL,
    CLAIM_TOKEN,
    EVENT_ID,
    TAGS,
    TASK_ID,
    WAIT_ID,
)

# Any JSON is accepted here.
FREE = "/v1/webhooks/in/{name}"
NAME = "nightly"
Json = dict[str, Any]
# The path parameters, and what stands for the placeholders of an example.
Values = dict[str, Any]


@pytest.fixture(scope="module")
def document() -> Json:
    return http_reference.document()


def operations_of(document: Json) -> list[tuple[str, str, Json]]:
    """Method, path and description of every operation."""
    return [
        (method, path, operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


@pytest.mark.requirement("F28")
def test_every_operation_has_a_summary_and_a_description(document: Json) -> None:
    operations = operations_of(document)
    wrong = {
        f"{method} {path}": operation["summary"]
        for method, path, operation in operations
        if not re.fullmatch(r"[A-Z][^.;:\n]{7,59}", operation["summary"])
        # FastAPI's own summary: the words of the function, each with a capital letter.
        or operation["summary"].istitle()
        or not re.fullmatch(r"(?s)[A-Z`].*\.", operation["description"])
    }

    assert len(operations) > 100
    assert wrong == {}


@pytest.mark.requirement("F28")
def test_operations_of_v1_come_first_and_each_has_one_tag(document: Json) -> None:
    shown = [path for path in document["paths"] if path.startswith("/v1/")]

    assert list(document["paths"])[: len(shown)] == shown
    assert shown[0] == "/v1/tasks"
    tags = [operation["tags"] for _, _, operation in operations_of(document)]
    assert {len(each) for each in tags} == {1}
    assert list(dict.fromkeys(tag for [tag] in tags)) == list(TAGS)
    assert [tag["name"] for tag in document["tags"]] == list(TAGS)


@pytest.mark.requirement("F28")
def test_the_reference_page_is_up_to_date_and_has_a_table_for_each_tag(
    document: Json,
) -> None:
    page = http_reference.PAGE.read_text(encoding="utf-8")

    assert page == http_reference.write(page, document), "run: make http-reference"
    assert http_reference.MARKS.findall(page) == list(TAGS)


def examples(document: Json) -> list[tuple[str, str, list[Json]]]:
    """The examples of each operation with a body."""
    found = []
    schemas = document["components"]["schemas"]
    for method, path, operation in operations_of(document):
        for content in operation.get("requestBody", {}).get("content", {}).values():
            schema = content["schema"]
            name = schema.get("anyOf", [schema])[0].get("$ref", "").rpartition("/")[2]
            found.append((method, path, schemas.get(name, {}).get("examples", [])))
    return found


@pytest.mark.requirement("F28")
def test_every_example_of_a_body_works(document: Json, http: httpx2.Client, sql: Conn) -> None:
    said = [each for each in examples(document) if each[1] != FREE]
    register(http, AGENT, queues=["default"])
    failed = {}
    for method, path, bodies in said:
        values = seed(http, sql, path)
        for body in bodies:
            text = json.dumps(body)
            for placeholder in (CLAIM_TOKEN, TASK_ID, WAIT_ID, str(EVENT_ID)):
                text = text.replace(placeholder, str(values.get(placeholder, placeholder)))
            answer = http.request(method, path.format(**values), json=json.loads(text))
            if not answer.is_success:
                failed[f"{method} {path}"] = answer.text

    assert [path for _, path, bodies in said if not bodies] == []
    assert failed == {}


def seed(http: httpx2.Client, sql: Conn, path: str) -> Values:
    """Create the objects that a request for this path needs."""
    if path.startswith("/v1/claims/"):
        return claimed(http, start=not path.endswith("/start"))
    if path.startswith("/harness/tasks/{"):
        return claimed_by_harness_agent(http)
    if path.startswith("/v1/harness/actions/"):
        return {"task_id": harness.interrupted(sql)}
    names: Values = {"name": NAME, "queue": "mail", "key": "llm", "type": "code", "kind": "events"}
    if path.endswith(("/pause", "/close", "/rotate", "/test", "/fire")):
        furnish(http)
    return names | (SEEDS[path](http) if path in SEEDS else {})


def claimed(http: httpx2.Client, *, start: bool = True) -> Values:
    claim = take_new(http, start=start)
    wait = act(http, claim, "ask", name="q", question="?").json().get("wait_id") if start else None
    ids = {TASK_ID: claim["id"], CLAIM_TOKEN: claim["token"], WAIT_ID: wait}
    return {"task_id": claim["id"], "wait_id": wait, **ids}


def claimed_by_harness_agent(http: httpx2.Client) -> Values:
    said = {"agent_url": AGENT_URL, "payload": {}, "task_id": str(uuid4())}
    assert http.post("/harness/tasks", json=said).is_success
    token = str(uuid4())
    claim = http.post("/harness/next", json={"agent_url": AGENT_URL, "claim_token": token}).json()
    return {"task_id": claim["task_id"], CLAIM_TOKEN: token}


def forkable(http: httpx2.Client) -> Values:
    claim = take_new(http)
    assert act(http, claim, "steps", name="draft", output=1).is_success
    assert act(http, claim, "complete").is_success
    return {"task_id": claim["id"]}


def dead(http: httpx2.Client) -> Values:
    claim = take_new(http, max_attempts=1)
    assert act(http, claim, "fail", error="no").is_success
    return {"task_id": claim["id"], "letter_id": claim["id"]}


def take_new(http: httpx2.Client, *, start: bool = True, **said: Any) -> Json:
    """A claim of a new task."""
    task_id = enqueue(http, **said)
    return next(
        claim for claim in take(http, AGENT, limit=100, start=start) if claim["id"] == task_id
    )


def furnish(http: httpx2.Client) -> None:
    """A schedule, a trigger, a webhook, a queue and a gate to act on."""
    task = {"type": "code"}
    for path, said in (
        ("/v1/queues/mail", {}),
        (f"/v1/types/{NAME}", {}),
        ("/v1/gates/llm", {}),
        (f"/v1/schedules/{NAME}", {"cron": "@daily", "task": task}),
        (f"/v1/triggers/{NAME}", {"on": "invoice.paid", "task": task}),
        (f"/v1/webhooks/{NAME}", {"url": "https://example.org/"}),
    ):
        assert http.put(path, json=said).is_success, path


def dag(http: httpx2.Client) -> Values:
    plan = {"name": "d", "tasks": [{"type": "test"}]}
    return {"dag_id": http.post("/v1/dags", json=plan).json()["id"]}


def event(http: httpx2.Client) -> Values:
    said = {"event": "invoice.paid"}
    return {str(EVENT_ID): http.post("/v1/events", json=said).json()["id"]}


def work_item(http: httpx2.Client) -> Values:
    said = {"type": "code_review", "description": "Look at it"}
    return {"item_id": http.post("/work", json=said).json()["id"]}


def project(http: httpx2.Client) -> Values:
    return {"project_id": http.post("/projects", json={"name": "p"}).json()["id"]}


SEEDS: dict[str, Callable[[httpx2.Client], Values]] = {
    "/v1/tasks/{task_id}/cancel": lambda http: {"task_id": enqueue(http)},
    "/v1/tasks/{task_id}/priority": lambda http: {"task_id": enqueue(http)},
    "/v1/tasks/{task_id}/retry": dead,
    "/v1/tasks/{task_id}/fork": forkable,
    "/v1/agents/{agent_id}": lambda _: {"agent_id": "coder-2"},
    "/v1/agents/{agent_id}/status": lambda _: {"agent_id": "coder-2"},
    "/v1/dags/{dag_id}/cancel": dag,
    "/v1/dags/{dag_id}/retry": dag,
    "/v1/waits/{wait_id}/answer": claimed,
    "/v1/dead-letters/resolve": dead,
    "/v1/dead-letters/{letter_id}/resolve": dead,
    "/v1/triggers/{name}/fire": event,
    "/work/{item_id}": work_item,
    "/projects/{project_id}": project,
}
