"""Bodies are bounded before anything parses them: in size, in time, in kind and in depth."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treadle.api import jsonscan
from treadle.api.problems import of_error, problem
from treadle.api.refusals import Refusals
from treadle.errors import InvalidArgument, TooLarge, TreadleError, Unavailable

# Bodies up to this size are always taken; larger ones share the room below.
SMALL = 64 * 1024
ROOM = 32 * 1024 * 1024


class _Gone(Exception):
    """The client went away before its body was complete."""


class Limits:
    """Reads the whole body of a request, within the limits, and hands it on in one piece."""

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
        except _Gone:
            return
        finally:
            body.data = bytearray()
            self._taken -= body.taken
        if body.is_complete:
            await refused(scope, receive, send)
        else:
            await self._refusals.send(refused, scope, receive, send)

    async def _read(self, body: "_Body", scope: Scope, receive: Receive) -> Response | None:
        """Read a body; the answer when it is refused before its end."""
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


class _Body:
    """A body as it arrives."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.data = bytearray()
        # How much of the shared room it has.
        self.taken = 0
        self.is_complete = False

    async def read(self, receive: Receive) -> None:
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise _Gone
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
    """The answer to a body that cannot be used."""
    if not body:
        return None
    if not _is_json(kind, encoding):
        detail = "a body is JSON, not compressed, and says so: Content-Type: application/json"
        return problem(415, "unsupported-media-type", detail)
    if found := jsonscan.fault(body):
        return of_error(Request(scope), InvalidArgument(found))
    return None


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
