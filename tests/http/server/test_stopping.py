"""A stopping server answers waiting requests and does not wait for slow clients."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2
import psycopg
import pytest

from tests.drivers.http.servers import Conn, Serve, Served, until, waits_for_lock
from tests.drivers.http.sockets import answer, connect, head
from tests.drivers.http.v1 import enqueue
from treadle.api import server as serving

JSON = "Content-Type: application/json"
# Longer than any test waits: a server that waits for a slow client does not end in time.
PATIENT = [(serving, "DRAIN_S", 600)]


@contextmanager
def stopping(server: Served) -> Iterator[None]:
    """Stop a server; when the block ends so has the server, without complaint."""
    server.child.send(signal.SIGTERM)
    yield
    until(lambda: not server.child.running)
    assert [line for line in server.child.lines() if line["level"] == "error"] == []


def test_a_request_that_waits_for_a_result_gets_202_when_the_server_stops(serve: Serve) -> None:
    server = serve(constants=PATIENT)
    with (
        httpx2.Client(base_url=server.url, timeout=60) as http,
        psycopg.connect(server.database_url, autocommit=True) as sql,
        ThreadPoolExecutor() as threads,
    ):
        sql.execute("select treadle.define_type('code')")
        task_id = enqueue(http)
        path = f"/v1/tasks/{task_id}/result"
        waiting = threads.submit(http.get, path, params={"wait_seconds": 30})
        until(lambda: looks_for_results(sql))

        with stopping(server):
            found = waiting.result()

    assert (found.status_code, found.json()["status"]) == (202, "ready")


def looks_for_results(sql: Conn) -> bool:
    """Whether somebody has waited for a result already."""
    query = """
        select from pg_stat_activity
        where datname = current_database() and query like '%%read_results%%'
          and pid <> pg_backend_pid()
    """
    return sql.execute(query).fetchone() is not None


def test_a_body_that_is_still_coming_is_not_waited_for(serve: Serve) -> None:
    server = serve(body_timeout_s=60, constants=PATIENT)
    with connect(server.url) as line, connect(server.url) as other:
        length = "Content-Length: 100"
        line.sendall(head("POST", "/v1/tasks", JSON, length) + b'{"type"')
        # An answer to this one has no body.
        other.sendall(head("HEAD", "/v1/tasks", JSON, length) + b"{")
        assert httpx2.get(f"{server.url}/healthz").status_code == 200

        with stopping(server):
            found = answer(line)
            short = other.recv(65536)

    assert (found.status, found.problem["code"]) == (503, "unavailable")
    assert found.headers["connection"] == "close"
    assert found.closed
    assert short.startswith(b"HTTP/1.1 503")
    assert short.endswith(b"\r\n\r\n")


@pytest.mark.requirement("B16")
def test_a_request_without_a_database_response_gets_503_when_the_server_stops(
    serve: Serve,
) -> None:
    server = serve(constants=[(serving, "DRAIN_S", 1)])
    with (
        httpx2.Client(base_url=server.url, timeout=60) as http,
        psycopg.connect(server.database_url, autocommit=True) as sql,
        ThreadPoolExecutor() as threads,
    ):
        sql.execute("select treadle.define_type('code')")
        with sql.transaction():
            sql.execute("lock table treadle.tasks")
            waiting = threads.submit(http.post, "/v1/tasks", json={"type": "code"})
            until(lambda: waits_for_lock(sql))

            server.child.send(signal.SIGTERM)

            found = waiting.result()

    until(lambda: not server.child.running)
    assert (found.status_code, found.json()["code"]) == (503, "unavailable")
    assert found.json()["detail"] == "the server is shutting down"
    assert not [line for line in server.child.lines() if "ASGI" in line["event"]]
