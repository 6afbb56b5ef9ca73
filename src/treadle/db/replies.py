"""The calls about stored answers: several calls as one transaction, done once for a key."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self, cast

import anyio

from treadle.db.calls import TRIES, Caller, RawJson, meets_again
from treadle.db.pool import Connection, Pool
from treadle.db.translate import translated
from treadle.errors import TreadleError
from treadle.jsontext import encode


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer over HTTP; `replayed` says that it was stored before."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A request with a key: who sent it where, and a hash of what it says."""

    key: str
    principal: str
    route: str
    hash: str


class _Held:
    """One connection in the place of a pool."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        yield self._conn


class ReplyCalls(Caller):
    """Answers kept for repeats."""

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """The same calls, all in one transaction; a deadlock ends it."""
        with translated():
            async with self._pool.connection() as conn, conn.transaction():
                held = type(self)(cast(Pool, _Held(conn)))
                held.tries = 1
                yield held

    async def once(self, asked: Asked, effect: Callable[[Self], Awaitable[Reply]]) -> Reply:
        """Do it and store the answer in the same transaction; a repeat only gets the answer."""
        for attempt in range(1, TRIES + 1):
            try:
                async with self.transaction() as calls:
                    stored = await calls.begin_reply(asked)
                    if stored is not None:
                        return stored
                    reply = await effect(calls)
                    await calls.keep_reply(asked, reply)
                return reply
            except TreadleError as error:
                if not meets_again(error) or attempt == TRIES:
                    raise
                await anyio.sleep(random.uniform(0, 0.02 * 2**attempt))
        raise AssertionError("unreachable")

    async def begin_reply(self, asked: Asked) -> Reply | None:
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
        return Reply(status, body, headers, replayed=True)

    async def keep_reply(self, asked: Asked, reply: Reply) -> None:
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
