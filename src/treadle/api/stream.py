"""Server-sent events: one LISTEN connection and one reader serve all streams of a process.

Events come in the order of `read_events`, which loses none. A stream that resumes reads the events
it missed page by page and then joins the others. The buffer of a stream is bounded. A client that
does not keep up is disconnected, and can resume after its last id.
"""

import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import structlog
from anyio import CancelScope
from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from treadle.api.bodies import json_row
from treadle.app import Treadle
from treadle.db.listener import EventListener
from treadle.errors import TreadleError, Unavailable
from treadle.models import Event

log = structlog.get_logger(__name__)
BATCH = 100
# The buffer of a stream: events, and their bytes.
MOST_LINES = 2000
MOST_BYTES = 4 * 1024 * 1024
POLL_S = 1.0
RETRY_S = 2.0
# How long a new stream waits for the reader to start.
BEGIN_S = 10.0
# A stream without events sends a comment after this time.
BEAT_S = 15.0

EventCursor = tuple[int, int]
MEDIA_TYPE = "text/event-stream"
# A client that reads nothing for this time is disconnected.
SEND_S = 20.0
# A stream ends after this time; the client reconnects and is authenticated again.
LONGEST_S = 3600.0
RETRY_MS = 2000
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class EncodedEvent:
    """An event as it is sent, encoded once for all streams."""

    event: Event
    place: EventCursor
    text: bytes

    @staticmethod
    def of(event: Event) -> "EncodedEvent":
        shown = {name: getattr(event, name) for name in _SHOWN}
        text = b"id: %d\ndata: %b\n\n" % (event.id, to_json(json_row(shown)))
        return EncodedEvent(event, place_of(event.place), text)


_SHOWN = ("id", "at", "kind", "task_id", "dag_id", "queue", "actor", "key", "data")


class StreamEnded(Exception):
    """The server stops, or the client was too slow."""


class Subscription:
    """The buffer of one stream."""

    def __init__(self, place: EventCursor) -> None:
        self.place = place
        self.over = False
        self._news = anyio.Event()
        self._lines: deque[EncodedEvent] = deque()
        self._bytes = 0

    def offer(self, lines: list[EncodedEvent]) -> None:
        """Add new events; a full buffer ends the stream."""
        self._lines.extend(lines)
        self._bytes += sum(len(line.text) for line in lines)
        if len(self._lines) > MOST_LINES or self._bytes > MOST_BYTES:
            log.warning("stream.buffer_full", lines=len(self._lines), bytes=self._bytes)
            self.end()
        self._news.set()

    def end(self) -> None:
        self.over = True
        self._lines.clear()
        self._news.set()

    async def take(self) -> list[EncodedEvent]:
        """Wait for new events and take them; an empty list after BEAT_S without any."""
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
            raise StreamEnded
        return []


