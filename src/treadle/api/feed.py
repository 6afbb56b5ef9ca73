"""Events for many streams: one connection listens, one reader reads, all streams share what it got.

Events come in the order of `read_events`, which loses none. A stream that resumes reads what it
missed by itself, page by page, and then joins the others. One that does not keep up is cut: what
waits for it is bounded, and with its last id it can go on where it was.
"""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import structlog
from pydantic_core import to_json

from treadle.api.wire import record
from treadle.app import Treadle
from treadle.db.listener import Ear
from treadle.errors import TreadleError, Unavailable
from treadle.models import Event

log = structlog.get_logger(__name__)
BATCH = 100
# What may wait for a stream: events, and bytes of them.
MOST_LINES = 2000
MOST_BYTES = 4 * 1024 * 1024
POLL_S = 1.0
RETRY_S = 2.0
# How long a new stream waits for the reader to begin.
BEGIN_S = 10.0
# Nothing new for so long is said too.
BEAT_S = 15.0

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Line:
    """An event as it goes out, made once for all streams."""

    event: Event
    place: Place
    text: bytes

    @staticmethod
    def of(event: Event) -> "Line":
        shown = {name: getattr(event, name) for name in _SHOWN}
        text = b"id: %d\ndata: %b\n\n" % (event.id, to_json(record(shown)))
        return Line(event, place_of(event.place), text)


_SHOWN = ("id", "at", "kind", "task_id", "dag_id", "queue", "actor", "key", "data")


class Cut(Exception):
    """The stream is over: the server ends, or the client was too slow."""


class Subscription:
    """What waits for one stream."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.over = False
        self._news = anyio.Event()
        self._lines: deque[Line] = deque()
        self._bytes = 0

    def offer(self, lines: list[Line]) -> None:
        """Hand over what is new; too much of it ends the stream."""
        self._lines.extend(lines)
        self._bytes += sum(len(line.text) for line in lines)
        if len(self._lines) > MOST_LINES or self._bytes > MOST_BYTES:
            log.warning("feed.cut", lines=len(self._lines), bytes=self._bytes)
            self.end()
        self._news.set()

    def end(self) -> None:
        self.over = True
        self._lines.clear()
        self._news.set()

    async def take(self) -> list[Line]:
        """Wait for what is new, and take it; nothing after a while without news."""
        with anyio.move_on_after(BEAT_S):
            while not self.over:
                lines = [line for line in self._lines if line.place > self.place]
                self._lines.clear()
                self._bytes = 0
                if lines:
                    self.place = lines[-1].place
                    return lines
                self._news = anyio.Event()
                await self._news.wait()
        if self.over:
            raise Cut
        return []


class Feed:
    """The events of one server process."""

    def __init__(self, treadle: Treadle, most: int) -> None:
        self._treadle = treadle
        self._most = most
        self.streams = 0
        self.subscriptions: set[Subscription] = set()
        self._place: str | None = None
        self._ready = anyio.Event()
        self._wanted = anyio.Event()
        self._ended = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read events while there are streams; the block ends with the server."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run)
            yield
            self.end()
            tasks.cancel_scope.cancel()

    def end(self) -> None:
        """End every stream, and let no more begin."""
        self._ended = True
        self._ready.set()
        for each in self.subscriptions:
            each.end()

    @asynccontextmanager
    async def seat(self) -> AsyncIterator[None]:
        """One of the streams that this server may have at once."""
        if self._ended or self.streams >= self._most:
            raise Unavailable(
                "this server has as many event streams as it may",
                hint="Try again later, or read GET /v1/events.",
                retry_after_s=5,
            )
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1

    async def start(self, after: str | None) -> str:
        """The place where a stream begins: after an event, or where the future begins."""
        gateway = await self._treadle.gateway()
        if after is not None:
            return await gateway.event_place(after)
        _, place = await gateway.read_events(None, None, 1)
        return place

    async def follow(self, place: str) -> AsyncGenerator[tuple[str, list[Line]]]:
        """Events after a place, for ever, with the place that is reached; now and then none."""
        full = True
        while full and not self._ended:
            lines, place, full = await self._read(place)
            yield place, lines
        async with self._joined(place_of(place)) as subscription:
            # What came after the last page; what is handed over meanwhile comes after it.
            full = True
            while full and not self._ended:
                lines, place, full = await self._read(place)
                yield place, lines
            subscription.place = place_of(place)
            with suppress(Cut):
                while True:
                    lines = await subscription.take()
                    place = lines[-1].event.place if lines else place
                    yield place, lines

    @asynccontextmanager
    async def _joined(self, place: Place) -> AsyncIterator[Subscription]:
        subscription = Subscription(place)
        self.subscriptions.add(subscription)
        try:
            await self._begun()
            if self._ended:
                subscription.end()
            yield subscription
        finally:
            self.subscriptions.discard(subscription)

    async def _begun(self) -> None:
        """Wait until the reader reads: what it finds from then on is handed over."""
        self._wanted.set()
        with anyio.move_on_after(BEGIN_S):
            await self._ready.wait()
        if not self._ready.is_set():
            raise Unavailable("events cannot be read now")

    async def _read(self, place: str) -> tuple[list[Line], str, bool]:
        """A page of events after a place, the place reached, and whether there may be more."""
        gateway = await self._treadle.gateway()
        events, reached = await gateway.read_events(place, None, BATCH)
        return [Line.of(event) for event in events], reached, len(events) == BATCH

    async def _run(self) -> None:
        while True:
            await self._wanted.wait()
            try:
                await self._listen()
            except (TreadleError, OSError) as error:
                log.warning("feed.lost", error=str(error), retry_in_s=RETRY_S)
                await anyio.sleep(RETRY_S)

    async def _listen(self) -> None:
        """Hand new events to the streams, until there is no stream."""
        app = self._treadle
        gateway = await app.gateway()
        settings = app.settings
        url = (settings.listen_url or app.url) if settings.notify else None
        ear = Ear(gateway, url, None)
        try:
            while True:
                await ear.open()
                if self._place is None:
                    _, self._place = await gateway.read_events(None, None, BATCH)
                    self._ready.set()
                lines, self._place, full = await self._read(self._place)
                for each in list(self.subscriptions) if lines else ():
                    each.offer(lines)
                if not full:
                    await ear.wait(POLL_S)
                if self.streams == 0:
                    return self._rest()
        finally:
            await ear.close()

    def _rest(self) -> None:
        """Without streams nobody listens, and the next one begins with what is new then."""
        self._place = None
        self._wanted = anyio.Event()
        if not self._ended:
            self._ready = anyio.Event()


def place_of(text: str) -> Place:
    """A place among the events, to compare it with others."""
    xid, _, number = text.partition(".")
    return int(xid), int(number)
