"""Authentication: a middleware in front of all routes, with a rate limit for each caller.

It is the outermost middleware, so that it also protects a route whose author forgot about access.
Paths that need no token are listed here.
"""

import asyncio
import re
import time
from collections.abc import Iterable
from contextlib import suppress

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treadle.api import docs, problems
from treadle.api.access import HOW, KEY, LOCAL, TOKEN_LEASE, Principal
from treadle.api.limits import BodyLimitMiddleware, Refusals
from treadle.api.problems import of_error, problem
from treadle.api.tokens import TokenCache, TokenLease
from treadle.app import Treadle
from treadle.errors import (
    Forbidden,
    TooManyRequests,
    TreadleError,
    Unauthenticated,
    Unavailable,
)

MOST_CALLERS = 10_000
# A caller that sent nothing for this time may use the rate of this time at once.
BURST_S = 2.0
# Needs no token, and shows more to callers with the scope read.
STATUS = "/status"
# GET and HEAD need no token: health, and pages that show only what is in the public source.
OPEN_PATHS = frozenset(
    {
        *("/health", "/healthz", "/readyz", STATUS),
        *("/", "/docs", *(f"/docs/{name}" for name in docs.FILES)),
        *("/problems", *(f"/problems/{code}" for code in problems.explained())),
    }
)
# Answered under any load: a supervisor may kill a process that does not answer.
ALIVE = "/healthz"
ANONYMOUS = Principal("anybody", frozenset())
# Bytes of path and query, and of all headers.
MAX_TARGET = 8 * 1024
MAX_HEAD = 32 * 1024

_READS = frozenset({"GET", "HEAD"})
_HOST = re.compile(rb"(\[[0-9A-Fa-f:.]{2,45}\]|[0-9A-Za-z._~-]{1,255})(?::[0-9]{1,5})?")
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
_FORWARDED = frozenset({b"forwarded", b"via", b"x-real-ip"})
_ALSO_FORWARDED = b"x-forwarded-"
# A proxy and the server could disagree where a body with both of these ends.
_ENDS = frozenset({b"content-length", b"transfer-encoding"})
_BROWSER = frozenset({b"origin", b"sec-fetch-site", b"sec-fetch-mode"})
_NOTICED = _FORWARDED | _ENDS | _BROWSER | {b"authorization", b"host"}

Noticed = dict[bytes, list[bytes]]


class RateLimiter:
    """Requests a second for each caller; 0 is no limit.

    Stores only the time at which the bucket of a caller is full again.
    """

    def __init__(self, per_s: float) -> None:
        self._cost_s = 1 / per_s if per_s > 0 else 0.0
        self._depth_s = max(BURST_S, self._cost_s)
        self._full_at: dict[str, float] = {}

    def acquire(self, caller: str) -> float:
        """Count a request; returns 0, or the seconds to wait if it is over the limit."""
        if not self._cost_s:
            return 0.0
        now = time.monotonic()
        full_at = max(self._full_at.get(caller, 0.0), now) + self._cost_s
        wait_s = full_at - now - self._depth_s
        if wait_s > 1e-9:
            return wait_s
        if caller not in self._full_at and len(self._full_at) >= MOST_CALLERS:
            self._forget(now)
        self._full_at[caller] = full_at
        return 0.0

    def refund(self, caller: str) -> None:
        """Undo the last request of a caller."""
        if caller in self._full_at:
            self._full_at[caller] -= self._cost_s

    def _forget(self, now: float) -> None:
        """Remove callers whose buckets are full: they start again as new ones."""
        kept = {caller: at for caller, at in self._full_at.items() if at > now}
        # There are too many to keep: all start again.
        self._full_at = kept if len(kept) < MOST_CALLERS else {}