class EventBroadcaster:
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
        """Read events while there are streams, until the server stops."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run)
            yield
            self.end()
            tasks.cancel_scope.cancel()

    def end(self) -> None:
        """End every stream and accept no more."""
        self._ended = True
        self._ready.set()
        for each in self.subscriptions:
            each.end()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Count a stream against the limit of this server."""
        if self._ended or self.streams >= self._most:
            raise Unavailable(
                "this server has no room for more event streams",
                hint="Try again later, or read GET /v1/events.",
                retry_after_s=5,
            )
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1

    async def start(self, after: str | None) -> str:
        """The cursor at which a stream begins: after an event, or after all that exist."""
        db = self._treadle.db
        if after is not None:
            return await db.events.place(after)
        _, place = await db.events.read(None, None, 1)
        return place

    async def follow(self, place: str) -> AsyncGenerator[tuple[str, list[EncodedEvent]]]:
        """Yield the events after a cursor and the cursor reached; the list may be empty."""
        full = True
        while full and not self._ended:
            lines, place, full = await self._read(place)
            yield place, lines
        async with self._joined(place_of(place)) as subscription:
            # Events between the last page and the subscription.
            full = True
            while full and not self._ended:
                lines, place, full = await self._read(place)
                yield place, lines
            subscription.place = place_of(place)
            with suppress(StreamEnded):
                while True:
                    lines = await subscription.take()
                    place = lines[-1].event.place if lines else place
                    yield place, lines

    @asynccontextmanager
    async def _joined(self, place: EventCursor) -> AsyncIterator[Subscription]:
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
        """Wait until the reader has started, so that no event is missed."""
        self._wanted.set()
        with anyio.move_on_after(BEGIN_S):
            await self._ready.wait()
        if not self._ready.is_set():
            raise Unavailable("events cannot be read at the moment")

    async def _read(self, place: str) -> tuple[list[EncodedEvent], str, bool]:
        """A page of events, the cursor reached, and whether there may be more."""
        events, reached = await self._treadle.db.events.read(place, None, BATCH)
        return [EncodedEvent.of(event) for event in events], reached, len(events) == BATCH

    async def _run(self) -> None:
        while True:
            await self._wanted.wait()
            try:
                await self._listen()
            except (TreadleError, OSError) as error:
                log.warning("stream.read_failed", error=str(error), retry_in_s=RETRY_S)
                await anyio.sleep(RETRY_S)

    async def _listen(self) -> None:
        """Pass new events to the streams until there is no stream."""
        app = self._treadle
        db = app.db
        settings = app.settings
        url = (settings.listen_url or app.url) if settings.notify else None
        listener = EventListener(db.events, url, None)
        try:
            while True:
                await listener.open()
                if self._place is None:
                    _, self._place = await db.events.read(None, None, BATCH)
                    self._ready.set()
                lines, self._place, full = await self._read(self._place)
                for each in list(self.subscriptions) if lines else ():
                    each.offer(lines)
                if not full:
                    await listener.wait(POLL_S)
                if self.streams == 0:
                    return self._rest()
        finally:
            await listener.close()

    def _rest(self) -> None:
        """Stop reading; the next stream starts with the events that are new then."""
        self._place = None
        self._wanted = anyio.Event()
        if not self._ended:
            self._ready = anyio.Event()


def place_of(text: str) -> EventCursor:
    """Parse a cursor so that it can be compared."""
    xid, _, number = text.partition(".")
    return int(xid), int(number)


class EventStream(Response):
    """Sends events as `id` and `data`, and a comment after 15 seconds without one."""

    media_type = MEDIA_TYPE

    def __init__(
        self, source: EventBroadcaster, after: str | None, wanted: Callable[[Event], bool]
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._feed = source
        self._after = after
        self._wanted = wanted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Errors before the first byte become problem documents; later ones end the stream."""
        async with self._feed.slot():
            place = await self._feed.start(self._after)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_on_disconnect, receive, tasks.cancel_scope)
                await self._write(send, place)
                tasks.cancel_scope.cancel()

    async def _write(self, send: Send, place: str) -> None:
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            # For clients that lose the connection before the first event.
            await _send(send, b"retry: %d\nid: %b\n\n" % (RETRY_MS, place.encode()))
            began = said = time.monotonic()
            async with aclosing(self._feed.follow(place)) as news:
                async for reached, lines in news:
                    for chunk in _chunks(line.text for line in lines if self._wanted(line.event)):
                        await _send(send, chunk)
                        said = time.monotonic()
                    if time.monotonic() - said > BEAT_S * 0.9:
                        await _send(send, b":\nid: %b\n\n" % reached.encode())
                        said = time.monotonic()
                    if time.monotonic() - began > LONGEST_S:
                        break
        except TimeoutError:
            log.warning("stream.client_stalled", after_s=SEND_S)
            return
        except TreadleError as error:
            log.warning("stream.failed", error=str(error))
        with anyio.move_on_after(SEND_S):
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send(send: Send, body: bytes) -> None:
    with anyio.fail_after(SEND_S):
        await send({"type": "http.response.body", "body": body, "more_body": True})


def _chunks(texts: Iterator[bytes]) -> Iterator[bytes]:
    """Join short texts into chunks."""
    waiting: list[bytes] = []
    size = 0
    for text in texts:
        waiting.append(text)
        size += len(text)
        if size >= _CHUNK:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


async def _cancel_on_disconnect(receive: Receive, scope: CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
