"""Answers to requests whose body has not arrived yet.

A server that answers and closes while the client is still sending makes the kernel reset the
connection, and the client loses the answer. So the answer is sent at once, with
`Connection: close`, and the rest of the body is read and discarded before the connection is
closed. Discarding is bounded in bytes, in silence and in total time, and so is the number of
requests that it is done for at once.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

# A body up to this size is awaited for a moment: then the connection can stay open.
SMALL_BYTES = 64 * 1024
SMALL_S = 1.0
# Limits for the rest of a larger body, the same as those of nginx where that has them.
DRAIN_BYTES = 16 * 1024 * 1024
SILENCE_S = 5.0
DRAIN_S = 30.0
# The time that is left for a client once the server is shutting down.
SHUTDOWN_S = 2.0


class Refusals:
    """Sends answers before the end of a body, and discards what is left of it.

    `most` bounds the number of bodies that are discarded at once; above it connections are closed
    without that.
    """

    def __init__(self, most: int) -> None:
        self.stopping = False
        self._most = most
        self._draining = 0
        # The deadlines of bodies that are being read; shutting down brings them forward.
        self._read: set[asyncio.Timeout] = set()
        self._drained: set[asyncio.Timeout] = set()

    async def send(self, answer: Response, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose body may be incomplete."""
        length = _length(scope)
        if length == 0 or (length is not None and await self._arrives(length, scope, receive)):
            await answer(scope, receive, send)
            return
        answer.headers["connection"] = "close"
        await send(
            {
                "type": "http.response.start",
                "status": answer.status_code,
                "headers": answer.raw_headers,
            }
        )
        # The answer is whole by its Content-Length; ending it would close the connection.
        await send({"type": "http.response.body", "body": bytes(answer.body), "more_body": True})
        await self._drain(receive)
        await send({"type": "http.response.body", "body": b""})

    @asynccontextmanager
    async def bounded(self, seconds: float) -> AsyncIterator[None]:
        """A deadline for reading a body; it passes at once when the server shuts down."""
        async with asyncio.timeout(0 if self.stopping else seconds) as deadline:
            self._read.add(deadline)
            try:
                yield
            finally:
                self._read.discard(deadline)

    def stop(self) -> None:
        """Refuse the bodies that are being read, and soon leave those that are discarded."""
        self.stopping = True
        now = asyncio.get_running_loop().time()
        for deadlines, at in ((self._read, now), (self._drained, now + SHUTDOWN_S)):
            for deadline in deadlines:
                if not deadline.expired():
                    deadline.reschedule(at)

    async def _arrives(self, length: int, scope: Scope, receive: Receive) -> bool:
        """Discard a small body; whether all of it came in time."""
        if length > SMALL_BYTES or _waits_to_be_asked(scope):
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(SMALL_S):
                return await _discard(receive, SMALL_BYTES)
        return False

    async def _drain(self, receive: Receive) -> None:
        """Discard the rest of a body within the limits."""
        if self._draining >= self._most:
            return
        self._draining += 1
        try:
            async with asyncio.timeout(SHUTDOWN_S if self.stopping else DRAIN_S) as deadline:
                self._drained.add(deadline)
                try:
                    await _discard(receive, DRAIN_BYTES)
                finally:
                    self._drained.discard(deadline)
        except TimeoutError:
            pass
        finally:
            self._draining -= 1


async def _discard(receive: Receive, most: int) -> bool:
    """Read and drop a body up to a number of bytes; whether that was all of it."""
    count = 0
    while count <= most:
        async with asyncio.timeout(SILENCE_S):
            message = await receive()
        if message["type"] != "http.request" or not message.get("more_body", False):
            return True
        count += len(message.get("body", b""))
    return False


def _length(scope: Scope) -> int | None:
    """The announced length of the body; None when it is sent in chunks."""
    length = 0
    for name, value in scope["headers"]:
        if name == b"transfer-encoding":
            return None
        if name == b"content-length":
            length = int(value)
    return length


def _waits_to_be_asked(scope: Scope) -> bool:
    return any(name == b"expect" for name, _ in scope["headers"])
