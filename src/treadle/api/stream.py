"""Server-sent events: one answer that goes on for as long as the client reads."""

import time
from collections.abc import Callable, Iterator
from contextlib import aclosing

import anyio
import structlog
from anyio import CancelScope
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from treadle.api import feed
from treadle.api.feed import Feed
from treadle.errors import TreadleError
from treadle.models import Event

log = structlog.get_logger(__name__)
MEDIA_TYPE = "text/event-stream"
# A client that takes nothing for so long is given up.
SEND_S = 20.0
# A stream ends after so long, and whoever comes back shows its token again.
LONGEST_S = 3600.0
RETRY_MS = 2000
_CHUNK = 64 * 1024


class EventStream(Response):
    """Events as `id` and `data`; a comment every 15 seconds where nothing happens."""

    media_type = MEDIA_TYPE

    def __init__(self, source: Feed, after: str | None, wanted: Callable[[Event], bool]) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._feed = source
        self._after = after
        self._wanted = wanted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Errors before the first byte become problem documents; later ones end the stream."""
        async with self._feed.seat():
            place = await self._feed.start(self._after)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_until_gone, receive, tasks.cancel_scope)
                await self._write(send, place)
                tasks.cancel_scope.cancel()

    async def _write(self, send: Send, place: str) -> None:
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            # Who loses the connection before the first event goes on from here.
            await _send(send, b"retry: %d\nid: %b\n\n" % (RETRY_MS, place.encode()))
            began = said = time.monotonic()
            async with aclosing(self._feed.follow(place)) as news:
                async for reached, lines in news:
                    for chunk in _chunks(line.text for line in lines if self._wanted(line.event)):
                        await _send(send, chunk)
                        said = time.monotonic()
                    if time.monotonic() - said > feed.BEAT_S * 0.9:
                        await _send(send, b":\nid: %b\n\n" % reached.encode())
                        said = time.monotonic()
                    if time.monotonic() - began > LONGEST_S:
                        break
        except TimeoutError:
            log.warning("feed.stuck", after_s=SEND_S)
            return
        except TreadleError as error:
            log.warning("feed.broken", error=str(error))
        with anyio.move_on_after(SEND_S):
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send(send: Send, body: bytes) -> None:
    with anyio.fail_after(SEND_S):
        await send({"type": "http.response.body", "body": body, "more_body": True})


def _chunks(texts: Iterator[bytes]) -> Iterator[bytes]:
    """Texts together, as long as they are short."""
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


async def _until_gone(receive: Receive, scope: CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
