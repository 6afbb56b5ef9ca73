"""Refusals that ordinary requests meet leave no errors in the log of PostgreSQL."""

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import httpx2
import psycopg
import pytest

from tests.drivers.databases import OwnServer
from tests.drivers.http import queue, v1, work
from tests.drivers.http.servers import Conn, Serve
from tests.drivers.http.v1 import act, code_of
from treadle.db.install.migrate import migrate

AGENT = "http://agent-1:9000"
Answers = list[tuple[int, str]]


@pytest.fixture
def logged(own_server: OwnServer) -> tuple[Path, str]:
    """The log of a server of the test's own, and a database on it."""
    server = own_server(fsync="off", log_min_messages="warning", log_min_error_statement="error")
    migrate(server.url())
    return server.data_dir / "server.log", server.url()


def works(http: httpx2.Client, sql: Conn) -> Answers:
    """An illegal change, an agent that is busy, and an item that has changed."""
    item, other = work.brought(http, "in_progress"), work.brought(http, "dispatched")
    bodies: list[tuple[str, dict[str, str]]] = [
        (item["id"], {"status": "queued"}),
        (other["id"], {"status": "in_progress"}),
        (item["id"], {"notes": "late", "unless_updated_since": item["created_at"]}),
    ]
    answers = [http.patch(f"/work/{item_id}", json=body) for item_id, body in bodies]
    return [code_of(answer) for answer in [*answers, http.delete(f"/work/{item['id']}")]]


def submits(http: httpx2.Client, sql: Conn) -> Answers:
    """A full queue, and an entry that has ended."""
    first = queue.submit(http)["queue_id"]
    full = http.post("/api/queue/task", json={"prompt": "x"})
    sql.execute(
        "update treadle.tasks set status = 'completed', completed_at = treadle.clock()"
        " where queue = 'push'"
    )
    ended = http.post(f"/api/queue/{first}/cancel")
    return [code_of(full), code_of(ended)]


def enqueues(http: httpx2.Client, sql: Conn) -> Answers:
    """A queue with a limit."""
    sql.execute("""select treadle.define_queue('small', '{"max_depth": 1}')""")
    v1.enqueue(http, queue="small")
    body = {"type": "code", "queue": "small"}
    keyed = http.post("/v1/tasks", json=body, headers={"idempotency-key": "full"})
    return [code_of(http.post("/v1/tasks", json=body)), code_of(keyed)]


def loses(http: httpx2.Client, sql: Conn) -> Answers:
    """A claim that was taken over."""
    v1.enqueue(http, retry={"strategy": "immediate"})
    v1.register(http, "a")
    v1.register(http, "b")
    claim = v1.take_one(http, "a")
    sql.execute("update treadle.tasks set lease_until = lease_until - interval '1 hour'")
    sql.execute("select treadle.reap_claims()")
    sql.execute("select treadle.promote_tasks()")
    v1.take_one(http, "b")
    answers = [act(http, claim, verb) for verb in ("complete", "heartbeat", "release", "start")]
    return [code_of(answer) for answer in [*answers, act(http, claim, "fail", error="late")]]


def decides(http: httpx2.Client, sql: Conn) -> Answers:
    """The same in the harness protocol."""
    http.post("/harness/tasks", json={"agent_url": AGENT, "payload": {}})
    token, other = str(uuid4()), str(uuid4())
    asked = {"agent_url": AGENT, "claim_token": token}
    task_id = http.post("/harness/next", json=asked).json()["task_id"]
    sql.execute("update treadle.tasks set lease_until = lease_until - interval '1 hour'")
    sql.execute("select treadle.requeue_harness_tasks()")
    again = http.post("/harness/next", json={"agent_url": AGENT, "claim_token": other})
    assert again.json()["task_id"] == task_id
    said: list[tuple[str, dict[str, object]]] = [
        ("heartbeat", {}),
        ("complete", {"decision": {}}),
        ("fail", {"error": "late"}),
    ]
    return [
        code_of(http.post(f"/harness/tasks/{task_id}/{verb}", json={"claim_token": token, **more}))
        for verb, more in said
    ]


def repeats(http: httpx2.Client, sql: Conn) -> Answers:
    """An idempotency key in use, and one of another request."""
    with sql.transaction():
        sql.execute("select treadle.begin_reply('k', 'local', 'POST /v1/tasks', 'x')")
        busy = http.post("/v1/tasks", json={"type": "code"}, headers={"idempotency-key": "k"})
    answers = [
        http.post("/v1/tasks", json={"type": name}, headers={"idempotency-key": "l"})
        for name in ("code", "review")
    ]
    return [code_of(busy), code_of(answers[1])]


REFUSALS: dict[Callable[[httpx2.Client, Conn], Answers], Answers] = {
    works: [
        (409, "illegal-transition"),
        (409, "already-taken"),
        (409, "illegal-transition"),
        (409, "illegal-transition"),
    ],
    submits: [(503, "queue-full"), (409, "illegal-transition")],
    enqueues: [(503, "queue-full")] * 2,
    loses: [(409, "claim-lost")] * 5,
    decides: [(409, "claim-lost")] * 3,
    repeats: [(409, "request-in-flight"), (422, "key-reused")],
}


def test_what_ordinary_requests_are_refused_is_not_an_error_in_the_log(
    logged: tuple[Path, str], serve: Serve
) -> None:
    log, url = logged
    served = serve(database_url=url, queue_max_size=1)
    with (
        psycopg.connect(url, autocommit=True) as sql,
        httpx2.Client(base_url=served.url, timeout=30) as http,
    ):
        sql.execute("select treadle.define_type(name) from unnest('{code,review}'::text[]) as name")
        before = len(log.read_text())

        for drive, answers in REFUSALS.items():
            assert drive(http, sql) == answers, drive.__doc__

        # Of what is logged, something is seen.
        with pytest.raises(psycopg.Error):
            sql.execute("select treadle.update_work_item(null, '{}')")
    said = log.read_text()[before:]
    assert said.count("ERROR:") == 1, said
    assert "update_work_item" in said
