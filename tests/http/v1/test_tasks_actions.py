"""Actions on tasks over HTTP: cancel, retry, fork, and bulk changes."""

from typing import Any

import httpx2
import pytest

from tests.drivers.http.servers import Conn
from tests.drivers.http.v1 import UNKNOWN_ID, act, code_of, enqueue, register, status_of, take_one
from treadle.api.v1.events import EventDetails


def dead(http: httpx2.Client, **said: Any) -> str:
    """A task that gave up."""
    task_id = enqueue(http, **said)
    act(http, take_one(http), "fail", error="no", action="fail")
    assert status_of(http, task_id) == "dead_lettered"
    return task_id


def test_a_task_is_cancelled_with_what_depends_on_it(http: httpx2.Client, sql: Conn) -> None:
    first, second = enqueue(http), enqueue(http, hold=True)
    sql.execute("select treadle.add_dependency(%s, %s)", (second, first))

    answer = http.post(f"/v1/tasks/{first}/cancel", json={"reason": "not needed"})
    again = http.post(f"/v1/tasks/{first}/cancel")

    assert answer.status_code == 200
    assert answer.json() == {"id": first, "verdict": "cancelled", "cascaded": [second]}
    assert again.json() == {"id": first, "verdict": "already", "cascaded": []}
    assert status_of(http, second) == "cancelled"


@pytest.mark.requirement("F28")
def test_the_priority_of_a_waiting_task_is_changed(http: httpx2.Client) -> None:
    register(http)
    first, second = enqueue(http), enqueue(http, tags=["x"])
    path = f"/v1/tasks/{second}/priority"

    answer = http.post(path, json={"tier": "high", "reason": "a customer waits"})

    assert answer.json() == {"id": second, "verdict": "prioritised", "priority": 20}
    [event] = http.get(f"/v1/tasks/{second}/events").json()["items"]
    assert (event["kind"], event["actor"]) == ("task.prioritised", "local")
    assert code_of(http.post(path, json={"tier": "high", "priority": 3}))[0] == 422
    assert code_of(http.post(path, json={}))[0] == 422
    bulk = {"action": "prioritise", "filter": {"tag": "x"}, "priority": 1}
    [counts] = http.post("/v1/tasks/bulk", json=bulk).json()["items"]
    assert (counts["verdict"], counts["tasks"]) == ("prioritised", 1)
    assert code_of(http.post("/v1/tasks/bulk", json={**bulk, "action": "cancel"}))[0] == 422
    assert take_one(http)["id"] == second
    assert code_of(http.post(path, json={"priority": 3})) == (409, "illegal-transition")
    nobody = http.post(f"/v1/tasks/{UNKNOWN_ID}/priority", json={"priority": 3})
    assert code_of(nobody) == (404, "task-not-found")
    assert status_of(http, first) == "ready"


def test_the_events_of_a_task_are_listed(http: httpx2.Client) -> None:
    task_id = enqueue(http)
    http.post(f"/v1/tasks/{task_id}/cancel", json={"reason": "not needed"})

    events = http.get(f"/v1/tasks/{task_id}/events").json()["items"]

    assert [(each["kind"], each["actor"]) for each in events] == [("task.cancelled", "local")]
    assert EventDetails.model_validate(events[0]).data["reason"] == "not needed"


def test_what_has_ended_cannot_be_cancelled(http: httpx2.Client) -> None:
    register(http)
    task_id = enqueue(http)
    act(http, take_one(http), "complete")

    answer = http.post(f"/v1/tasks/{task_id}/cancel")

    assert code_of(answer) == (409, "illegal-transition")
    assert (answer.json()["from"], answer.json()["to"]) == ("completed", "cancelled")
    assert code_of(http.post(f"/v1/tasks/{UNKNOWN_ID}/cancel")) == (404, "task-not-found")


def test_a_task_that_gave_up_gets_another_round_with_changes(http: httpx2.Client) -> None:
    register(http)
    task_id = dead(http, spec={"url": "wrong"})
    changes = {"spec": {"url": "right"}, "priority": 3}

    answer = http.post(f"/v1/tasks/{task_id}/retry", json={"changes": changes, "note": "typo"})

    assert (answer.status_code, answer.json()) == (200, {"id": task_id, "status": "ready"})
    claim = take_one(http)
    assert (claim["spec"], claim["priority"]) == ({"url": "right"}, 3)
    assert claim["previous"][-1]["review"]["by"] == "local"


