"""A client that does not read is disconnected and logged, and its buffer is bounded."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import psycopg
import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.servers import Conn
from tests.drivers.http.streams import emit
from tests.drivers.processes.children import until
from treadle import Treadle
from treadle.api import stream as feeds
from treadle.api import stream as streams
from treadle.api.stream import EventBroadcaster, EventStream
from treadle.errors import Unavailable


class Client:
    """The other side of an answer; it may stop to read."""

    def __init__(self) -> None:
        self.reads = anyio.Event()
        self.reads.set()
        self.gone = anyio.Event()
        self.said: list[dict[str, Any]] = []
        # What it does not take before it is told so.
        self.holds: dict[str, anyio.Event] = {}
        self.held = ""
        self._news = anyio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.reads.wait()
        for text, allowed in self.holds.items():
            if text.encode() in message.get("body", b""):
                self.held = text
                await allowed.wait()
        self.said.append(message)
        self._news.set()

    @property
    def text(self) -> str:
        return b"".join(each.get("body", b"") for each in self.said).decode()

    @property
    def ids(self) -> list[str]:
        lines = self.text.splitlines()
        return [line.removeprefix("id: ") for line in lines if line.startswith("id: ")]

    async def until(self, text: str) -> None:
        """Wait until it has read this."""
        with anyio.fail_after(10):
            while text not in self.text:
                self._news = anyio.Event()
                await self._news.wait()

    @property
    def is_whole(self) -> bool:
        return self.said[-1].get("more_body") is False


@pytest.fixture(scope="module")
def sql(new_database: NewDatabase) -> Iterator[Conn]:
    with new_database() as url, psycopg.connect(url, autocommit=True) as conn:
        yield conn


@asynccontextmanager
async def feeding(sql: Conn, most: int = 10) -> AsyncIterator[EventBroadcaster]:
    """The feed of a server."""
    url = f"postgresql:///{sql.info.dbname}?host={sql.info.host}&port={sql.info.port}&user=postgres"
    async with Treadle(url) as app:
        source = EventBroadcaster(app, most)
        async with source.running():
            yield source


@asynccontextmanager
async def reading(
    source: EventBroadcaster, after: str | None = None, *holds: str
) -> AsyncIterator[Client]:
    """A client that reads the stream of a feed, up to what it holds up."""
    client = Client()
    client.holds = {text: anyio.Event() for text in holds}
    answer = EventStream(source, after, lambda event: event.kind != "not.wanted")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer, {"type": "http"}, client.receive, client.send)
        others = len(source.subscriptions)
        await until(lambda: client.held or len(source.subscriptions) > others)
        yield client
        tasks.cancel_scope.cancel()


async def test_silence_is_said_with_the_place_that_is_reached(
    sql: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "BEAT_S", 0.1)
    async with feeding(sql) as source, reading(source) as client:
        begun = client.text
        await client.until(":\nid: ")
        emit(sql, "x", kind="not.wanted")
        await until(lambda: len(set(client.ids)) > 1)
    assert client.ids[-1] not in begun


async def test_a_client_that_stops_to_read_is_given_up(
    sql: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "SEND_S", 0.2)
    async with feeding(sql) as source, reading(source) as client:
        client.reads = anyio.Event()
        emit(sql, "a")
        await until(lambda: not source.streams)
    assert not client.is_whole


async def test_what_waits_for_a_stream_is_bounded(
    sql: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "MOST_LINES", 20)
    async with feeding(sql) as source, reading(source) as slow, reading(source) as quick:
        slow.reads = anyio.Event()
        for number in range(60):
            emit(sql, f"n{number}")
            await quick.until(f'"n{number}"')
        slow.reads.set()
        await until(lambda: slow.is_whole)

        # The stream ended, and the client continues where it was.
        assert '"n59"' not in slow.text
        async with reading(source, slow.ids[-1]) as again:
            await again.until('"n59"')
    got = [line for line in (slow.text + again.text).splitlines() if '"n' in line]
    assert [f'"n{number}"' in got[number] for number in range(60)] == [True] * 60
    assert len(got) == 60


async def test_large_events_count_by_their_size(sql: Conn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MOST_BYTES", 10_000)
    async with feeding(sql) as source, reading(source) as slow, reading(source) as quick:
        slow.reads = anyio.Event()
        emit(sql, "held")
        await quick.until('"held"')
        for number in range(10):
            data = f'"{"x" * 3000}"'
            sql.execute("select treadle.emit_event('word.said', %s, %s)", [data, f"large{number}"])
            await quick.until(f'"large{number}"')
        emit(sql, "last")
        await quick.until('"last"')
        slow.reads.set()
        await until(lambda: slow.is_whole)
    assert slow.text.count("large") < 10


async def test_a_client_that_goes_away_gives_its_seat_back(sql: Conn) -> None:
    async with feeding(sql, most=1) as source:
        async with reading(source) as client:
            with pytest.raises(Unavailable):
                async with source.slot():
                    pass
            client.gone.set()
            await until(lambda: not source.streams)
        async with source.slot():
            assert source.streams == 1


async def test_a_stream_does_not_last_for_ever(sql: Conn, monkeypatch: pytest.MonkeyPatch) -> None:
    async with feeding(sql) as source, reading(source) as client:
        monkeypatch.setattr(streams, "LONGEST_S", 0.0)
        emit(sql, "a")
        await until(lambda: not source.streams)
    assert client.is_whole


async def test_events_during_the_start_of_a_stream_are_sent_once(
    sql: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "BATCH", 2)
    [begin] = emit(sql, "begin")
    async with feeding(sql) as source, reading(source) as quick:
        others = set(source.subscriptions)
        emit(sql, "a")
        await quick.until('"a"')
        async with reading(source, str(begin), '"a"', '"b1"') as late:
            # Read by itself, and not with the others yet: these are handed to them only.
            emit(sql, "b1", "b2", "b3")
            await quick.until('"b3"')
            late.holds['"a"'].set()
            await until(lambda: late.held == '"b1"')
            # With the others, and still reading by itself: this comes both ways.
            emit(sql, "c")
            await quick.until('"c"')
            [joined] = source.subscriptions - others
            place = joined.place
            late.holds['"b1"'].set()
            await until(lambda: joined.place > place)
            emit(sql, "d")
            await late.until('"d"')
    keys = [line for line in late.text.splitlines() if line.startswith("data:")]
    order = ["a", "b1", "b2", "b3", "c", "d"]
    assert [f'"key":"{key}"' in line for key, line in zip(order, keys, strict=True)] == [True] * 6
