"""Streams are many, and cost little: one listener for all, a bound for each, a clean end."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import psycopg

from tests.http.conftest import Serve
from tests.http.native import code_of
from tests.http.streaming import Stream, stream
from tests.http.support import Conn, Served
from tests.http.test_v1_stream import emit
from treadle.api.stream import POLL_S

LISTENERS = """
select count(*) from pg_stat_activity
where datname = current_database() and application_name = 'treadle-events'
"""
CONNECTIONS = "select count(*) from pg_stat_activity where datname = current_database()"


@contextmanager
def database(server: Served) -> Iterator[Conn]:
    with psycopg.connect(server.database_url, autocommit=True) as conn:
        yield conn


def count(sql: Conn, query: str) -> int:
    row = sql.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])


def memory_mb(pid: int) -> float:
    """What a process has in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2


def wait_for(sql: Conn, query: str, wanted: int) -> None:
    until = time.monotonic() + 10
    while count(sql, query) != wanted:
        assert time.monotonic() < until, f"{count(sql, query)}, not {wanted}: {query}"
        time.sleep(0.05)


def test_a_hundred_streams_share_one_listener_and_end_with_the_server(serve: Serve) -> None:
    server = serve(sse_max=100, own_interpreter=True)
    with database(server) as sql, ExitStack() as stack:
        streams: list[Stream] = [stack.enter_context(stream(server.url))]
        emit(sql, "first")
        streams[0].events(1)
        before = memory_mb(server.child.pid)
        streams += [stack.enter_context(stream(server.url)) for _ in range(99)]

        names = [str(number) for number in range(200)]
        emit(sql, *names)
        for each in streams:
            assert [event["key"] for event in each.events(200)] == names

        assert count(sql, LISTENERS) == 1
        # The pool of the server, its listener, and this one.
        assert count(sql, CONNECTIONS) <= 6
        assert memory_mb(server.child.pid) - before < 30
        refused = httpx2.get(f"{server.url}/v1/events/stream")
        assert code_of(refused) == (503, "unavailable")
        assert refused.headers["retry-after"] == "5"

        began = time.monotonic()
        server.child.send(signal.SIGTERM)
        # They end as an answer does, not as a broken connection.
        assert [each.rest() for each in streams] == [[]] * 100
        while server.child.running:
            assert time.monotonic() - began < 5
            time.sleep(0.02)
    assert server.child.events("server.stopped")
    assert not [line for line in server.child.lines() if line["level"] == "error"]


def test_the_place_of_a_stream_that_went_away_is_free(serve: Serve) -> None:
    server = serve(sse_max=1, notify=False)
    with database(server) as sql, stream(server.url) as open_stream:
        emit(sql, "a")
        # Without a listener too, a little later.
        assert open_stream.events(1)[0]["key"] == "a"
        assert count(sql, LISTENERS) == 0
        assert httpx2.get(f"{server.url}/v1/events/stream").status_code == 503
    until = time.monotonic() + 10
    status = 503
    while status == 503:
        assert time.monotonic() < until
        with httpx2.stream("GET", f"{server.url}/v1/events/stream") as answer:
            status = answer.status_code
    assert status == 200


def test_without_streams_nobody_listens(server: Served, sql: Conn) -> None:
    wait_for(sql, LISTENERS, 0)
    with stream(server.url) as open_stream:
        wait_for(sql, LISTENERS, 1)
        emit(sql, "a")
        assert open_stream.events(1)[0]["key"] == "a"
        began = time.monotonic()
        for number in range(10):
            emit(sql, f"b{number}")
            open_stream.events(1)
        # A server that only looks by itself needs a whole turn for each of them.
        assert time.monotonic() - began < 8 * POLL_S
    wait_for(sql, LISTENERS, 0)
    wait_for(sql, "select count(*) from treadle.event_listeners", 0)
    with stream(server.url) as open_stream:
        emit(sql, "c")
        assert open_stream.events(1)[0]["key"] == "c"


def test_connections_may_be_lost_without_a_loss(server: Served, sql: Conn) -> None:
    with stream(server.url) as open_stream:
        emit(sql, "a")
        open_stream.events(1)
        sql.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
        emit(sql, "b", "c")
        assert [event["key"] for event in open_stream.events(2)] == ["b", "c"]
