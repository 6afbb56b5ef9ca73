"""A claim that waits: woken by NOTIFY or by polling, and never kept for a disconnected client."""

import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest

from tests.drivers.http.servers import Conn, Serve, Served, until, waits_for_lock
from tests.drivers.http.v1 import enqueue, register, status_of, take
from treadle.api import long_poll
from treadle.api import server as serving

# A request that waits looks once, and by itself only when its time is up: whatever is found
# before that is found because of a notification.
LOOKS_ONCE = [(long_poll, "QUICK_LOOKS_S", []), (long_poll, "MARK_S", 600)]
# A claim that is woken has its answer long before the 30 s that it may wait.
BEFORE_ITS_TIME_IS_UP_S = 20


@contextmanager
def client(server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=60) as http:
        register(http)
        yield http


def is_idle(sql: Conn) -> bool:
    """Whether somebody waits: the queue is marked for NOTIFY."""
    return sql.execute("select from treadle.idle_queues").fetchone() is not None


def forget_idle(sql: Conn) -> None:
    """Remove the idle marks: the next request that finds nothing sets its mark again."""
    sql.execute("delete from treadle.idle_queues")


def listens(sql: Conn, besides: int = 0) -> int | None:
    """The process of the listener, once it listens: its first look, or an echo later on."""
    query = """
        select pid from pg_stat_activity
        where datname = current_database() and application_name = 'treadle-listener'
          and state = 'idle' and query similar to 'select pg_(backend_pid|notify)%%' and pid <> %s
    """
    found = sql.execute(query, (besides,)).fetchone()
    return None if found is None else int(found[0])


def test_a_waiting_claim_is_woken_when_a_task_comes(serve: Serve) -> None:
    server = serve(poll_s=600, constants=LOOKS_ONCE)
    with (
        client(server) as http,
        psycopg.connect(server.database_url, autocommit=True) as sql,
        ThreadPoolExecutor() as threads,
    ):
        # The first one makes the server listen, and is woken when it does.
        first = threads.submit(take, http, wait_seconds=30)
        until(lambda: listens(sql))
        enqueue(http)
        first.result()
        forget_idle(sql)
        waiting = threads.submit(take, http, wait_seconds=30)
        until(lambda: is_idle(sql))

        task_id = enqueue(http)

        claims = waiting.result(timeout=BEFORE_ITS_TIME_IS_UP_S)
        assert [claim["id"] for claim in claims] == [task_id]


def test_all_waiting_requests_share_one_connection(http: httpx2.Client, sql: Conn) -> None:
    register(http)
    with ThreadPoolExecutor(20) as threads:
        waiting = [threads.submit(take, http, wait_seconds=20) for _ in range(20)]
        until(lambda: is_idle(sql) and listens(sql))
        time.sleep(0.3)
        rows = sql.execute(
            "select application_name, count(*), count(*) filter (where state <> 'idle')"
            " from pg_stat_activity where datname = current_database()"
            " and application_name like 'treadle%' group by 1"
        ).fetchall()
        tasks = [enqueue(http) for _ in range(20)]
        found = [claim["id"] for each in waiting for claim in each.result()]

    used = {name: (count, busy) for name, count, busy in rows}
    assert used["treadle-listener"][0] == 1
    count, busy = used["treadle-server"]
    assert count <= 16
    assert busy <= 2
    assert sorted(found) == sorted(tasks)


def test_waiting_ends_when_the_time_is_up(http: httpx2.Client) -> None:
    register(http)
    began = time.monotonic()
    # Its client gives up after the longest time that a request may wait.
    assert take(http, wait_seconds=0.4) == []
    assert time.monotonic() - began >= 0.4


def test_without_notify_a_waiting_claim_looks_again(serve: Serve) -> None:
    server = serve(notify="false", poll_s=0.2, constants=LOOKS_ONCE)
    with (
        client(server) as http,
        psycopg.connect(server.database_url, autocommit=True) as sql,
        ThreadPoolExecutor() as threads,
    ):
        waiting = threads.submit(take, http, wait_seconds=30)
        until(lambda: is_idle(sql))

        task_id = enqueue(http)

        claims = waiting.result(timeout=BEFORE_ITS_TIME_IS_UP_S)
        assert [claim["id"] for claim in claims] == [task_id]


