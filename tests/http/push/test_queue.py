"""A client of the documented queue API works unchanged: submit, read, cancel."""

from datetime import datetime

import httpx2
import pytest

from tests.drivers.http.queue import AGENT_URL, Body, claim, dispatch, entry, listing, submit
from tests.drivers.http.servers import Conn, Served

FULL: Body = {
    "prompt": "Perform nightly maintenance...",
    "model": "sonnet",
    "timeout_seconds": 1800,
    "session_id": "session-1",
    "project": {"name": "shop", "prompt": "A shop."},
    "env": {"STAGE": "test"},
    "thinking": False,
    "source": "scheduler",
    "source_job": "nightly-maintenance",
}


@pytest.mark.requirement("Q1")
def test_a_submission_returns_its_id_position_and_status(http: httpx2.Client) -> None:
    answer = http.post("/api/queue/task", json={"prompt": "test task"})

    assert answer.status_code == 201
    body = answer.json()
    assert body == {"queue_id": body["queue_id"], "position": 1, "state": "pending"}
    assert body["queue_id"].startswith("queue-")
    assert submit(http)["position"] == 2


@pytest.mark.requirement("Q1", "Q4")
def test_every_field_is_returned_under_its_name(http: httpx2.Client) -> None:
    made = submit(http, **FULL)

    found = entry(http, made["queue_id"])

    assert datetime.fromisoformat(found.pop("created_at")).tzinfo
    assert found == {
        **FULL,
        "queue_id": made["queue_id"],
        "state": "pending",
        "position": 1,
        "attempts": 0,
    }


@pytest.mark.requirement("Q4")
def test_empty_fields_are_left_out_and_unknown_ones_ignored(http: httpx2.Client) -> None:
    empty: Body = {"model": "", "session_id": None, "env": {}, "thinking": None, "source": ""}
    made = submit(http, "hello", **empty, timeout_seconds=0, priority=1)

    assert set(entry(http, made["queue_id"])) == {
        "queue_id", "state", "position", "created_at", "prompt", "attempts", "source"
    }  # fmt: skip


@pytest.mark.requirement("Q1")
def test_a_web_page_submits_the_same_way_with_every_field(http: httpx2.Client) -> None:
    answer = http.post("/api/task", json=FULL)

    assert answer.status_code == 201
    assert set(answer.json()) == {"queue_id", "position", "state"}
    found = entry(http, answer.json()["queue_id"])
    asked = {name: value for name, value in FULL.items() if not name.startswith("source")}
    assert {name: found[name] for name in asked} == asked
    assert (found["source"], "source_job" in found) == ("web", False)


@pytest.mark.requirement("Q3", "Q5")
def test_the_queue_is_first_in_first_out(http: httpx2.Client, sql: Conn) -> None:
    made = [submit(http, word)["queue_id"] for word in ("first", "second", "third")]

    queue = listing(http)

    assert (queue["depth"], queue["max_size"]) == (3, 50)
    assert [task["queue_id"] for task in queue["tasks"]] == made
    assert [task["position"] for task in queue["tasks"]] == [1, 2, 3]
    claimed = [claim(sql) for _ in made]
    assert [f"queue-{found[0]}" for found in claimed if found] == made


@pytest.mark.requirement("Q3")
def test_a_dispatched_entry_shows_its_agent_and_has_no_position(
    http: httpx2.Client, sql: Conn
) -> None:
    made = [submit(http)["queue_id"] for _ in range(3)]
    dispatch(sql)
    claim(sql)

    queue = listing(http)

    working, dispatching, pending = queue["tasks"]
    assert [task["queue_id"] for task in queue["tasks"]] == made
    assert (working["state"], working["agent_url"]) == ("working", AGENT_URL)
    assert (working["task_id"], working["attempts"]) == ("task-xyz789", 1)
    assert working["dispatched_at"] > working["created_at"]
    assert dispatching["state"] == "dispatching"
    assert "position" not in working
    assert "position" not in dispatching
    assert (pending["state"], pending["position"]) == ("pending", 1)
    assert not {"agent_url", "task_id", "dispatched_at"} & set(pending)
    assert queue["depth"] == 1


@pytest.mark.requirement("Q3")
@pytest.mark.parametrize(("asked", "shown"), [("session-1", "session-1"), (None, "session-2")])
def test_the_session_is_the_one_that_was_asked_for_or_else_that_of_the_agent(
    http: httpx2.Client, sql: Conn, asked: str | None, shown: str
) -> None:
    made = submit(http, session_id=asked)["queue_id"]
    task_id, token = dispatch(sql)

    sql.execute("update treadle.dispatches set session_id = 'session-2'")

    assert entry(http, made)["session_id"] == shown
    sql.execute("select treadle.complete_task(%s, %s)", (task_id, token))
    assert entry(http, made)["session_id"] == shown


