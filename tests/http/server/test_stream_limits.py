"""Many streams cost little: one listener for all, a bounded buffer for each, a clean end."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import psycopg

from tests.drivers.http.servers import Conn, Serve, Served, until
from tests.drivers.http.streams import Stream, emit, stream
from tests.drivers.http.v1 import code_of
from treadle.api import stream as streaming

LISTENERS = """
select count(*) from pg_stat_activity
where datname = current_database() and application_name = 'treadle-events'
"""
CONNECTIONS = """
    select count(*) from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend'
"""


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
    until(lambda: count(sql, query) == wanted)


def test_a_hundred_streams_share_one_listener_and_end_with_the_server(serve: Serve) -> None:
    server = serve(sse_max=100, server_pool_size=4, own_interpreter=True)
    with database(server) as sql, ExitStack() as stack:
        streams: list[Stream] = [stack.enter_context(stream(server.url))]
        emit(sql, "first")
        streams[0].events(1)
        before = memory_mb(server.child.pid)
        streams += [stack.enter_context(stream(server.url)) for _ in range(99)]

        names = [str(number) for number in range(50)]
        emit(sql, *names)
        for each in streams:
            assert [event["key"] for event in each.events(50)] == names

        assert count(sql, LISTENERS) == 1
        # The pool of the server, its listener, and this one.
        assert count(sql, CONNECTIONS) <= 6
        assert memory_mb(server.child.pid) - before < 30
        refused = httpx2.get(f"{server.url}/v1/events/stream")
        assert code_of(refused) == (503, "unavailable")
        assert refused.headers["retry-after"] == "5"

        server.child.send(signal.SIGTERM)
        # They end as an answer does, not as a broken connection.
        assert [each.rest() for each in streams] == [[]] * 100
        until(lambda: not server.child.running)
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
    until(lambda: status_of_stream(server) == 200)


def status_of_stream(server: Served) -> int:
    with httpx2.stream("GET", f"{server.url}/v1/events/stream") as answer:
        return answer.status_code


def test_an_event_wakes_the_streams(serve: Serve) -> None:
    """By itself this server looks again after ten minutes."""
    server = serve(constants=[(streaming, "POLL_S", 600)])
    with database(server) as sql, stream(server.url) as open_stream:
        wait_for(sql, LISTENERS, 1)
        for number in range(3):
            emit(sql, str(number))
            assert [event["key"] for event in open_stream.events(1)] == [str(number)]


def test_without_streams_there_is_no_listen_connection(server: Served, sql: Conn) -> None:
    wait_for(sql, LISTENERS, 0)
    with stream(server.url) as open_stream:
        wait_for(sql, LISTENERS, 1)
        emit(sql, "a")
        assert open_stream.events(1)[0]["key"] == "a"
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
