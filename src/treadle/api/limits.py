"""Bodies are bounded before anything parses them: in size, in time, in kind and in depth."""

import asyncio

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treadle.api import jsonscan
from treadle.api.problems import of_error, problem
from treadle.errors import InvalidArgument, TooLarge, TreadleError, Unavailable

# Bodies up to this size are always taken; larger ones share the room below.
SMALL = 64 * 1024
ROOM = 32 * 1024 * 1024


class _Gone(Exception):
    """The client went away before its body was complete."""


class Limits:
    """Reads the whole body of a request, within the limits, and hands it on in one piece."""

    def __init__(self, app: ASGIApp, *, max_bytes: int, timeout_s: float) -> None:
        self._app = app
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
            await self._refuse(self._too_large(), scope, receive, send)
            return
        body = _Body(self)
        try:
            await self._with_body(body, (kind, encoding), scope, receive, send)
        finally:
            self._taken -= body.taken

    async def _with_body(
        self,
        body: "_Body",
        said: tuple[bytes, bytes],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await body.read(receive)
        except TimeoutError:
            detail = f"the body did not arrive within {self._timeout_s:g} s"
            headers = {"connection": "close"}
            await problem(408, "request-timeout", detail, headers=headers)(scope, receive, send)
            return
        except TreadleError as error:
            await self._refuse(error, scope, receive, send)
            return
        except _Gone:
            return
        whole = bytes(body.data)
        if whole and not _is_json(*said):
            detail = "a body is JSON, not compressed, and says so: Content-Type: application/json"
            await problem(415, "unsupported-media-type", detail)(scope, receive, send)
            return
        if whole and (found := jsonscan.fault(whole)):
            await self._refuse(InvalidArgument(found), scope, receive, send)
            return
        body.data = bytearray()
        await self._app(scope, _replay(whole, receive), send)

    def take(self, count: int) -> None:
        """Room for so many more bytes of large bodies, or an error."""
        if self._taken + count > ROOM:
            raise Unavailable("the server has no room for large bodies now", retry_after_s=1)
        self._taken += count

    def check(self, size: int) -> None:
        if size > self._max_bytes:
            raise self._too_large()

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"the body has more than {self._max_bytes} bytes", max_bytes=self._max_bytes
        )

    async def _refuse(
        self, error: TreadleError, scope: Scope, receive: Receive, send: Send
    ) -> None:
        await of_error(Request(scope), error)(scope, receive, send)


class _Body:
    """A body as it arrives."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.data = bytearray()
        # How much of the shared room it has.
        self.taken = 0

    async def read(self, receive: Receive) -> None:
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise _Gone
            self.data += message.get("body", b"")
            size = len(self.data)
            self._limits.check(size)
            if size > SMALL and size > self.taken:
                self._limits.take(size - self.taken)
                self.taken = size
            if not message.get("more_body", False):
                return


def _is_json(kind: bytes, encoding: bytes) -> bool:
    plain = kind.split(b";", 1)[0].strip().lower()
    named = plain == b"application/json" or (
        plain.startswith(b"application/") and plain.endswith(b"+json")
    )
    return named and encoding.strip().lower() in (b"", b"identity")


def _replay(body: bytes, receive: Receive) -> Receive:
    """What an application receives: the body at once, then what else comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message
