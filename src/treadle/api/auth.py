"""Authentication: a middleware in front of all routes, with a rate limit for each caller.

It is the outermost part of the application, so that a route whose author forgot about access is
behind it too. What is open without a token is listed here, by its exact path.
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
from treadle.api.dispatch import route_path
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
# A caller that was quiet may ask for so many seconds' worth at once.
BURST_S = 2.0
# Answered without a token, to GET and HEAD: health, and pages that only say what the source says.
# Open, and with more for those who may read.
STATUS = "/status"
OPEN_PATHS = frozenset(
    {
        *("/health", "/healthz", "/readyz", STATUS),
        *("/docs", *(f"/docs/{name}" for name in docs.FILES)),
        *("/problems", *(f"/problems/{code}" for code in problems.explained())),
    }
)
# Answered however many requests there are: who hears nothing from it may kill the process.
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
# Two ways to say where a body ends: a proxy may believe the one, and the server the other.
_ENDS = frozenset({b"content-length", b"transfer-encoding"})
_BROWSER = frozenset({b"origin", b"sec-fetch-site", b"sec-fetch-mode"})
_NOTICED = _FORWARDED | _ENDS | _BROWSER | {b"authorization", b"host"}

Noticed = dict[bytes, list[bytes]]


class RateLimiter:
    """Requests a second for each caller; 0 is no limit.

    Kept is the time at which a caller's bucket is full again, nothing else.
    """

    def __init__(self, per_s: float) -> None:
        self._cost_s = 1 / per_s if per_s > 0 else 0.0
        self._depth_s = max(BURST_S, self._cost_s)
        self._full_at: dict[str, float] = {}

    def acquire(self, caller: str) -> float:
        """Count a request; 0 when it may go on, else the seconds until it may."""
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
        """Take back what was counted last: it was somebody else."""
        if caller in self._full_at:
            self._full_at[caller] -= self._cost_s

    def _forget(self, now: float) -> None:
        """Those whose buckets are full come again as if they were new."""
        kept = {caller: at for caller, at in self._full_at.items() if at > now}
        # More than that at once are not one caller's doing; each starts over.
        self._full_at = kept if len(kept) < MOST_CALLERS else {}


def add_middleware(app: Starlette, treadle: Treadle, *, local: bool, hosts: Iterable[str]) -> None:
    """Add authentication to an application, and the limits of bodies behind it."""
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
    """Lets known callers through, and leaves who they are in the scope of the request."""

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
            # There are no websockets here; if one comes in some day, it does not come in unseen.
            await send({"type": "websocket.close", "code": 1008})
        else:
            self._inside += 1
            try:
                refused = await self._let_in(scope, receive, send)
            except asyncio.CancelledError:
                if not self._refusals.stopping:
                    raise
                await _leave(scope, receive, send)
                return
            finally:
                self._inside -= 1
            # Outside of the count: discarding the body is no work that keeps others out.
            if refused is not None:
                await self._refusals.send(refused, scope, receive, send)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Handle a request; the answer instead when the caller does not get in."""
        noticed: Noticed = {}
        size = 0
        for name, value in scope["headers"]:
            size += len(name) + len(value)
            if name in _NOTICED or name.startswith(_ALSO_FORWARDED):
                noticed.setdefault(name, []).append(value)
        if fault := _fault(scope, noticed, size):
            return problem(*fault, headers={"connection": "close"})
        try:
            who = await self._admit(scope, noticed)
        except TreadleError as error:
            return of_error(Request(scope), error)
        scope[KEY] = who
        if who is not ANONYMOUS:
            lease = TokenLease(self._tokens, None if who is LOCAL else noticed[b"authorization"])
            scope[TOKEN_LEASE] = lease
            send = _Watched(lease, send)
        await self._app(scope, receive, send)
        return None

    async def _admit(self, scope: Scope, noticed: Noticed) -> Principal:
        """Who calls; raises what the caller has to hear."""
        path = route_path(scope)
        if self._inside > self._max_requests and path != ALIVE:
            raise Unavailable("the server is busy with other requests", retry_after_s=1)
        if not self._tokens.wanted:
            self._check_host(noticed)
        if path in OPEN_PATHS and scope["method"] in _READS:
            if path != ALIVE:
                self._count(_address(scope))
            return await self._perhaps(noticed) if path == STATUS else ANONYMOUS
        if await self._tokens.is_open():
            self._count(_address(scope))
            _check_browser(scope["method"], noticed)
            return LOCAL
        who = await self._known(noticed.get(b"authorization", []), _address(scope))
        self._count(who.token or who.name)
        return who

    async def _perhaps(self, noticed: Noticed) -> Principal:
        """Who calls, where that can be told; whoever it is gets an answer."""
        try:
            if await self._tokens.is_open():
                return LOCAL
            return await self._tokens.caller(noticed.get(b"authorization", []))
        except (Unauthenticated, Unavailable):
            return ANONYMOUS

    async def _known(self, headers: list[bytes], address: str) -> Principal:
        """Whose token it is; a stranger's is counted before anybody is asked about it."""
        stranger = not self._tokens.has_seen(headers)
        if stranger:
            self._count(address)
        try:
            who = await self._tokens.caller(headers)
        except Unauthenticated:
            if not stranger:
                self._count(address)
            raise
        if stranger:
            # It has a rate of its own.
            self._rates.refund(address)
        return who

    def _count(self, caller: str) -> None:
        wait_s = self._rates.acquire(caller)
        if wait_s > 0:
            raise TooManyRequests(
                "there were too many requests from here", retry_after_s=round(wait_s, 3)
            )

    def _check_host(self, noticed: Noticed) -> None:
        """Refuse a name that is not ours: a page may have had it lead here."""
        for given in noticed.get(b"host", [b"-"]):
            found = _HOST.fullmatch(given)
            if found is None or found[1].decode().lower() not in self._hosts:
                raise Forbidden(
                    "without tokens this server answers under names of this host only",
                    hint="Make a token: treadle token create; or set TREADLE_ALLOWED_HOSTS.",
                )


