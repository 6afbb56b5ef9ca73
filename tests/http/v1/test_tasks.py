"""Tasks over HTTP: enqueue, list and show."""

from datetime import datetime
from typing import Any

import httpx2
import pytest

from tests.drivers.http.servers import Conn
from tests.drivers.http.shapes import shaped
from tests.drivers.http.v1 import UNKNOWN_ID, act, code_of, enqueue, register, status_of, take_one
from treadle.api.v1 import tasks as models

EVERYTHING = {
    "queue": "default",
    "type": "code",
    "spec": {"n": 2**70, "text": "é \U0001f600"},
    "idempotency_key": "k",
    "priority": 7,
    "delay_s": 60,
    "deadline_at": "2099-01-01T00:00:00Z",
    "timeout_s": 5,
    "max_attempts": 4,
    "ageing_rate": 0.5,
    "retry": {"strategy": "fixed"},
    "capabilities": ["git"],
    "assigned_agent": "a",
    "consumer": "me",
    "title": "t",
    "tags": ["x", "y"],
    "created_by": "somebody",
    "source": "s",
    "source_job": "j",
    "external_ref": "r",
    "notes": "n",
    "max_cost_usd": 1.5,
    "max_tokens": 100,
    "on_budget": "fail",
    "validation": [{"validator": "not_empty"}],
    "report": "optional",
    "models": ["m"],
    "fallback_models": ["f"],
    "concurrency_key": "c",
    "gates": ["g"],
}


def test_a_task_is_put_on_a_queue_and_can_be_read(http: httpx2.Client) -> None:
    answer = http.post("/v1/tasks", json={"type": "code", "spec": {"n": 1}})
    assert answer.status_code == 201
    made = answer.json()
    assert made["created"] is True
    assert answer.headers["location"] == f"/v1/tasks/{made['id']}"

    task = http.get(answer.headers["location"]).json()

    assert (task["id"], task["queue"], task["type"]) == (made["id"], "default", "code")
    assert (task["status"], task["spec"], task["created_by"]) == ("ready", {"n": 1}, "local")
    assert task["created_at"].endswith("Z")


def test_every_option_of_a_task_arrives(http: httpx2.Client, sql: Conn) -> None:
    sql.execute("select treadle.define_gate('g')")
    task_id = http.post("/v1/tasks", json=EVERYTHING).json()["id"]

    task = http.get(f"/v1/tasks/{task_id}").json()

    same = EVERYTHING.keys() - {"delay_s", "validation", "retry", "gates"}
    assert {name: task[name] for name in same} == {name: EVERYTHING[name] for name in same}
    assert task["retry"]["strategy"] == "fixed"
    assert "g" in task["gates"]
    assert datetime.fromisoformat(task["run_at"]) > datetime.fromisoformat(task["created_at"])
    assert task["status"] == "pending"


def test_the_model_has_every_field_of_a_task(http: httpx2.Client) -> None:
    task_id = enqueue(http)
    task = http.get(f"/v1/tasks/{task_id}").json()
    assert task.keys() == models.TaskDetails.model_fields.keys()
    models.TaskDetails.model_validate(task)
    [row] = http.get("/v1/tasks").json()["items"]
    assert row.keys() == models.TaskRow.model_fields.keys()
    models.TaskRow.model_validate(row)


def test_a_business_key_makes_one_task(http: httpx2.Client) -> None:
    first = http.post("/v1/tasks", json={"type": "code", "idempotency_key": "once"})
    again = http.post("/v1/tasks", json={"type": "code", "idempotency_key": "once"})

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == {"id": first.json()["id"], "created": False}


def test_many_tasks_are_stored_together(http: httpx2.Client) -> None:
    tasks = [{"type": "code", "spec": {"n": n}, "idempotency_key": f"k{n % 2}"} for n in range(3)]
    answer = http.post("/v1/tasks/batch", json={"tasks": tasks})

    assert answer.status_code == 201
    items = answer.json()["items"]
    assert [item["created"] for item in items] == [True, True, False]
    assert items[0]["id"] == items[2]["id"]


def test_one_bad_task_of_many_stops_all(http: httpx2.Client) -> None:
    tasks = [{"type": "code"}, {"type": "nothing-like-it"}]
    assert code_of(http.post("/v1/tasks/batch", json={"tasks": tasks})) == (404, "unknown-type")
    assert http.get("/v1/tasks").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"type": "code", "queue": "nowhere"}, 404),
        ({"type": "nothing-like-it"}, 404),
        ({}, 422),
        ({"type": "code", "colour": "red"}, 422),
        ({"type": "code", "priority": 101}, 422),
        ({"type": "code", "priority": 10**30}, 422),
        ({"type": "code", "priority": "5"}, 422),
        ({"type": "code", "max_tokens": 2**63}, 422),
        ({"type": "code\x00"}, 422),
        ({"type": "x" * 201}, 422),
        ({"type": "code", "spec": {"a": "\x00"}}, 422),
        ({"type": "code", "spec": {"\x00": 1}}, 422),
        ({"type": "code", "spec": [1]}, 422),
        ({"type": "code", "run_at": "2026-01-01T00:00:00"}, 422),
        ({"type": "code", "run_at": "9999-12-31T00:00:00Z"}, 422),
        ({"type": "code", "tags": ["x"] * 51}, 422),
        ({"type": "code", "retry": {"strategy": "hope"}}, 422),
        ({"type": "code", "idempotency_key": ""}, 422),
    ],
)
def test_an_invalid_task_is_rejected(http: httpx2.Client, body: Any, status: int) -> None:
    answer = http.post("/v1/tasks", json=body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b'{"type": "code", "spec": {"a": NaN}}',
        b'{"type": "code", "spec": {"a": "\\ud800"}}',
        b'{"type": "co\\ud800de"}',
        b'{"type": "code", "spec": {"a": ' + b"[" * 5000 + b"]" * 5000 + b"}}",
        b'{"type": "code", "spec": {"a": ' + b"[" * 70 + b"]" * 70 + b"}}",
        b'{"type": "code", "spec": {"a": ' + b"9" * 5000 + b"}}",
        b'{"type": "code", "spec": {"a": "\xff"}}',
        b"[1]",
        b"null",
    ],
)
def test_an_invalid_body_is_rejected(http: httpx2.Client, body: bytes) -> None:
    answer = http.post("/v1/tasks", content=body, headers={"content-type": "application/json"})
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_too_many_tasks_at_once_are_refused(http: httpx2.Client) -> None:
    tasks = [{"type": "code"}] * (models.BATCH + 1)
    assert http.post("/v1/tasks/batch", json={"tasks": tasks}).status_code == 422


