"""Call SQL functions and read views on pooled connections.

A call is one round trip in its own transaction. Functions are safe to call again with the same
arguments. So a call is repeated on another connection after a deadlock, a lost connection or a
timeout; see ADR 23. Every noun of `Database` is built on these calls alone.
"""

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import anyio
import psycopg
import structlog
from psycopg import sql
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.rows import AsyncRowFactory, dict_row, tuple_row

from treadle.db.errors import (
    RETRY_AT_ONCE,
    CallTimeout,
    is_lost,
    may_have_happened,
    to_treadle_error,
    translate_errors,
)
from treadle.db.install.history import schema_problem
from treadle.db.pool import CLOSE_S, Connection, Pool, close_pool, connect, open_pool
from treadle.db.reach import Reach
from treadle.errors import InvalidArgument, NotFound, Unavailable

log = structlog.get_logger(__name__)
Row = tuple[Any, ...]
Query = str | sql.Composed
TRIES = 5
# A connection may be lost several times while a server restarts. After two timeouts the caller
# decides.
LOST_TRIES = 4
TIMEOUT_TRIES = 2
# The factor of the timeout for calls that process many rows.
LONG = 10
# The factor for claims: they wait for no locks, and an early retry keeps tasks from waiting.
CLAIM = 0.5
_FUNCTION = re.compile(r"treadle\.(\w+)")
Record = dict[str, Any]


class _Connections(Protocol):
    """Where calls get their connections: a pool, or the connection of a transaction."""

    async def getconn(self) -> Connection: ...

    async def putconn(self, conn: Connection) -> None: ...