def test_a_task_that_runs_cannot_be_retried(http: httpx2.Client) -> None:
    register(http)
    task_id = enqueue(http)
    take_one(http)
    assert code_of(http.post(f"/v1/tasks/{task_id}/retry")) == (409, "illegal-transition")
    assert code_of(http.post(f"/v1/tasks/{UNKNOWN_ID}/retry")) == (404, "task-not-found")
    wrong = {"changes": {"colour": "red"}}
    assert code_of(http.post(f"/v1/tasks/{task_id}/retry", json=wrong))[0] == 422


def test_a_held_task_of_an_open_dag_waits_for_the_dag(http: httpx2.Client, sql: Conn) -> None:
    dag = sql.execute("select treadle.open_dag('d')").fetchone()
    assert dag is not None
    row = sql.execute(
        """select id from treadle.add_tasks(%s, '[{"type": "code"}]')""", (dag[0],)
    ).fetchone()
    assert row is not None
    answer = http.post(f"/v1/tasks/{row[0]}/release")
    assert code_of(answer) == (409, "illegal-transition")


def test_a_fork_starts_over_from_a_step(http: httpx2.Client) -> None:
    register(http)
    task_id = enqueue(http, spec={"tone": "warm"})
    claim = take_one(http)
    for step in ("outline", "draft"):
        act(http, claim, "steps", name=step, output=step)
    said = {"from_step": "draft", "changes": {"spec": {"tone": "dry"}}}

    answer = http.post(f"/v1/tasks/{task_id}/fork", json=said)

    assert answer.status_code == 201
    made = http.get(answer.headers["location"]).json()
    assert (made["forked_from"], made["spec"]) == (task_id, {"tone": "dry"})
    kept = http.get(f"/v1/tasks/{made['id']}/steps").json()["items"]
    assert [step["name"] for step in kept] == ["outline"]
    nowhere = {"from_step": "nowhere"}
    assert code_of(http.post(f"/v1/tasks/{task_id}/fork", json=nowhere)) == (404, "step-not-found")
    assert code_of(http.post(f"/v1/tasks/{UNKNOWN_ID}/fork", json=nowhere)) == (
        404,
        "task-not-found",
    )


def test_many_tasks_are_counted_then_cancelled(http: httpx2.Client) -> None:
    tasks = [enqueue(http, tags=["old"]) for _ in range(3)]
    other = enqueue(http)
    asked = {"action": "cancel", "filter": {"tag": "old", "status": ["ready"]}}

    counted = http.post("/v1/tasks/bulk", json={**asked, "dry_run": True}).json()
    assert status_of(http, tasks[0]) == "ready"
    done = http.post("/v1/tasks/bulk", json=asked).json()

    assert counted["dry_run"] is True
    assert [(each["verdict"], each["tasks"]) for each in counted["items"]] == [("found", 3)]
    assert [(each["verdict"], each["tasks"]) for each in done["items"]] == [("cancelled", 3)]
    assert {status_of(http, task) for task in tasks} == {"cancelled"}
    assert status_of(http, other) == "ready"


def test_many_tasks_are_retried(http: httpx2.Client) -> None:
    register(http)
    task_id = dead(http)
    asked = {"action": "retry", "filter": {"queue": "default"}, "reason": "fixed"}

    done = http.post("/v1/tasks/bulk", json=asked).json()

    assert [(each["verdict"], each["tasks"]) for each in done["items"]] == [("retried", 1)]
    assert status_of(http, task_id) == "ready"


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"action": "cancel", "filter": {}}, 422),
        ({"action": "cancel"}, 422),
        ({"action": "forget", "filter": {"queue": "default"}}, 422),
        ({"action": "cancel", "filter": {"queue": "nowhere"}}, 404),
        ({"action": "cancel", "filter": {"colour": "red"}}, 422),
        ({"action": "cancel", "filter": {"status": "completed"}}, 422),
        ({"action": "cancel", "filter": {"created_before": "soon"}}, 422),
        ({"action": "cancel", "filter": {"queue": "default"}, "limit": 10**12}, 422),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(
    http: httpx2.Client, said: dict[str, Any], status: int
) -> None:
    assert code_of(http.post("/v1/tasks/bulk", json=said))[0] == status
