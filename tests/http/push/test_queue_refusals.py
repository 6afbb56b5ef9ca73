"""Invalid submissions and submissions to a full queue are rejected with a reason."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import httpx2
import pytest

from tests.drivers.http.queue import listing
from tests.drivers.http.servers import Conn, Served

SUBMITTERS = 64

BAD = {
    "no prompt": "{}",
    "an empty prompt": '{"prompt": ""}',
    "a prompt of white space": '{"prompt": " \\n"}',
    "a prompt that is no text": '{"prompt": 5}',
    "a prompt with NUL": '{"prompt": "a\\u0000b"}',
    "a prompt with half a character": '{"prompt": "a\\ud800b"}',
    "a model with NUL": '{"prompt": "x", "model": "\\u0000"}',
    "a source with NUL": '{"prompt": "x", "source": "\\u0000"}',
    "a source with half a character": '{"prompt": "x", "source": "\\ud800"}',
    "a source without end": '{"prompt": "x", "source": "%s"}' % ("s" * 101),
    "a job with NUL": '{"prompt": "x", "source_job": "\\u0000"}',
    "a session with NUL": '{"prompt": "x", "session_id": "\\u0000"}',
    "less than no time": '{"prompt": "x", "timeout_seconds": -1}',
    "all time": '{"prompt": "x", "timeout_seconds": 1e30}',
    "part of a second": '{"prompt": "x", "timeout_seconds": 1.5}',
    "a time that is a truth": '{"prompt": "x", "timeout_seconds": false}',
    "a time that is no number": '{"prompt": "x", "timeout_seconds": NaN}',
    "variables that are no map": '{"prompt": "x", "env": ["A"]}',
    "a variable that is no text": '{"prompt": "x", "env": {"A": 1}}',
    "a variable with NUL": '{"prompt": "x", "env": {"A": "\\u0000"}}',
    "a variable with NUL in its name": '{"prompt": "x", "env": {"\\u0000": "A"}}',
    "a variable with half a character": '{"prompt": "x", "env": {"\\ud800": "A"}}',
    "half a character and a number": '{"prompt": "x", "env": {"\\ud800": 1}}',
    "a project that is a name": '{"prompt": "x", "project": "shop"}',
    "a project with NaN": '{"prompt": "x", "project": {"n": NaN}}',
    "a project without end": '{"prompt": "x", "project": {"n": 1e999}}',
    "a project with NUL": '{"prompt": "x", "project": {"n": ["\\u0000"]}}',
    "a project with half a character": '{"prompt": "x", "project": {"n": {"\\ud800": 1}}}',
    "a project that is too deep": '{"prompt": "x", "project": {"n": %s}}' % ("[" * 100 + "]" * 100),
    "thinking that is no answer": '{"prompt": "x", "thinking": "maybe"}',
    "a list": "[]",
    "no JSON": "{",
    "nothing": "",
}


@pytest.mark.requirement("Q1")
@pytest.mark.parametrize("name", BAD)
def test_a_bad_body_is_refused(http: httpx2.Client, name: str) -> None:
    for path in ("/api/queue/task", "/api/task"):
        if path == "/api/task" and ("source" in BAD[name]):
            continue  # it takes no source
        answer = http.post(path, content=BAD[name], headers={"Content-Type": "application/json"})

        assert answer.status_code in (400, 422), answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"]
    assert listing(http)["tasks"] == []


@pytest.mark.requirement("Q2")
def test_exactly_50_of_64_concurrent_submissions_are_accepted(
    http: httpx2.Client, sql: Conn
) -> None:
    gate = Barrier(SUBMITTERS)

    def send(number: int) -> httpx2.Response:
        gate.wait(timeout=30)
        return http.post("/api/queue/task", json={"prompt": f"task {number}"})

    with ThreadPoolExecutor(SUBMITTERS) as threads:
        answers = list(threads.map(send, range(SUBMITTERS)))

    assert Counter(answer.status_code for answer in answers) == {201: 50, 503: 14}
    made = [answer.json() for answer in answers if answer.status_code == 201]
    order = sorted(made, key=lambda body: int(body["position"]))
    assert [body["position"] for body in order] == list(range(1, 51))
    queue = listing(http)
    assert (queue["depth"], queue["max_size"]) == (50, 50)
    assert [task["queue_id"] for task in queue["tasks"]] == [body["queue_id"] for body in order]
    assert sql.execute("select count(*) from treadle.tasks").fetchone() == (50,)


def test_a_prompt_that_is_too_large_is_refused(http: httpx2.Client) -> None:
    answer = http.post("/api/queue/task", json={"prompt": "x", "project": {"n": "y" * 2_000_000}})

    assert answer.status_code == 413
    assert listing(http)["tasks"] == []


@pytest.mark.parametrize("limit", ["0", "10001", "x", "1" * 30])
def test_a_limit_is_a_small_number(http: httpx2.Client, limit: str) -> None:
    assert http.get("/api/queue", params={"limit": limit}).status_code == 422


def test_a_limited_listing_still_has_the_depth(http: httpx2.Client) -> None:
    for number in range(3):
        http.post("/api/queue/task", json={"prompt": str(number)})

    queue = http.get("/api/queue", params={"limit": 2}).json()

    assert (queue["depth"], len(queue["tasks"])) == (3, 2)


@pytest.mark.requirement("Q14")
def test_a_rolled_back_submission_is_not_logged_as_added(
    http: httpx2.Client, sql: Conn, server: Served
) -> None:
    refuse = "add constraint no_room check (key <> 'lost' or status is null)"
    sql.execute(f"alter table treadle.replies {refuse}".encode())
    body = {"prompt": "x", "source": "keyed"}

    lost, kept = (
        http.post("/api/queue/task", json=body, headers={"Idempotency-Key": key})
        for key in ("lost", "kept")
    )

    sql.execute("alter table treadle.replies drop constraint no_room")
    assert (lost.status_code, kept.status_code) == (422, 201)
    assert listing(http)["depth"] == 1
    [line] = server.child.events("queue.task_added", source="keyed")
    assert line["queue_id"] == kept.json()["queue_id"]
