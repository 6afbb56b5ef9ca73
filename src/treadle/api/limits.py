"""Limits for request bodies: size, time, media type, and JSON that can be parsed and stored.

A request may be rejected before its body has arrived. If the server answers and closes while the
client is still sending, the kernel resets the connection and the client loses the response. So the
response is sent at once, with `Connection: close`, and the rest of the body is read and discarded
before the connection is closed. Discarding is limited in bytes, in time without a byte, in total
time, and in the number of requests at once.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treadle.api.problems import of_error, problem
from treadle.errors import InvalidArgument, TooLarge, TreadleError, Unavailable

# The server waits a moment for a body up to this size, so that the connection can stay open.
SMALL_BYTES = 64 * 1024
SMALL_S = 1.0
# Limits for the rest of a larger body, the same as those of nginx where that has them.
DRAIN_BYTES = 16 * 1024 * 1024
SILENCE_S = 5.0
DRAIN_S = 30.0
# The time that clients have once the server is shutting down.
SHUTDOWN_S = 2.0
# Bodies up to this size are always accepted; larger ones share a total.
SMALL = 64 * 1024
ROOM = 32 * 1024 * 1024
# Each object or list takes far more memory than its two brackets.
MAX_BRACKETS = 100_000


class Refusals:
    """Sends responses before the end of a body, and discards the rest of it.

    At most `most` bodies are discarded at once; above that the connection is just closed.
    """

    def __init__(self, most: int) -> None:
        self.stopping = False
        self._most = most
        self._draining = 0
        # The deadlines of bodies being read and discarded; a shutdown brings them forward.
        self._read: set[asyncio.Timeout] = set()
        self._drained: set[asyncio.Timeout] = set()

    async def send(self, answer: Response, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response to a request whose body may be incomplete."""
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
        # Content-Length ends the response for the client; ending it here closes the connection.
        await send({"type": "http.response.body", "body": bytes(answer.body), "more_body": True})
        await self._drain(receive)
        await send({"type": "http.response.body", "body": b""})

    @asynccontextmanager
    async def bounded(self, seconds: float) -> AsyncIterator[None]:
        """A deadline for reading a body; it expires at once when the server shuts down."""
        async with asyncio.timeout(0 if self.stopping else seconds) as deadline:
            self._read.add(deadline)
            try:
                yield
            finally:
                self._read.discard(deadline)

    def stop(self) -> None:
        """Reject the bodies that are being read, and stop discarding others soon."""
        self.stopping = True
        now = asyncio.get_running_loop().time()
        for deadlines, at in ((self._read, now), (self._drained, now + SHUTDOWN_S)):
            for deadline in deadlines:
                if not deadline.expired():
                    deadline.reschedule(at)

    async def _arrives(self, length: int, scope: Scope, receive: Receive) -> bool:
        """Discard a small body; returns whether all of it arrived in time."""
        if length > SMALL_BYTES or _expects_continue(scope):
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
    """Read and discard up to `most` bytes of a body; returns whether that was all of it."""
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


def _expects_continue(scope: Scope) -> bool:
    return any(name == b"expect" for name, _ in scope["headers"])


class _Disconnected(Exception):
    """The client disconnected before its body was complete."""


class BodyLimitMiddleware:
    """Reads the whole body of a request within the limits and passes it on in one piece."""

    def __init__(
        self, app: ASGIApp, *, refusals: Refusals, max_bytes: int, timeout_s: float
    ) -> None:
        self._app = app
        self._refusals = refusals
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._taken = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length: bytes | None = None
        chunked = False
        kind = encoding = b""
        for name, value in scope["headers"]:
            if name == b"content-length":
                length = value
            elif name == b"transfer-encoding":
                chunked = True
            elif name == b"content-type":
                kind = value
            elif name == b"content-encoding":
                encoding = value
        if not chunked and (length is None or length == b"0"):
            await self._app(scope, receive, send)
            return
        if length is not None and int(length) > self._max_bytes:
            answer = of_error(Request(scope), self._too_large())
            await self._refusals.send(answer, scope, receive, send)
            return
        body = _Body(self)
        try:
            refused = await self._read(body, scope, receive)
            if refused is None:
                whole = bytes(body.data)
                body.data = bytearray()
                refused = _fault(whole, kind, encoding, scope)
            if refused is None:
                await self._app(scope, _replay(whole, receive), send)
                return
        except _Disconnected:
            return
        finally:
            body.data = bytearray()
            self._taken -= body.taken
        if body.is_complete:
            await refused(scope, receive, send)
        else:
            await self._refusals.send(refused, scope, receive, send)

    async def _read(self, body: "_Body", scope: Scope, receive: Receive) -> Response | None:
        """Read a body; returns the response if it is rejected before its end."""
        try:
            async with self._refusals.bounded(self._timeout_s):
                await body.read(receive)
        except TimeoutError:
            if self._refusals.stopping:
                return of_error(Request(scope), Unavailable("the server is shutting down"))
            detail = f"the body did not arrive within {self._timeout_s:g} s"
            return problem(408, "request-timeout", detail, headers={"connection": "close"})
        except TreadleError as error:
            return of_error(Request(scope), error)
        return None

    def take(self, count: int) -> None:
        """Reserve room for more bytes of large bodies."""
        if self._taken + count > ROOM:
            raise Unavailable("the server has no room for more large bodies", retry_after_s=1)
        self._taken += count

    def check(self, size: int) -> None:
        if size > self._max_bytes:
            raise self._too_large()

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"the body has more than {self._max_bytes} bytes", max_bytes=self._max_bytes
        )


class _Body:
    """The part of a body that has arrived."""

    def __init__(self, limits: BodyLimitMiddleware) -> None:
        self._limits = limits
        self.data = bytearray()
        # Bytes reserved of the shared room.
        self.taken = 0
        self.is_complete = False

    async def read(self, receive: Receive) -> None:
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise _Disconnected
            self.is_complete = not message.get("more_body", False)
            self.data += message.get("body", b"")
            size = len(self.data)
            self._limits.check(size)
            if size > SMALL and size > self.taken:
                self._limits.take(size - self.taken)
                self.taken = size
            if self.is_complete:
                return


def _fault(body: bytes, kind: bytes, encoding: bytes, scope: Scope) -> Response | None:
    """The response to a body that cannot be used."""
    if not body:
        return None
    if not _is_json(kind, encoding):
        detail = "send the body as JSON, not compressed, with Content-Type: application/json"
        return problem(415, "unsupported-media-type", detail)
    if found := _json_fault(body):
        return of_error(
            Request(scope), InvalidArgument(found, errors=[{"pointer": "", "detail": found}])
        )
    return None


def _json_fault(body: bytes) -> str | None:
    """Why a body cannot be parsed or stored, whichever route it is for."""
    if body.count(b"[") + body.count(b"{") > MAX_BRACKETS:
        return f"the body has more than {MAX_BRACKETS} opening brackets"
    try:
        from_json(body, allow_inf_nan=False)
    except ValueError as error:
        return f"the body cannot be read as JSON: {error}"
    if b"\\u0000" in body and b"\\u0000" in body.replace(b"\\\\", b""):
        return "the body has a NUL character (\\u0000), which PostgreSQL cannot store"
    return None


def _is_json(kind: bytes, encoding: bytes) -> bool:
    plain = kind.split(b";", 1)[0].strip().lower()
    named = plain == b"application/json" or (
        plain.startswith(b"application/") and plain.endswith(b"+json")
    )
    return named and encoding.strip().lower() in (b"", b"identity")


def _replay(body: bytes, receive: Receive) -> Receive:
    """The messages for the application: the body in one piece, then those of the server."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message