@pytest.mark.parametrize("part", ["", "/why", "/attempts", "/steps", "/artifacts", "/events"])
def test_a_missing_task_is_not_found(http: httpx2.Client, part: str) -> None:
    assert code_of(http.get(f"/v1/tasks/{UNKNOWN_ID}{part}")) == (404, "task-not-found")
    assert code_of(http.get(f"/v1/tasks/nonsense{part}")) == (422, "invalid-argument")


def test_the_history_of_a_task_can_be_read(http: httpx2.Client) -> None:
    register(http)
    task_id = enqueue(http)
    claim = take_one(http)
    act(http, claim, "steps", name="outline", output={"parts": 3})
    act(http, claim, "artifacts", name="a.txt", uri="s3://b/a.txt")
    act(http, claim, "complete", output={"ok": True})

    parts = {part: http.get(f"/v1/tasks/{task_id}/{part}").json()["items"]
             for part in ("why", "attempts", "steps", "artifacts")}  # fmt: skip

    assert parts["why"][0]["reason"] == "completed"
    [attempt] = parts["attempts"]
    assert (attempt["attempt"], attempt["agent_id"], attempt["outcome"]) == (1, "a", "completed")
    [step] = parts["steps"]
    assert (step["name"], step["output"]) == ("outline", {"parts": 3})
    [artifact] = parts["artifacts"]
    assert (artifact["name"], artifact["uri"]) == ("a.txt", "s3://b/a.txt")
    for name, model in (
        ("attempts", models.Attempt),
        ("steps", models.StepRow),
        ("artifacts", models.ArtifactRow),
    ):
        model.model_validate(parts[name][0])


def test_a_task_that_did_not_change_is_not_sent_again(http: httpx2.Client) -> None:
    task_id = enqueue(http)
    etag = http.get(f"/v1/tasks/{task_id}").headers["etag"]
    known = {"if-none-match": f'"other", {etag}'}

    same = http.get(f"/v1/tasks/{task_id}", headers=known)
    http.post(f"/v1/tasks/{task_id}/cancel")
    changed = http.get(f"/v1/tasks/{task_id}", headers=known)

    assert (same.status_code, same.content) == (304, b"")
    assert (changed.status_code, changed.json()["status"]) == (200, "cancelled")


def test_a_held_task_is_released(http: httpx2.Client) -> None:
    task_id = enqueue(http, hold=True)
    assert status_of(http, task_id) == "created"

    answer = http.post(f"/v1/tasks/{task_id}/release")

    assert (answer.status_code, answer.json()) == (200, {"id": task_id, "status": "ready"})
    assert code_of(http.post(f"/v1/tasks/{UNKNOWN_ID}/release")) == (404, "task-not-found")


@pytest.mark.requirement("F28")
def test_a_task_runs_after_others_and_reads_their_outputs(http: httpx2.Client) -> None:
    register(http)
    first, second = enqueue(http), enqueue(http)
    said = {
        "type": "code",
        "after": [{"task": second, "optional": True}],
        "inputs": {"brief": f"task:{first}:output"},
    }

    task = http.post("/v1/tasks", json=said).json()["id"]
    [also] = http.post("/v1/tasks/batch", json={"tasks": [said]}).json()["items"]

    shown = shaped(models.TaskDetails, http.get(f"/v1/tasks/{task}"))
    assert (shown["status"], shown["inputs"]) == ("pending", said["inputs"])
    assert set(shown["depends_on"]) == set(shown["blocked_by"]) == {first, second}
    http.post(f"/v1/tasks/{second}/cancel")
    claim = take_one(http)
    act(http, claim, "complete", output={"n": 7})
    assert status_of(http, also["id"]) == "ready"
    assert take_one(http)["spec"] == {"brief": {"n": 7}}


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ({"after": "x"}, "/after"),
        ({"after": [5]}, "/after/0"),
        ({"after": [{"task": UNKNOWN_ID, "loose": True}]}, "/after/0"),
        ({"inputs": []}, "/inputs"),
        ({"after": [UNKNOWN_ID]}, None),
        ({"inputs": {"x": "task:y:output"}}, None),
    ],
    ids=str,
)
def test_a_wrong_dependency_is_refused(
    http: httpx2.Client, said: dict[str, Any], where: str | None
) -> None:
    answer = http.post("/v1/tasks", json={"type": "code", **said})

    assert code_of(answer) == (422, "invalid-argument")
    if where is not None:
        assert answer.json()["errors"][0]["pointer"].startswith(where)
    assert http.get("/v1/tasks").json()["items"] == []