def add_middleware(app: Starlette, treadle: Treadle, *, local: bool, hosts: Iterable[str]) -> None:
    """Add authentication to an application, and the body limits behind it."""
    settings = treadle.settings
    refusals = Refusals(most=settings.max_connections // 2)
    app.state.refusals = refusals
    app.add_middleware(
        BodyLimitMiddleware,
        refusals=refusals,
        max_bytes=settings.max_body_bytes,
        timeout_s=settings.body_timeout_s,
    )
    app.add_middleware(
        AuthMiddleware,
        refusals=refusals,
        tokens=TokenCache(treadle.db, local=local),
        rates=RateLimiter(settings.rate_per_s),
        max_requests=settings.max_requests,
        hosts=frozenset(map(str.lower, (*hosts, *settings.allowed_hosts))),
    )


class AuthMiddleware:
    """Authenticates requests and stores the caller in their scope."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        refusals: Refusals,
        tokens: TokenCache,
        rates: RateLimiter,
        max_requests: int,
        hosts: frozenset[str] = frozenset(),
    ) -> None:
        self._app = app
        self._refusals = refusals
        self._tokens = tokens
        self._rates = rates
        self._max_requests = max_requests
        self._hosts = _LOCAL_HOSTS | hosts
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            # There are no websockets; a future one must not bypass this check.
            await send({"type": "websocket.close", "code": 1008})
        else:
            self._inside += 1
            try:
                refused = await self._handle(scope, receive, send)
            except asyncio.CancelledError:
                if not self._refusals.stopping:
                    raise
                await _reject_at_shutdown(scope, receive, send)
                return
            finally:
                self._inside -= 1
            # Not counted as a running request: discarding a body must not block other requests.
            if refused is not None:
                await self._refusals.send(refused, scope, receive, send)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Handle a request; returns the response if the caller is rejected."""
        noticed: Noticed = {}
        size = 0
        for name, value in scope["headers"]:
            size += len(name) + len(value)
            if name in _NOTICED or name.startswith(_ALSO_FORWARDED):
                noticed.setdefault(name, []).append(value)
        if fault := _fault(scope, noticed, size):
            return problem(*fault, headers={"connection": "close"})
        try:
            caller = await self._authenticate(scope, noticed)
        except TreadleError as error:
            return of_error(Request(scope), error)
        scope[KEY] = caller
        if caller is not ANONYMOUS:
            lease = TokenLease(self._tokens, None if caller is LOCAL else noticed[b"authorization"])
            scope[TOKEN_LEASE] = lease
            send = _TokenCheckedSend(lease, send)
        await self._app(scope, receive, send)
        return None

    async def _authenticate(self, scope: Scope, noticed: Noticed) -> Principal:
        """The caller; raises the error of the response."""
        path = _route_path(scope)
        if self._inside > self._max_requests and path != ALIVE:
            raise Unavailable("the server is handling too many requests", retry_after_s=1)
        if not self._tokens.is_required:
            self._check_host(noticed)
        if path in OPEN_PATHS and scope["method"] in _READS:
            if path != ALIVE:
                self._count(_address(scope))
            return await self._optional_caller(noticed) if path == STATUS else ANONYMOUS
        if await self._tokens.is_open():
            self._count(_address(scope))
            _check_browser(scope["method"], noticed)
            return LOCAL
        caller = await self._caller_of_token(noticed.get(b"authorization", []), _address(scope))
        self._count(caller.token or caller.name)
        return caller

    async def _optional_caller(self, noticed: Noticed) -> Principal:
        """The caller if it is known, else the anonymous one."""
        try:
            if await self._tokens.is_open():
                return LOCAL
            return await self._tokens.caller(noticed.get(b"authorization", []))
        except (Unauthenticated, Unavailable):
            return ANONYMOUS

    async def _caller_of_token(self, headers: list[bytes], address: str) -> Principal:
        """The caller of a token; an unknown token first counts against its address."""
        is_unknown = not self._tokens.has_seen(headers)
        if is_unknown:
            self._count(address)
        try:
            caller = await self._tokens.caller(headers)
        except Unauthenticated:
            if not is_unknown:
                self._count(address)
            raise
        if is_unknown:
            # A valid token has a rate of its own.
            self._rates.refund(address)
        return caller

    def _count(self, caller: str) -> None:
        wait_s = self._rates.acquire(caller)
        if wait_s > 0:
            raise TooManyRequests("too many requests", retry_after_s=round(wait_s, 3))

    def _check_host(self, noticed: Noticed) -> None:
        """Reject other host names, against DNS rebinding."""
        for given in noticed.get(b"host", [b"-"]):
            found = _HOST.fullmatch(given)
            if found is None or found[1].decode().lower() not in self._hosts:
                raise Forbidden(
                    "without tokens this server accepts only host names of this machine",
                    hint="Create a token: treadle tokens create; or set TREADLE_ALLOWED_HOSTS.",
                )


async def _reject_at_shutdown(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request that did not finish during the shutdown."""
    error = Unavailable(
        "the server is shutting down", hint="Send the request again; another server may answer."
    )
    # The response may have begun.
    with suppress(RuntimeError):
        await of_error(Request(scope), error)(scope, receive, send)


class _TokenCheckedSend:
    """Sends a response; a stream ends once the token is no longer valid."""

    def __init__(self, lease: TokenLease, send: Send) -> None:
        self._lease = lease
        self._send = send
        self._ended = False

    async def __call__(self, message: Message) -> None:
        if message.get("more_body") and not self._ended:
            try:
                await self._lease.check()
            except Unauthenticated:
                self._ended = True
                await self._send({"type": "http.response.body", "body": b""})
        if not self._ended:
            await self._send(message)


def _fault(scope: Scope, noticed: Noticed, size: int) -> tuple[int, str, str] | None:
    """The status, code and detail for a request that no caller may send."""
    if any(_HOST.fullmatch(host) is None for host in noticed.get(b"host", ())):
        return 400, "bad-request", "the Host header is not a valid host"
    if noticed.keys() >= _ENDS:
        return 400, "bad-request", "the request has both Content-Length and Transfer-Encoding"
    if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_TARGET:
        return 414, "uri-too-long", f"path and query have more than {MAX_TARGET} bytes"
    if size > MAX_HEAD:
        code = "request-header-fields-too-large"
        return 431, code, f"the headers have more than {MAX_HEAD} bytes"
    return None


def _check_browser(method: str, noticed: Noticed) -> None:
    """Reject requests that pages of other sites make a browser send, and those of proxies."""
    if any(name in _FORWARDED or name.startswith(_ALSO_FORWARDED) for name in noticed):
        raise Unauthenticated("requests through a proxy need a token", hint=HOW)
    sites = noticed.get(b"sec-fetch-site", ())
    origins = noticed.get(b"origin", ())
    foreign = any(site not in (b"same-origin", b"none") for site in sites)
    # Links from other sites are fine.
    is_link = method in _READS and noticed.get(b"sec-fetch-mode") == [b"navigate"]
    if foreign and not is_link:
        raise Forbidden("without tokens this server rejects requests from other sites", hint=HOW)
    hosts = noticed.get(b"host", ())
    ours = {scheme + host for scheme in (b"http://", b"https://") for host in hosts}
    if any(origin not in ours for origin in origins):
        raise Forbidden("without tokens this server rejects requests from other sites", hint=HOW)


def _route_path(scope: Scope) -> str:
    """The path as the routes see it: without the prefix that the application is mounted under."""
    path: str = scope["path"]
    prefix: str = scope.get("root_path", "")
    return path[len(prefix) :] if prefix and path.startswith(prefix + "/") else path


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else "-"
