"""How a SQL function is called: one round trip on a pooled connection, in its own transaction.

Functions may be called again with the same arguments. So a call that meets a deadlock, whose
connection is lost or whose deadline passes is repeated here, on another connection; see ADR 23.
"""

import random
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import anyio
import psycopg
import structlog
from psycopg import sql
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.rows import AsyncRowFactory, dict_row, tuple_row

from treadle.db.connection import CallTimeout, Connection, is_lost, may_have_happened
from treadle.db.pool import Pool
from treadle.db.translate import RETRY_AT_ONCE, translated
from treadle.errors import TreadleError

log = structlog.get_logger(__name__)
Row = tuple[Any, ...]
Query = str | sql.Composed
TRIES = 5
# A connection may be lost several times while a server restarts. After a deadline has passed twice
# it is for the caller to decide.
LOST_TRIES = 4
TIMEOUT_TRIES = 2
# Calls that go through many rows by design get this many times the deadline.
LONG = 10
# A claim waits for no lock, and a worker looks for tasks only every few seconds: with half the
# deadline it is back before others have given up.
CLAIM = 0.5
_FUNCTION = re.compile(r"treadle\.(\w+)")


class Caller:
    """Calls functions on the connections of a pool."""

    # How often a call is made that meets a deadlock; 1 inside a transaction, where it is for the
    # owner of the transaction to repeat.
    tries = TRIES

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @property
    def contact_at(self) -> float:
        """When the database last answered, by the monotonic clock."""
        return self._pool.contact_at

    async def ping(self) -> None:
        """Ask the database for a sign of life."""
        await self._call("select 1")

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        """A pooled connection, for tests and for what is neither a call nor a select."""
        return self._pool.connection()

    async def select(
        self, query: Query, parameters: dict[str, Any] | Sequence[Any] | None = None
    ) -> list[dict[str, Any]]:
        """Read a view; the rows by column name."""
        return cast(list[dict[str, Any]], await self._run(query, parameters, dict_row))

    async def _seconds_until(self, moment: str) -> float | None:
        """How far away a moment is by the database's clock, never by ours."""
        rows = await self._call(f"select extract(epoch from {moment} - treadle.clock())::float8")
        value: float | None = rows[0][0]
        return value

    async def _call(self, query: str, *parameters: object) -> list[Row]:
        return await self._run(query, parameters)

    async def _call_once(self, query: str, *parameters: object) -> list[Row]:
        """A call that would do its work twice: repeated only if it is known to have done nothing.

        For tasks and the like that are made without a key.
        """
        return await self._run(query, parameters, once=True)

    async def _long_call(self, query: str, *parameters: object) -> list[Row]:
        """A call that may take long because there is much to do."""
        return await self._run(query, parameters, times=LONG)

    async def _claim_call(self, query: str, *parameters: object) -> list[Row]:
        """A call that takes tasks."""
        return await self._run(query, parameters, times=CLAIM)

    async def _run(
        self,
        query: Query,
        parameters: Any,
        rows: AsyncRowFactory[Any] | None = None,
        *,
        times: float = 1,
        once: bool = False,
    ) -> list[Any]:
        attempt = 0
        while True:
            attempt += 1
            try:
                with translated():
                    return await self._once(query, parameters, rows, times)
            except TreadleError as error:
                pause_s = None if self.tries == 1 else pause_before_repeat(error, attempt)
                if pause_s is None or (once and may_have_happened(error.__cause__)):
                    raise
                if not meets_again(error):
                    log.warning(
                        "call.repeated", call=_name(query), attempt=attempt, error=str(error)
                    )
                await anyio.sleep(pause_s)

    async def _once(
        self, query: Query, parameters: Any, rows: AsyncRowFactory[Any] | None, times: float
    ) -> list[Any]:
        pool = self._pool
        conn = await pool.getconn()
        try:
            conn.call_timeout_s *= times
            cursor = conn.cursor(binary=rows is None, row_factory=rows or tuple_row)
            await cursor.execute(query, parameters)
            found = await cursor.fetchall()
        except BaseException as error:
            await _give_back(pool, conn, error)
            raise
        await pool.putconn(conn)
        return found

    @asynccontextmanager
    async def _begun(self, pool: Pool | None = None) -> AsyncIterator[Connection]:
        """A transaction, on another connection when it cannot begin on one that was lost.

        Once it has begun it is not repeated: what happens in it is the caller's.
        """
        pool = pool or self._pool
        attempt = 0
        while True:
            attempt += 1
            conn = await pool.getconn()
            transaction = conn.transaction()
            try:
                await transaction.__aenter__()
                break
            except BaseException as error:
                await _give_back(pool, conn, error)
                if self.tries == 1 or attempt >= LOST_TRIES or not is_lost(error):
                    raise
                log.warning("call.repeated", call="begin", attempt=attempt, error=str(error))
        try:
            yield conn
        except BaseException as error:
            try:
                swallowed = await transaction.__aexit__(type(error), error, error.__traceback__)
            finally:
                await _give_back(pool, conn, error)
            if not swallowed:
                raise
            return
        try:
            await transaction.__aexit__(None, None, None)
        except BaseException as error:
            await _give_back(pool, conn, error)
            raise
        await pool.putconn(conn)


def pause_before_repeat(error: BaseException, attempt: int) -> float | None:
    """Seconds to wait before the same call is made again; None when it should not be."""
    cause = error.__cause__
    if meets_again(error):
        return random.uniform(0, 0.02 * 2**attempt) if attempt < TRIES else None
    if isinstance(cause, CallTimeout):
        return 0.0 if attempt < TIMEOUT_TRIES else None
    if is_lost(cause):
        return random.uniform(0, 0.05 * 2**attempt) if attempt < LOST_TRIES else None
    return None


def meets_again(error: BaseException) -> bool:
    """Whether the same call may succeed at once: a deadlock, or a lock that was not free."""
    cause = error.__cause__
    return isinstance(cause, psycopg.Error) and cause.sqlstate in RETRY_AT_ONCE


async def _give_back(pool: Pool, conn: Connection, error: BaseException) -> None:
    """Return a connection after an error; a cancellation does not keep it from the pool."""
    with anyio.CancelScope(shield=True):
        if is_lost(error):
            await conn.close()
        await pool.putconn(conn)


def _name(query: Query) -> str:
    found = _FUNCTION.search(query if isinstance(query, str) else repr(query))
    return found[1] if found else "select"


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