class _SingleConnection:
    """A pool of one connection, for calls inside a transaction."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    async def getconn(self) -> Connection:
        return self._conn

    async def putconn(self, conn: Connection) -> None:
        """Do nothing: the transaction keeps the connection."""


class _LazyPool:
    """The pool of one event loop, which is opened on first use."""

    __slots__ = ("checked", "opening", "pool")

    def __init__(self) -> None:
        self.opening = anyio.Lock()
        self.pool: Pool | None = None
        # The same pool once the schema has been checked.
        self.checked: Pool | None = None

    def abandon(self) -> None:
        """Close the connections after the event loop has ended."""
        if self.pool is not None:
            self.pool.abandon()


class Calls:
    """Calls functions and reads views on the connections of a pool."""

    # The maximum number of attempts of a call; 1 in a transaction, which is repeated as a whole.
    tries = TRIES
    # The statement timeout in `ctx.transaction()`.
    statement_limit_s = 600.0
    # The pool for `ctx.transaction()`. Handlers may keep a connection for long, so other calls use
    # another pool.
    handler_pool: Pool | None = None

    _make_pool: Callable[[], Pool]
    # The pools of lazy calls: connections belong to the event loop that opened them.
    _by_loop: "dict[asyncio.AbstractEventLoop, _LazyPool]"

    def __init__(self, pool: Pool | None, transaction: Connection | None = None) -> None:
        self._pool = pool
        self._transaction = None if transaction is None else _SingleConnection(transaction)

    @classmethod
    def lazy(cls, make_pool: Callable[[], Pool]) -> "Calls":
        """Return calls that open their pool and check the schema on first use."""
        calls = cls(None)
        calls._make_pool = make_pool
        calls._by_loop = {}
        return calls

    async def open(self) -> Pool:
        """Open the pool of the running event loop, check the schema and return the pool."""
        if self._pool is not None:
            return self._pool
        loop = asyncio.get_running_loop()
        lazy = self._by_loop.get(loop)
        if lazy is None:
            # The connections of loops that have ended cannot be used any more.
            for ended in [each for each in list(self._by_loop) if each.is_closed()]:
                self._by_loop.pop(ended).abandon()
            lazy = self._by_loop[loop] = _LazyPool()
        if lazy.checked is not None:
            return lazy.checked
        async with lazy.opening:
            if lazy.checked is None:
                if lazy.pool is None:
                    lazy.pool = await open_pool(self._make_pool())
                await Calls(lazy.pool).check_schema()
                lazy.checked = lazy.pool
        return lazy.checked

    async def close(self) -> None:
        """Close the connections of all event loops; the next call opens a new pool."""
        here = asyncio.get_running_loop()
        while self._by_loop:
            loop, lazy = self._by_loop.popitem()
            if lazy.pool is None:
                continue
            if loop is here:
                await close_pool(lazy.pool)
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(close_pool(lazy.pool), loop)
                # In case that loop is blocked: close_pool has a limit of its own.
                with anyio.move_on_after(CLOSE_S + 2):
                    await asyncio.wrap_future(closing)
            else:
                lazy.abandon()

    async def check_schema(self) -> None:
        """Raise SchemaError if this version cannot work with the schema."""
        problem = schema_problem(*await self.schema_version())
        if problem is None:
            return
        if problem.detail.get("part") != "code":
            raise problem
        # Functions keep their signatures, so old and new workers can run during an upgrade.
        log.warning("schema.functions_differ", problem=str(problem), hint=problem.hint)

    async def schema_version(self) -> tuple[int | None, str | None]:
        rows = await self.call("select version, code_checksum from treadle.schema_version()")
        return rows[0][0], rows[0][1]

    async def for_handlers(self, transactions: Pool) -> "Calls":
        """Return calls with a separate pool for the transactions of handlers."""
        pool = await self.open()
        # Handlers wait for a free connection instead of failing.
        pool.patience = "shortage"
        calls = Calls(pool)
        calls.statement_limit_s = self.statement_limit_s
        calls.handler_pool = transactions
        return calls

    @asynccontextmanager
    async def separate(self, name: str) -> AsyncIterator["Calls"]:
        """Open one connection outside the pool, for a thread with an event loop of its own."""
        pool = self._pool
        if pool is None:
            raise Unavailable("the pool is not open", hint="Open it first.")
        conn = await connect(
            str(pool.conninfo),
            connect_timeout_s=pool.timeout,
            name=name,
            call_timeout_s=pool.call_timeout_s,
        )
        try:
            calls = Calls(None, conn)
            calls.tries = 1
            yield calls
        finally:
            await conn.close()

    @property
    def contact_at(self) -> float:
        """When the database last responded, by the monotonic clock."""
        pools = (
            [lazy.checked for lazy in list(self._by_loop.values()) if lazy.checked is not None]
            if self._pool is None
            else [self._pool]
        )
        return max((pool.contact_at for pool in pools), default=time.monotonic())

    async def ping(self) -> None:
        """Check that the database responds."""
        await self.call("select 1")

    async def now(self) -> datetime:
        """Return the time by the clock of the database."""
        rows = await self.call("select treadle.clock()")
        now: datetime = rows[0][0]
        return now

    async def seconds_until(self, expression: str) -> float | None:
        """Return the seconds until a SQL expression of a time, by the clock of the database."""
        rows = await self.call(f"select extract(epoch from {expression} - treadle.clock())::float8")
        value: float | None = rows[0][0]
        return value

    async def call(self, query: str, *parameters: object) -> list[Row]:
        return await self._run(query, parameters)

    async def call_once(self, query: str, *parameters: object) -> list[Row]:
        """Make a call that is not idempotent: repeat it only if it certainly had no effect."""
        return await self._run(query, parameters, once=True)

    async def long_call(self, query: str, *parameters: object) -> list[Row]:
        """Make a call that may take long because it processes many rows."""
        return await self._run(query, parameters, times=LONG)

    async def claim_call(self, query: str, *parameters: object) -> list[Row]:
        """Make a call that claims tasks."""
        return await self._run(query, parameters, times=CLAIM)

    async def rows(
        self, query: Query, parameters: dict[str, Any] | Sequence[Any] | None = None
    ) -> list[Record]:
        """Run a select and return its rows by column name."""
        return await self._run(query, parameters, dict_row)

    async def page(
        self,
        view: str,
        *,
        key: str,
        after: object = None,
        limit: int,
        newest: bool = False,
        where: Mapping[str, object] | None = None,
        reach: Reach = Reach.ALL,
        visible: Callable[[Reach], sql.Composed] = Reach.of_record,
    ) -> list[Record]:
        """Read a page of rows after a key, ordered by it.

        `where` maps conditions like "queue = {}" to values; a condition with None is ignored.
        `visible` is the condition that the rows of a restricted caller have to meet.
        """
        given = {condition: each for condition, each in (where or {}).items() if each is not None}
        conditions = [
            sql.SQL(condition).format(sql.Placeholder(f"p{number}"))
            for number, condition in enumerate(given)
        ]
        parameters = {f"p{number}": each for number, each in enumerate(given.values())}
        if reach.is_restricted:
            conditions.append(visible(reach))
            parameters.update(reach.parameters)
        if after is not None:
            passed = sql.SQL("{} < {}" if newest else "{} > {}")
            conditions.append(passed.format(sql.Identifier(key), sql.Placeholder("after")))
            parameters["after"] = after
        query = sql.SQL("select * from {view} {where} order by {key} {order} limit {limit}").format(
            view=sql.Identifier("treadle", view),
            where=sql.SQL("where ") + sql.SQL(" and ").join(conditions)
            if conditions
            else sql.SQL(""),
            key=sql.Identifier(key),
            order=sql.SQL("desc" if newest else "asc"),
            limit=sql.Literal(limit),
        )
        return await self.rows(query, parameters)

    async def find(self, text: str, query: str, noun: str, missing: NotFound) -> UUID:
        """Find an id by its full form, or by a unique ending of six characters or more."""
        try:
            return UUID(text)
        except ValueError:
            pass
        if len(text) < 6 or not set(text.lower()) <= set("0123456789abcdef-"):
            raise InvalidArgument(
                f"{text!r} is not a valid {noun} id",
                hint="Pass the whole id, or at least its last 6 characters.",
                argument=f"{noun.lower()}_id",
            )
        found = await self.rows(query, {"end": f"%{text.lower()}"})
        if not found:
            raise missing
        if len(found) > 1:
            raise InvalidArgument(
                f"more than one {noun} id ends in {text}", hint="Pass more characters of the id."
            )
        found_id: UUID = found[0]["id"]
        return found_id

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Take a pooled connection, for tests and for statements that are not calls."""
        pool = await self.open()
        async with pool.connection() as conn:
            yield conn

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["Calls"]:
        """Open a transaction; the yielded calls use its connection and are not repeated."""
        with translate_errors():
            async with self.begin() as conn:
                calls = Calls(None, conn)
                calls.tries = 1
                yield calls

    async def is_active(self, conn: Connection, *, end: bool = False) -> bool:
        """Return whether the server still runs the statement; see Pool.is_active."""
        pool = await self.open()
        return await pool.is_active(conn, end=end)

    @asynccontextmanager
    async def begin(self, pool: _Connections | None = None) -> AsyncIterator[Connection]:
        """Begin a transaction; try another connection if the first one was lost.

        Once it has begun, it is not repeated.
        """
        pool = pool or self._transaction or await self.open()
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

    async def _run(
        self,
        query: Query,
        parameters: Any,
        rows: AsyncRowFactory[Any] | None = None,
        *,
        times: float = 1,
        once: bool = False,
    ) -> list[Any]:
        # Outside the loop: errors while opening are not retried.
        pool = self._transaction or self._pool or await self.open()
        attempt = 0
        while True:
            attempt += 1
            try:
                return await _once(pool, query, parameters, rows=rows, times=times)
            except psycopg.Error as cause:
                error = to_treadle_error(cause)
                error.__cause__ = cause
                pause_s = None if self.tries == 1 else pause_before_repeat(error, attempt)
                if pause_s is None or (once and may_have_happened(cause)):
                    raise error from cause
                if not is_retryable(error):
                    log.warning(
                        "call.repeated", call=_name(query), attempt=attempt, error=str(error)
                    )
                await anyio.sleep(pause_s)


