"""How a SQL function is called: one round trip on a pooled connection, in its own transaction.

Every function may be called again with the same arguments: deadlocks and lock timeouts are retried
here, a lost connection by whoever called.
"""

import random
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

from treadle.db.pool import Connection, Pool
from treadle.db.translate import RETRY_AT_ONCE, translated

Row = tuple[Any, ...]
TRIES = 5


class Caller:
    """Calls functions on the connections of a pool."""

    # How often a call is made that meets a deadlock.
    tries = TRIES

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        """A pooled connection, for reading views and for a handler's own transaction."""
        return self._pool.connection()

    async def _seconds_until(self, moment: str) -> float | None:
        """How far away a moment is by the database's clock, never by ours."""
        rows = await self._call(f"select extract(epoch from {moment} - treadle.clock())::float8")
        value: float | None = rows[0][0]
        return value

    async def _call(self, query: str, *parameters: object) -> list[Row]:
        for attempt in range(1, self.tries + 1):
            try:
                with translated():
                    async with self._pool.connection() as conn:
                        cursor = await conn.execute(query, parameters, binary=True)
                        return await cursor.fetchall()
            except Exception as error:
                if not meets_again(error) or attempt == self.tries:
                    raise
                await anyio.sleep(random.uniform(0, 0.02 * 2**attempt))
        raise AssertionError("unreachable")


def meets_again(error: BaseException) -> bool:
    """Whether the same call may succeed at once: a deadlock, or a lock that was not free."""
    cause = error.__cause__
    return isinstance(cause, psycopg.Error) and cause.sqlstate in RETRY_AT_ONCE


class RawJson(bytes):
    """JSON text that is ready to send."""

    __slots__ = ()


class _RawJsonDumper(Dumper):
    format = Format.BINARY
    oid = psycopg.adapters.types["jsonb"].oid

    def dump(self, obj: RawJson) -> bytes:
        return b"\x01" + obj


# Registered for our own type only: it changes nothing on a caller's connection.
psycopg.adapters.register_dumper(RawJson, _RawJsonDumper)


def json_array(texts: Iterable[bytes | None]) -> list[RawJson | None] | None:
    """Texts for a jsonb[] parameter; None when there is none among them."""
    array = [None if text is None else RawJson(text) for text in texts]
    return array if any(text is not None for text in array) else None
