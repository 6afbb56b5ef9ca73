"""Find the caller of a token, with a cache of a few seconds."""

import asyncio
import base64
import hashlib
import hmac
import re
import time
from collections import OrderedDict
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from treadle.api.access import HOW, NO_TOKEN, Principal
from treadle.db.database import Database
from treadle.db.tokens import Token
from treadle.errors import Unauthenticated, Unavailable

log = structlog.get_logger(__name__)

SHAPE = re.compile(rb"trd_([0-9a-f]{12})_([A-Za-z0-9_-]{43})([A-Za-z0-9_-]{6})")
SCHEME = b"bearer "
# How long a lookup is cached: the longest time that a revoked token is still accepted.
REMEMBERED_S = 2.0
MOST_REMEMBERED = 2000
# The last use of a token is stored to the minute.
NOTED_S = 60.0
# Each unknown token costs a lookup; lookups must not use all connections of the pool.
LOOKUPS_AT_ONCE = 2
Found = TypeVar("Found")


@dataclass(frozen=True)
class _Known:
    """A token in the cache, and its caller."""

    token: Token
    caller: Principal
    until: float


class TokenCache:
    """Finds the caller of a request by its Authorization header.

    `local` says that only this host can reach the server. Requests then need no token until one
    exists; from then on they need one until the process ends.
    """

    def __init__(self, db: Database, *, local: bool) -> None:
        self._db = db
        self._required = not local
        self._open_until = 0.0
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        # Ids that do not exist, and until when that is cached.
        self._missed: OrderedDict[bytes, float] = OrderedDict()
        self._noted: dict[bytes, float] = {}
        self._lookups = asyncio.Semaphore(LOOKUPS_AT_ONCE)
        self._looking = asyncio.Lock()
        self._background: set[asyncio.Task[None]] = set()

    @property
    def is_required(self) -> bool:
        """Whether callers need a token, as far as is known without a query."""
        return self._required

    async def is_open(self) -> bool:
        """Whether callers need no token; queried every few seconds."""
        if not self._required and time.monotonic() >= self._open_until:
            async with self._looking:
                if time.monotonic() >= self._open_until:
                    await self._query_tokens_exist()
        return not self._required

    def has_seen(self, headers: list[bytes]) -> bool:
        """Whether the cache has a token with this id; makes no query."""
        return len(headers) == 1 and headers[0][len(SCHEME) :].strip(b" ")[4:16] in self._known

    async def caller(self, headers: list[bytes]) -> Principal:
        """The caller with these Authorization headers; raises Unauthenticated."""
        if len(headers) != 1:
            raise Unauthenticated(
                "there is more than one Authorization header" if headers else NO_TOKEN, hint=HOW
            )
        text = headers[0]
        found = SHAPE.fullmatch(text[len(SCHEME) :].strip(b" "))
        if found is None or text[: len(SCHEME)].lower() != SCHEME:
            raise Unauthenticated("this is not a Treadle token", hint=HOW)
        token_id, secret, checksum = found.groups()
        if not hmac.compare_digest(checksum, _checksum(token_id, secret)):
            raise Unauthenticated("the checksum of this token is wrong", hint=HOW)
        known = self._known.get(token_id)
        if known is None or time.monotonic() >= known.until:
            known = await self._look_up(token_id)
        given = hashlib.sha256(secret).digest()
        if known is None or not hmac.compare_digest(given, known.token.secret_hash):
            raise Unauthenticated("this token is not valid", hint=HOW)
        if known.token.status != "live":
            state = known.token.status
            raise Unauthenticated(f"the token {known.token.name} is {state}", hint=HOW)
        self._record_use(token_id, known.token)
        return known.caller

    async def _query_tokens_exist(self) -> None:
        now = time.monotonic()
        wanted, _ = await self._db.tokens.exist()
        self._open_until = now + REMEMBERED_S
        if wanted and not self._required:
            self._required = True
            log.info("server.token_required", reason="a token exists now")

    async def _look_up(self, token_id: bytes) -> _Known | None:
        async with self._lookups:
            known = self._known.get(token_id)
            if known is not None and time.monotonic() < known.until:
                return known
            if time.monotonic() < self._missed.get(token_id, 0.0):
                return None
            # Taken before the query, so that a token revoked meanwhile is not cached longer.
            until = time.monotonic() + REMEMBERED_S
            token = await self._db.tokens.find(token_id.decode())
        self._known.pop(token_id, None)
        if token is None:
            _remember(self._missed, token_id, until)
            return None
        known = _Known(token, _principal(token_id, token), until)
        _remember(self._known, token_id, known)
        return known

    def _record_use(self, token_id: bytes, token: Token) -> None:
        """Record the use of a token once a minute, without delaying the request."""
        now = time.monotonic()
        if token.used or now < self._noted.get(token_id, 0.0):
            return
        if len(self._noted) >= MOST_REMEMBERED:
            self._noted.clear()
        self._noted[token_id] = now + NOTED_S
        self._in_background(self._write_use(token_id.decode()))

    async def _write_use(self, token_id: str) -> None:
        try:
            await self._db.tokens.note_use(token_id)
        except Exception as error:
            # The next use is stored within a minute.
            log.warning("token.use_not_recorded", token=token_id, error=str(error))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


class TokenLease:
    """Whether the token of a running request is still valid; `headers` is None without a token."""

    def __init__(self, tokens: TokenCache, headers: list[bytes] | None) -> None:
        self._tokens = tokens
        self._headers = headers
        self._unchecked_until = 0.0

    async def check(self) -> None:
        """Raise Unauthenticated if the token is no longer valid, or if one is needed now."""
        if time.monotonic() < self._unchecked_until:
            return
        try:
            if self._headers is not None:
                await self._tokens.caller(self._headers)
            elif not await self._tokens.is_open():
                raise Unauthenticated(NO_TOKEN, hint=HOW)
        except Unavailable:
            # The database does not respond: the request continues until it does.
            self._unchecked_until = time.monotonic() + REMEMBERED_S


def _remember(memory: OrderedDict[bytes, Found], token_id: bytes, found: Found) -> None:
    """Add an entry; the oldest one leaves a full cache."""
    memory.pop(token_id, None)
    memory[token_id] = found
    if len(memory) > MOST_REMEMBERED:
        memory.popitem(last=False)


def _checksum(token_id: bytes, secret: bytes) -> bytes:
    """The checksum that `treadle.new_token()` appends."""
    digest = hashlib.sha256(b"trd_" + token_id + b"_" + secret).digest()
    return base64.urlsafe_b64encode(digest)[:6]


def _principal(token_id: bytes, token: Token) -> Principal:
    return Principal(
        token.name,
        frozenset(token.scopes),
        None if token.queues is None else frozenset(token.queues),
        token.agent,
        token.project_id,
        token.project,
        token_id.decode(),
    )