async def _once(
    pool: _Connections,
    query: Query,
    parameters: Any,
    *,
    rows: AsyncRowFactory[Any] | None,
    times: float,
) -> list[Any]:
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


def pause_before_repeat(error: BaseException, attempt: int) -> float | None:
    """Return the seconds to wait before a call is repeated; None if it must not be."""
    cause = error.__cause__
    if is_retryable(error):
        return random.uniform(0, 0.02 * 2**attempt) if attempt < TRIES else None
    if isinstance(cause, CallTimeout):
        return 0.0 if attempt < TIMEOUT_TRIES else None
    if is_lost(cause):
        return random.uniform(0, 0.05 * 2**attempt) if attempt < LOST_TRIES else None
    return None


def is_retryable(error: BaseException) -> bool:
    """Return whether an immediate retry may succeed: after a deadlock or a lock timeout."""
    cause = error.__cause__
    return isinstance(cause, psycopg.Error) and cause.sqlstate in RETRY_AT_ONCE


async def _give_back(pool: _Connections, conn: Connection, error: BaseException) -> None:
    """Return a connection to the pool after an error, even if the call was cancelled."""
    with anyio.CancelScope(shield=True):
        if is_lost(error):
            await conn.close()
        await pool.putconn(conn)


def _name(query: Query) -> str:
    found = _FUNCTION.search(query if isinstance(query, str) else repr(query))
    return found[1] if found else "select"


class RawJson(bytes):
    """Encoded JSON, sent to PostgreSQL as it is."""

    __slots__ = ()


class _RawJsonDumper(Dumper):
    format = Format.BINARY
    oid = psycopg.adapters.types["jsonb"].oid

    def dump(self, obj: RawJson) -> bytes:
        return b"\x01" + obj


# Registered for this type only, so connections of callers are not affected.
psycopg.adapters.register_dumper(RawJson, _RawJsonDumper)


def json_array(texts: Iterable[bytes | None]) -> list[RawJson | None] | None:
    """Return a jsonb[] parameter; None if all texts are None."""
    array = [None if text is None else RawJson(text) for text in texts]
    return array if any(text is not None for text in array) else None