@pytest.mark.requirement("Q4")
def test_an_ended_entry_leaves_the_list_and_can_be_read(http: httpx2.Client, sql: Conn) -> None:
    done, failed = submit(http)["queue_id"], submit(http)["queue_id"]
    task_id, token = dispatch(sql)
    sql.execute("select treadle.complete_task(%s, %s)", (task_id, token))
    task_id, token = dispatch(sql)
    sql.execute(
        "select treadle.fail_task(%s, %s, 'agent returned 400', 'refused')",
        (task_id, token),
    )

    assert listing(http) == {"depth": 0, "max_size": 50, "tasks": []}
    assert entry(http, done)["state"] == "completed"
    assert entry(http, done)["agent_url"] == AGENT_URL
    found = entry(http, failed)
    assert (found["state"], found["last_error"]) == ("failed", "agent returned 400")


@pytest.mark.requirement("Q4")
def test_a_pending_entry_is_cancelled_and_the_others_move_up(http: httpx2.Client) -> None:
    first, second = submit(http)["queue_id"], submit(http)["queue_id"]

    answer = http.post(f"/api/queue/{first}/cancel")

    assert (answer.status_code, answer.json()) == (200, {"queue_id": first, "state": "cancelled"})
    [left] = listing(http)["tasks"]
    assert (left["queue_id"], left["position"]) == (second, 1)
    found = entry(http, first)
    assert found["state"] == "cancelled"
    assert "position" not in found
    assert "last_error" not in found
    assert http.post(f"/api/queue/{first}/cancel").json()["state"] == "cancelled"


@pytest.mark.requirement("Q4")
@pytest.mark.parametrize("how", [claim, dispatch])
def test_an_entry_that_an_agent_has_is_cancelled_at_once(
    http: httpx2.Client, sql: Conn, how: object
) -> None:
    made = submit(http)["queue_id"]
    assert callable(how)
    task_id, token = how(sql)

    answer = http.post(f"/api/queue/{made}/cancel")

    assert answer.json() == {"queue_id": made, "state": "cancelled"}
    beat = sql.execute(
        "select verdict from treadle.heartbeat_tasks(%s, %s)", ([task_id], [token])
    ).fetchone()
    assert beat == ("cancelled",)


@pytest.mark.requirement("Q4")
def test_what_has_ended_cannot_be_cancelled(http: httpx2.Client, sql: Conn) -> None:
    made = submit(http)["queue_id"]
    task_id, token = dispatch(sql)
    sql.execute("select treadle.complete_task(%s, %s)", (task_id, token))

    answer = http.post(f"/api/queue/{made}/cancel")

    assert answer.status_code == 409
    body = answer.json()
    assert (body["state"], body["allowed"], body["queue_id"]) == ("completed", [], made)


@pytest.mark.requirement("Q4")
@pytest.mark.parametrize("queue_id", ["queue-abc12345", "x%00y", "%F0%9F", "task"])
def test_a_missing_entry_is_not_found(http: httpx2.Client, queue_id: str) -> None:
    for answer in (
        http.get(f"/api/queue/{queue_id}"),
        http.post(f"/api/queue/{queue_id}/cancel"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "task-not-found")


def test_a_task_of_another_queue_is_not_an_entry(http: httpx2.Client, sql: Conn) -> None:
    made = sql.execute("select treadle.enqueue_task('default', 'code')").fetchone()
    assert made

    assert http.get(f"/api/queue/queue-{made[0]}").status_code == 404
    assert http.post(f"/api/queue/queue-{made[0]}/cancel").status_code == 404
    assert sql.execute("select status from treadle.tasks").fetchone() == ("ready",)


def test_a_submission_that_is_sent_twice_with_one_key_is_queued_once(http: httpx2.Client) -> None:
    sent = [
        http.post("/api/queue/task", json={"prompt": "once"}, headers={"Idempotency-Key": "k1"})
        for _ in range(2)
    ]

    assert sent[0].json() == sent[1].json()
    assert listing(http)["depth"] == 1


@pytest.mark.requirement("Q14")
def test_a_submission_is_logged(http: httpx2.Client, server: Served) -> None:
    submit(http)
    made = submit(http, source="cli")["queue_id"]

    [line] = server.child.events("queue.task_added", queue_id=made)
    assert (line["depth"], line["source"]) == (2, "cli")
