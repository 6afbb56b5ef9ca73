"""Event streams: in order, each event once, none lost, whatever happens to the connection."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import psycopg
import pytest

from tests.drivers.http.servers import Conn, Served
from tests.drivers.http.streams import emit, stream
from tests.drivers.http.v1 import code_of
from treadle.api.v1.events import EventDetails


@contextmanager
def transaction(server: Served) -> Iterator[Conn]:
    with psycopg.connect(server.database_url) as conn:
        yield conn


def test_events_come_in_order_with_their_ids(server: Served, sql: Conn) -> None:
    with stream(server.url) as open_stream:
        assert open_stream.response.headers["content-type"].startswith("text/event-stream")
        assert open_stream.response.headers["x-accel-buffering"] == "no"
        assert open_stream.response.headers["cache-control"] == "no-store"
        ids = emit(sql, "a", "b", "c")

        events = open_stream.events(3)

    assert [event["id"] for event in events] == ids
    assert [event["key"] for event in events] == ["a", "b", "c"]
    assert open_stream.last_id == str(ids[-1])
    for event in events:
        EventDetails.model_validate(event)
        assert set(event) == set(EventDetails.model_fields)


def test_only_kinds_that_are_wanted_come(server: Served, sql: Conn) -> None:
    with stream(server.url, kind=["a.one", "b.*"]) as open_stream:
        for kind in ("a.one", "a.two", "b.one", "c", "b.two", "a.one"):
            emit(sql, kind, kind=kind)
        assert [event["kind"] for event in open_stream.events(4)] == [
            "a.one", "b.one", "b.two", "a.one",
        ]  # fmt: skip


@pytest.mark.parametrize("by", ["header", "parameter"])
def test_a_client_that_reconnects_continues_after_the_last_id(
    server: Served, sql: Conn, by: str
) -> None:
    with stream(server.url) as open_stream:
        emit(sql, "a", "b")
        open_stream.events(2)
        last = str(open_stream.last_id)
    emit(sql, "c")

    again = {"last_id": last} if by == "header" else {"after": last}
    with stream(server.url, **again) as open_stream:  # type: ignore[arg-type]
        emit(sql, "d")
        assert [event["key"] for event in open_stream.events(2)] == ["c", "d"]


def test_the_last_id_counts_more_than_the_parameter(server: Served, sql: Conn) -> None:
    first, _ = emit(sql, "a", "b")
    with stream(server.url, last_id=str(first), after="0") as open_stream:
        assert open_stream.events(1)[0]["key"] == "b"


def test_a_client_disconnected_before_the_first_event_misses_nothing(
    server: Served, sql: Conn
) -> None:
    emit(sql, "before")
    with stream(server.url) as open_stream:
        begun = open_stream.last_id
    emit(sql, "a")
    with stream(server.url, last_id=begun) as open_stream:
        assert open_stream.events(1)[0]["key"] == "a"


def test_more_than_a_page_is_read_from_the_beginning(server: Served, sql: Conn) -> None:
    names = [str(number) for number in range(350)]
    sql.execute(
        "select treadle.emit_event('word.said', '{}', each)"
        " from unnest(%s::text[]) with ordinality as names (each, at) order by at",
        [names],
    )
    with stream(server.url, after="0") as open_stream:
        emit(sql, "last")
        assert [event["key"] for event in open_stream.events(351)] == [*names, "last"]


def test_an_event_of_an_older_transaction_comes_first(server: Served, sql: Conn) -> None:
    with transaction(server) as older, stream(server.url) as open_stream:
        emit(older, "older")
        # Committed before it, and yet it comes after it.
        emit(sql, "newer")
        older.commit()

        assert [event["key"] for event in open_stream.events(2)] == ["older", "newer"]


def test_a_cut_between_transactions_that_overlap_loses_and_doubles_none(
    server: Served, sql: Conn
) -> None:
    with stream(server.url) as open_stream:
        emit(sql, "first")
        open_stream.events(1)
        last = open_stream.last_id
    with transaction(server) as older, transaction(server) as newer:
        emit(older, "older")
        emit(newer, "newer")
        newer.commit()
        with stream(server.url, last_id=last) as open_stream:
            older.commit()
            assert open_stream.events(1)[0]["key"] == "older"
            last = open_stream.last_id
    with stream(server.url, last_id=last) as open_stream:
        assert open_stream.events(1)[0]["key"] == "newer"


def test_writers_that_overlap_and_readers_that_come_and_go(server: Served, sql: Conn) -> None:
    """Eight writers commit out of order; a reader that is cut off all the time gets each once."""
    begun = emit(sql, "begin")[0]
    each, writers = 40, 8

    def write(name: int) -> None:
        chance = random.Random(name)
        with psycopg.connect(server.database_url) as conn:
            for number in range(each):
                emit(conn, f"{name}-{number}")
                time.sleep(chance.uniform(0, 0.01))
                conn.commit()

    threads = [threading.Thread(target=write, args=[name]) for name in range(writers)]
    for thread in threads:
        thread.start()
    chance, last = random.Random(0), str(begun)
    got: list[str] = []
    while len(got) < each * writers:
        with stream(server.url, last_id=last) as open_stream:
            wanted = min(chance.randint(1, 60), each * writers - len(got))
            got += [event["key"] for event in open_stream.events(wanted)]
            last = str(open_stream.last_id)
    for thread in threads:
        thread.join()

    assert len(got) == len(set(got))
    assert set(got) == {f"{name}-{number}" for name in range(writers) for number in range(each)}
    for name in range(writers):
        mine = [key for key in got if key.startswith(f"{name}-")]
        assert mine == [f"{name}-{number}" for number in range(each)]


@pytest.mark.parametrize(
    "after", ["nonsense", "-1", "1.2.3", "999999999", "9999999999999999999.1", "1e3"]
)
def test_a_place_that_does_not_exist_is_refused(server: Served, after: str) -> None:
    answer = httpx2.get(f"{server.url}/v1/events/stream", params={"after": after})
    assert code_of(answer) == (422, "invalid-argument")