async def _leave(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request that was still being worked on when the time for shutting down was over."""
    error = Unavailable("the server is shutting down", hint="Ask again; another may answer.")
    # The answer may have begun already.
    with suppress(RuntimeError):
        await of_error(Request(scope), error)(scope, receive, send)


class _Watched:
    """Sends an answer; a long one ends once the token is no longer valid."""

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
    """What is wrong with a request whoever sends it: the status, the code and the words."""
    if any(_HOST.fullmatch(host) is None for host in noticed.get(b"host", ())):
        return 400, "bad-request", "the Host header is not a host"
    if noticed.keys() >= _ENDS:
        return 400, "bad-request", "there are both Content-Length and Transfer-Encoding"
    if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_TARGET:
        return 414, "uri-too-long", f"path and query have more than {MAX_TARGET} bytes"
    if size > MAX_HEAD:
        code = "request-header-fields-too-large"
        return 431, code, f"the headers have more than {MAX_HEAD} bytes"
    return None


def _check_browser(method: str, noticed: Noticed) -> None:
    """Refuse what a page of another site makes a browser send, and what a proxy sends on."""
    if any(name in _FORWARDED or name.startswith(_ALSO_FORWARDED) for name in noticed):
        raise Unauthenticated("requests through a proxy need a token", hint=HOW)
    sites = noticed.get(b"sec-fetch-site", ())
    origins = noticed.get(b"origin", ())
    foreign = any(site not in (b"same-origin", b"none") for site in sites)
    # Links may lead here, from anywhere.
    is_link = method in _READS and noticed.get(b"sec-fetch-mode") == [b"navigate"]
    if foreign and not is_link:
        raise Forbidden("without tokens this server does not answer pages of other sites", hint=HOW)
    hosts = noticed.get(b"host", ())
    ours = {scheme + host for scheme in (b"http://", b"https://") for host in hosts}
    if any(origin not in ours for origin in origins):
        raise Forbidden("without tokens this server does not answer pages of other sites", hint=HOW)


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else "-"
