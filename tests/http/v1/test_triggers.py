"""Triggers over HTTP: create, test, fire, pause, delete."""

from typing import Any

import httpx2
import pytest

from tests.drivers.http.servers import Conn
from tests.drivers.http.shapes import listed, shaped, walked
from tests.drivers.http.v1 import code_of
from treadle.api.v1 import triggers as models

NEXT: dict[str, Any] = {
    "on": "invoice.paid",
    "filter": {"key": "eu"},
    "task": {"type": "review", "spec": {"amount": {"$event": "data.amount"}}},
}


def define(http: httpx2.Client, name: str = "next", **said: Any) -> dict[str, Any]:
    return shaped(models.Trigger, http.put(f"/v1/triggers/{name}", json={**NEXT, **said}))


def emit(sql: Conn, key: str = "eu") -> int:
    row = sql.execute(
        "select treadle.emit_event('invoice.paid', '{\"amount\": 5}', %s)", [key]
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_a_trigger_is_defined_and_changed(http: httpx2.Client) -> None:
    made = define(http, max_depth=2, max_per_hour=7, description="d")
    assert (made["state"], made["on_event"], made["created_by"]) == (
        "active", "invoice.paid", "local",
    )  # fmt: skip
    assert (made["max_depth"], made["max_per_hour"], made["description"]) == (2, 7, "d")
    assert shaped(models.Trigger, http.get("/v1/triggers/next")) == made

    changed = http.put("/v1/triggers/next", json={"max_per_hour": None, "description": None})
    shown = shaped(models.Trigger, changed)
    assert (shown["max_per_hour"], shown["description"]) == (None, None)
    assert (shown["on_event"], shown["filter"]) == (made["on_event"], made["filter"])


def test_a_trigger_may_look_at_the_rate_of_failures(http: httpx2.Client) -> None:
    body = {
        "task": {"type": "review"},
        "failure_rate": {"type": "code", "window_s": 60, "limit": 0.5},
    }
    made = shaped(models.Trigger, http.put("/v1/triggers/failing", json=body))
    assert made["on_event"] == "type.failure_rate_exceeded"


def test_triggers_are_listed_by_name(http: httpx2.Client) -> None:
    for name in ("b", "a"):
        define(http, name)
    assert [row["name"] for row in listed(models.Trigger, http.get("/v1/triggers"))] == ["a", "b"]
    assert [row["name"] for row in walked(http, "/v1/triggers")] == ["a", "b"]


def test_testing_a_trigger_shows_its_result_and_creates_nothing(
    http: httpx2.Client, sql: Conn
) -> None:
    define(http)
    event = emit(sql)
    yes = shaped(models.Verdict, http.post("/v1/triggers/next/test", json={"event_id": event}))
    assert (yes["fires"], yes["problem"]) == (True, None)
    assert yes["makes"]["task"]["spec"] == {"amount": 5}

    sample = {"kind": "invoice.paid", "key": "us"}
    no = shaped(models.Verdict, http.post("/v1/triggers/next/test", json={"sample": sample}))
    assert (no["fires"], no["problem"]) == (False, "the event does not match the filter")
    assert sql.execute("select count(*) from treadle.tasks").fetchone() == (0,)


def test_it_is_fired_by_hand_once(http: httpx2.Client, sql: Conn) -> None:
    event = emit(sql)
    define(http)
    fired = http.post("/v1/triggers/next/fire", json={"event_id": event})
    made = shaped(models.ManualRun, fired)
    assert http.get(f"/v1/tasks/{made['task_id']}").json()["spec"] == {"amount": 5}

    again = http.post("/v1/triggers/next/fire", json={"event_id": event})
    assert code_of(again) == (422, "invalid-argument")
    [row] = listed(models.Firing, http.get("/v1/triggers/next/log"))
    assert (row["event_id"], row["verdict"], row["task_id"]) == (event, "fired", made["task_id"])
    assert len(walked(http, "/v1/triggers/next/log")) == 1


def test_it_is_paused_resumed_and_removed(http: httpx2.Client) -> None:
    define(http)
    paused = shaped(models.Trigger, http.post("/v1/triggers/next/pause", json={"reason": "many"}))
    assert (paused["state"], paused["paused_reason"], paused["paused_by"]) == (
        "paused", "many", "local",
    )  # fmt: skip
    assert shaped(models.Trigger, http.post("/v1/triggers/next/resume"))["state"] == "active"
    assert http.delete("/v1/triggers/next").status_code == 204
    assert code_of(http.get("/v1/triggers/next")) == (404, "unknown-trigger")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"task": None}, (422, "invalid-argument")),
        ({"on": "trigger.failed"}, (422, "invalid-argument")),
        ({"max_depth": 0}, (422, "invalid-argument")),
        ({"max_depth": "5"}, (422, "invalid-argument")),
        ({"color": "red"}, (422, "invalid-argument")),
        ({"task": {"type": "nothing"}}, (404, "unknown-type")),
        ({"task": {"spec": {"a": "\x00"}}}, (422, "invalid-argument")),
    ],
)
def test_what_cannot_be_is_refused(
    http: httpx2.Client, said: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert code_of(http.put("/v1/triggers/next", json={**NEXT, **said})) == expected
    assert http.get("/v1/triggers").json()["items"] == []


@pytest.mark.parametrize(
    "said", [{}, {"event_id": 1, "sample": {}}, {"event_id": 999}, {"sample": 5}, {"event_id": -1}]
)
def test_it_is_not_tried_on_nothing(http: httpx2.Client, said: dict[str, Any]) -> None:
    define(http)
    answer = http.post("/v1/triggers/next/test", json=said)
    assert code_of(answer) == (422, "invalid-argument")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("GET", "/log", None),
        ("POST", "/pause", None),
        ("POST", "/resume", None),
        ("POST", "/test", {"event_id": 1}),
        ("POST", "/fire", {"event_id": 1}),
        ("DELETE", "", None),
    ],
)
def test_an_unknown_trigger_is_not_found(
    http: httpx2.Client, method: str, path: str, body: dict[str, Any] | None
) -> None:
    answer = http.request(method, f"/v1/triggers/nobody{path}", json=body)
    assert code_of(answer) == (404, "unknown-trigger")