def test_a_listener_reconnects_after_a_lost_connection(serve: Serve) -> None:
    server = serve(poll_s=600, constants=LOOKS_ONCE)
    with (
        client(server) as http,
        psycopg.connect(server.database_url, autocommit=True) as sql,
        ThreadPoolExecutor() as threads,
    ):
        waiting = threads.submit(take, http, wait_seconds=30)
        until(lambda: is_idle(sql) and listens(sql))
        former = listens(sql) or 0
        forget_idle(sql)
        sql.execute("select pg_terminate_backend(%s)", (former,))
        # A listener that is back wakes everybody once.
        until(lambda: is_idle(sql) and listens(sql, besides=former))

        task_id = enqueue(http)

        claims = waiting.result(timeout=BEFORE_ITS_TIME_IS_UP_S)
        assert [claim["id"] for claim in claims] == [task_id]


def leave(conn: socket.socket) -> None:
    """Go away, and wait until the server has noticed: then it closes its side as well."""
    conn.shutdown(socket.SHUT_WR)
    conn.settimeout(30)
    assert conn.recv(1) == b""


def open_request(server: Served, body: bytes) -> socket.socket:
    """A claim on a connection of its own, that can be broken off."""
    address = urlsplit(server.url)
    conn = socket.create_connection((address.hostname, address.port))
    conn.sendall(
        b"POST /v1/claims HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    return conn


def test_a_client_that_left_claims_nothing(server: Served, http: httpx2.Client, sql: Conn) -> None:
    register(http)
    with closing(open_request(server, b'{"agent": "a", "wait_seconds": 20}')) as gone:
        until(lambda: is_idle(sql))
        leave(gone)

    task_id = enqueue(http)
    time.sleep(0.5)

    assert status_of(http, task_id) == "ready"
    # Not even for a moment.
    assert _token(sql, task_id) is None


def test_tasks_claimed_for_a_disconnected_client_are_released(
    server: Served, http: httpx2.Client, sql: Conn
) -> None:
    """It leaves while its claim is under way: the agent's row is locked meanwhile."""
    register(http, max_concurrent_tasks=5)
    task_id = enqueue(http)
    with psycopg.connect(server.database_url) as other:
        other.execute("select from treadle.agents where id = 'a' for update")
        with closing(open_request(server, b'{"agent": "a"}')) as gone:
            until(lambda: waits_for_lock(sql))
            leave(gone)
        other.rollback()

    kinds = "select from treadle.attempts where task_id = %s"
    until(lambda: status_of(http, task_id) == "ready" and _token(sql, task_id) is not None)
    assert sql.execute(kinds, (task_id,)).fetchone() is None
    assert [claim["id"] for claim in take(http)] == [task_id]


def _token(sql: Conn, task_id: str) -> object:
    """The token of the last claim that ended."""
    found = sql.execute("select last_token from treadle.tasks where id = %s", (task_id,)).fetchone()
    return None if found is None else found[0]


def test_a_stopping_server_ends_waiting_requests(serve: Serve) -> None:
    # A server that waits for the request does not end in time.
    server = serve(constants=[(serving, "DRAIN_S", 600)])
    with client(server) as http, ThreadPoolExecutor() as threads:
        waiting = threads.submit(take, http, wait_seconds=30)
        with psycopg.connect(server.database_url, autocommit=True) as sql:
            until(lambda: is_idle(sql))
        server.child.send(signal.SIGTERM)
        assert waiting.result(timeout=BEFORE_ITS_TIME_IS_UP_S) == []
        until(lambda: not server.child.running)


def test_the_result_of_a_task_is_waited_for(http: httpx2.Client) -> None:
    register(http)
    task_id = enqueue(http)
    early = http.get(f"/v1/tasks/{task_id}/result")

    def work() -> None:
        [claim] = take(http)
        http.post(
            f"/v1/claims/{task_id}/complete", json={"token": claim["token"], "output": {"n": 1}}
        )

    later = threading.Timer(0.3, work)
    later.start()
    answer = http.get(f"/v1/tasks/{task_id}/result", params={"wait_seconds": 20})
    later.join()

    assert (early.status_code, early.json()["status"]) == (202, "ready")
    assert answer.status_code == 200
    assert answer.json() == {
        "id": task_id,
        "status": "completed",
        "output": {"n": 1},
        "failure_class": None,
        "failure_reason": None,
    }


@pytest.mark.parametrize("wait", ["31", "nan", "-1", "x"])
def test_a_request_waits_for_a_limited_time(http: httpx2.Client, wait: str) -> None:
    task_id = enqueue(http)
    answer = http.get(f"/v1/tasks/{task_id}/result", params={"wait_seconds": wait})
    assert answer.status_code == 422
