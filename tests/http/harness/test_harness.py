"""The harness protocol over plain HTTP: every transition of a task, and every error."""

from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.drivers.http.servers import Conn, Served

ME = "http://agent-1:9000"
OTHER = "http://agent-2:9000"
UNKNOWN_ID = "00000000-0000-7000-8000-000000000000"


def put(http: httpx2.Client, url: str = ME, **more: Any) -> str:
    answer = http.post("/harness/tasks", json={"agent_url": url, "payload": {}, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["task_id"])


def fetch(http: httpx2.Client, url: str = ME) -> tuple[str, str]:
    """Claim the next task: its id and the token."""
    token = str(uuid4())
    answer = http.post("/harness/next", json={"agent_url": url, "claim_token": token})
    assert answer.status_code == 200, answer.text
    return answer.json()["task_id"], token


def tell(http: httpx2.Client, task: tuple[str, str], verb: str, **more: Any) -> httpx2.Response:
    return http.post(f"/harness/tasks/{task[0]}/{verb}", json={"claim_token": task[1], **more})


def status(http: httpx2.Client, task_id: str) -> tuple[str, int]:
    found = http.get(f"/harness/tasks/{task_id}").json()
    return found["status"], found["retry_count"]


def age(sql: Conn, task_id: str) -> None:
    """Let the claim of a task run out and requeue it."""
    sql.execute(
        "update treadle.tasks set lease_until = lease_until - interval '1 hour' where id = %s",
        (task_id,),
    )
    sql.execute("select treadle.requeue_harness_tasks()")


@pytest.mark.requirement("H5")
def test_a_task_goes_from_pending_to_completed(http: httpx2.Client, server: Served) -> None:
    task_id = put(http, payload={"issue": 7}, unknown="is ignored")
    assert status(http, task_id) == ("pending", 0)
    token = str(uuid4())

    answer = http.post("/harness/next", json={"agent_url": ME, "claim_token": token})
    found = answer.json()
    assert (answer.status_code, found["task_id"], found["payload"]) == (200, task_id, {"issue": 7})
    assert (found["retry_count"], found["max_retries"]) == (0, 3)
    assert status(http, task_id) == ("claimed", 0)

    beat = tell(http, (task_id, token), "heartbeat")
    assert (beat.status_code, beat.json()["task_id"]) == (200, task_id)
    assert beat.json()["claim_until"] > found["claim_until"]

    done = tell(http, (task_id, token), "complete", decision={"label": "bug"})
    assert (done.status_code, done.json()) == (200, {"task_id": task_id, "status": "completed"})
    assert http.get(f"/harness/tasks/{task_id}").json()["result"] == {"label": "bug"}
    for event in ("enqueued", "claimed", "completed"):
        assert server.child.events(f"harness.{event}", task_id=task_id, agent_url=ME)


@pytest.mark.requirement("H4")
def test_a_claim_that_ran_out_is_pending_and_after_three_retries_failed(
    http: httpx2.Client, sql: Conn
) -> None:
    task_id = put(http)
    for number in range(1, 4):
        assert fetch(http)[0] == task_id
        age(sql, task_id)
        assert status(http, task_id) == ("pending", number)
    fetch(http)
    age(sql, task_id)

    assert status(http, task_id) == ("failed", 3)
    none = http.post("/harness/next", json={"agent_url": ME, "claim_token": str(uuid4())})
    assert (none.status_code, none.content) == (204, b"")


@pytest.mark.requirement("H3")
def test_an_agent_gets_its_own_tasks_only(http: httpx2.Client) -> None:
    theirs, mine = put(http, OTHER), put(http)

    assert fetch(http, ME)[0] == mine

    none = http.post("/harness/next", json={"agent_url": ME, "claim_token": str(uuid4())})
    assert none.status_code == 204
    assert fetch(http, OTHER)[0] == theirs


@pytest.mark.parametrize("verb", ["heartbeat", "complete", "fail"])
def test_a_claim_that_was_lost_is_a_conflict(http: httpx2.Client, sql: Conn, verb: str) -> None:
    put(http)
    first = fetch(http)
    age(sql, first[0])
    second = fetch(http)

    answer = tell(http, first, verb, decision={"by": "first"}, error="late")

    assert (answer.status_code, answer.json()["code"]) == (409, "claim-lost")
    assert answer.json()["task_id"] == first[0]
    assert tell(http, second, "complete", decision={"by": "second"}).status_code == 200


def test_requests_that_are_repeated_have_one_effect(http: httpx2.Client) -> None:
    task_id, token = str(uuid4()), str(uuid4())
    body = {"agent_url": ME, "payload": {"n": 1}, "task_id": task_id}
    stored = [http.post("/harness/tasks", json=body) for _ in range(3)]
    assert [each.status_code for each in stored] == [201, 200, 200]
    assert [each.json()["created"] for each in stored] == [True, False, False]
    asked = {"agent_url": ME, "claim_token": token}
    assert {http.post("/harness/next", json=asked).json()["task_id"] for _ in range(3)} == {task_id}

    ended = [tell(http, (task_id, token), "complete", decision={"n": 1}) for _ in range(3)]

    assert [each.status_code for each in ended] == [200] * 3
    assert status(http, task_id) == ("completed", 0)


def test_an_agent_gives_a_task_back(http: httpx2.Client) -> None:
    task_id = put(http)

    assert tell(http, fetch(http), "fail", error="no model").json()["status"] == "pending"
    assert status(http, task_id) == ("pending", 1)
    assert tell(http, fetch(http), "fail", error="never", retry=False).json()["status"] == "failed"

    found = http.get(f"/harness/tasks/{task_id}").json()
    assert (found["status"], found["last_error"]) == ("failed", "never")


@pytest.mark.requirement("H5")
@pytest.mark.parametrize("body", [{"task_id": UNKNOWN_ID}, {}, {"task_id": None, "x": 1}])
def test_a_nudge_is_accepted_with_any_id(
    http: httpx2.Client, sql: Conn, body: dict[str, Any]
) -> None:
    sql.execute("listen treadle_harness")

    answer = http.post("/harness/result", json=body)

    assert answer.status_code == 202
    assert [each.channel for each in sql.notifies(timeout=5, stop_after=1)] == ["treadle_harness"]


@pytest.mark.requirement("H10")
def test_a_credential_is_rejected_with_its_place(http: httpx2.Client) -> None:
    body = {"agent_url": ME, "payload": {"env": {"GITHUB_TOKEN": "abc"}}}
    answer = http.post("/harness/tasks", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "secret-refused")
    assert answer.json()["path"] == "env.GITHUB_TOKEN"

    put(http)
    answer = tell(http, fetch(http), "complete", decision={"password": "abc"})
    assert (answer.status_code, answer.json()["path"]) == (422, "password")


def test_a_decision_that_is_not_an_object_is_refused(http: httpx2.Client) -> None:
    put(http)
    task = fetch(http)

    assert tell(http, task, "complete", decision=7).status_code == 422


DEEP: Any = []
for _ in range(200):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/harness/tasks", {}),
        ("/harness/tasks", {"agent_url": ME}),
        ("/harness/tasks", {"agent_url": ME, "payload": []}),
        ("/harness/tasks", {"agent_url": "nowhere", "payload": {}}),
        ("/harness/tasks", {"agent_url": "http://a\x00b", "payload": {}}),
        ("/harness/tasks", {"agent_url": ME, "payload": {"a": "\x00"}}),
        ("/harness/tasks", {"agent_url": ME, "payload": {"a": DEEP}}),
        ("/harness/tasks", {"agent_url": ME, "payload": {}, "task_id": "seven"}),
        ("/harness/tasks", {"agent_url": "http://" + "a" * 300, "payload": {}}),
        ("/harness/next", {"agent_url": ME}),
        ("/harness/next", {"agent_url": ME, "claim_token": "x"}),
        ("/harness/next", {"agent_url": "", "claim_token": UNKNOWN_ID}),
        ("/harness/tasks/seven/complete", {"claim_token": UNKNOWN_ID, "decision": {}}),
        (f"/harness/tasks/{UNKNOWN_ID}/fail", {"claim_token": UNKNOWN_ID, "error": "a\x00b"}),
        ("/harness/result", {"task_id": {"no": "text"}}),
        ("/harness/result", []),
    ],
)
def test_a_wrong_request_is_refused(http: httpx2.Client, path: str, body: Any) -> None:
    answer = http.post(path, json=body)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "text",
    [
        '{"agent_url": "http://a", "payload": {"n": NaN}}',
        '{"agent_url": "http://a", "payload": {"n": "\\ud800"}}',
        '{"agent_url": "http://a\\ud800", "payload": {}}',
        '{"agent_url": "http://a", "payload": {"\\u0000": 1}}',
    ],
)
def test_text_that_postgresql_cannot_store_is_rejected(http: httpx2.Client, text: str) -> None:
    headers = {"content-type": "application/json"}
    answer = http.post("/harness/tasks", content=text.encode(), headers=headers)
    assert answer.status_code == 422, answer.text


def test_a_payload_that_is_too_large_is_refused(http: httpx2.Client) -> None:
    many = {"text": [f"line {number}" for number in range(200_000)]}
    answer = http.post("/harness/tasks", json={"agent_url": ME, "payload": many})
    assert (answer.status_code, answer.json()["status"]) == (413, 413)


@pytest.mark.parametrize("verb", ["heartbeat", "complete", "fail"])
def test_a_missing_task_is_not_found(http: httpx2.Client, verb: str) -> None:
    answer = tell(http, (UNKNOWN_ID, UNKNOWN_ID), verb, decision={}, error="")
    assert (answer.status_code, answer.json()["code"]) == (404, "task-not-found")


def test_a_task_of_another_queue_is_not_the_harness_s(http: httpx2.Client, sql: Conn) -> None:
    row = sql.execute("select treadle.enqueue_task('default', 'code')").fetchone()
    assert row is not None
    assert http.get(f"/harness/tasks/{row[0]}").status_code == 404
