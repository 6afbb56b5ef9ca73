"""The calls about stored answers: several calls as one transaction, done once for a key."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self, cast

import anyio

from treadle.db.calls import Calls, RawJson, pause_before_repeat
from treadle.db.connection import Connection
from treadle.db.errors import translate_errors
from treadle.db.pool import Pool
from treadle.errors import TreadleError
from treadle.json import encode


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """An answer over HTTP; `replayed` says that it was stored before."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request with a key: who sent it where, and a hash of what it says."""

    key: str
    principal: str
    route: str
    hash: str


class _SingleConnection:
    """One connection in the place of a pool."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    async def getconn(self) -> Connection:
        return self._conn

    async def putconn(self, _: Connection) -> None:
        """It stays with the transaction."""


class ReplyCalls(Calls):
    """Answers kept for repeats."""

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """The same calls, all in one transaction; a deadlock or a lost connection ends it."""
        with translate_errors():
            async with self._begun() as conn:
                held = type(self)(cast(Pool, _SingleConnection(conn)))
                held.tries = 1
                yield held

    async def run_once(
        self, asked: KeyedRequest, effect: Callable[[Self], Awaitable[StoredResponse]]
    ) -> StoredResponse:
        """Do it and store the answer in the same transaction; a repeat only gets the answer."""
        attempt = 0
        while True:
            attempt += 1
            try:
                async with self.transaction() as calls:
                    stored = await calls.begin_reply(asked)
                    if stored is not None:
                        return stored
                    reply = await effect(calls)
                    await calls.keep_reply(asked, reply)
                return reply
            except TreadleError as error:
                pause_s = pause_before_repeat(error, attempt)
                if pause_s is None:
                    raise
                await anyio.sleep(pause_s)

    async def begin_reply(self, asked: KeyedRequest) -> StoredResponse | None:
        rows = await self._call(
            "select status, headers, body from treadle.begin_reply(%b, %b, %b, %b)",
            asked.key,
            asked.principal,
            asked.route,
            asked.hash,
        )
        if not rows:
            return None
        status, headers, body = rows[0]
        return StoredResponse(status, body, headers, replayed=True)

    async def keep_reply(self, asked: KeyedRequest, reply: StoredResponse) -> None:
        await self._call(
            "select treadle.keep_reply(%b, %b, %b, %b, %b::integer, %b, %b)",
            asked.key,
            asked.principal,
            asked.route,
            asked.hash,
            reply.status,
            RawJson(encode(dict(reply.headers), name="headers")),
            reply.body,
        )
