"""How a SQL function is called and how a view is read, page by page.

A call is one round trip on a pooled connection, in its own transaction. Functions may be called
again with the same arguments. So a call that meets a deadlock, whose connection is lost or whose
deadline passes is repeated here, on another connection; see ADR 23.

Every noun of `Database` is a class that gets these and nothing else.
"""

import random
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import anyio
import psycopg
import structlog
from psycopg import sql
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.rows import AsyncRowFactory, dict_row, tuple_row

from treadle.db.connection import CallTimeout, Connection, is_lost, may_have_happened
from treadle.db.errors import RETRY_AT_ONCE, translate_errors
from treadle.db.install.history import schema_problem
from treadle.db.pool import Pool, close_pool, open_pool
from treadle.errors import InvalidArgument, NotFound, TreadleError

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
Record = dict[str, Any]


class _SingleConnection:
    """One connection in the place of a pool."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    async def getconn(self) -> Connection:
        return self._conn

    async def putconn(self, _: Connection) -> None:
        """It stays with the transaction."""


class Calls:
    """Calls functions and reads views on the connections of a pool."""

    # How often a call is made that meets a deadlock; 1 inside a transaction, where it is for the
    # owner of the transaction to repeat.
    tries = TRIES
    # The longest statement of a handler in a transaction of its own.
    statement_limit_s = 600.0
    # Where such transactions have their connections. A handler keeps one for as long as it likes,
    # so they are not those of the calls that handlers make meanwhile.
    handler_pool: Pool | None = None

    _make_pool: Callable[[], Pool]
    _opening: anyio.Lock
    _unchecked: Pool | None = None

    def __init__(self, pool: Pool | None) -> None:
        self._pool = pool

    @classmethod
    def lazy(cls, make_pool: Callable[[], Pool]) -> "Calls":
        """Calls that make and open their pool, and check the schema, on first use."""
        calls = cls(None)
        calls._make_pool = make_pool
        calls._opening = anyio.Lock()
        return calls

    async def open(self) -> Pool:
        """The open pool, of a database whose schema fits this version."""
        if self._pool is not None:
            return self._pool
        async with self._opening:
            if self._pool is None:
                if self._unchecked is None:
                    self._unchecked = await open_pool(self._make_pool())
                await Calls(self._unchecked).check_schema()
                self._pool = self._unchecked
        return self._pool

    async def close(self) -> None:
        """Give up the connections; the next call opens a pool again."""
        pool, self._pool, self._unchecked = self._unchecked, None, None
        if pool is not None:
            await close_pool(pool)

    async def check_schema(self) -> None:
        """Refuse a schema that this version cannot work with."""
        problem = schema_problem(*await self.schema_version())
        if problem is None:
            return
        if problem.detail.get("part") != "code":
            raise problem
        # Functions keep their signatures: old and new workers run side by side during an upgrade.
        log.warning("schema.other_functions", problem=str(problem), hint=problem.hint)

    async def schema_version(self) -> tuple[int | None, str | None]:
        rows = await self.call("select version, code_checksum from treadle.schema_version()")
        return rows[0][0], rows[0][1]

    async def for_handlers(self, transactions: Pool) -> "Calls":
        """The same calls, with connections of their own for transactions of handlers."""
        pool = await self.open()
        # What runs in a slot waits for a connection like for the slot.
        pool.patience = "shortage"
        made = Calls(pool)
        made.statement_limit_s = self.statement_limit_s
        made.handler_pool = transactions
        return made

    @property
    def contact_at(self) -> float:
        """When the database last answered, by the monotonic clock."""
        return time.monotonic() if self._pool is None else self._pool.contact_at

    async def ping(self) -> None:
        """Ask the database for a sign of life."""
        await self.call("select 1")

    async def now(self) -> datetime:
        """The database's clock."""
        rows = await self.call("select treadle.clock()")
        moment: datetime = rows[0][0]
        return moment

    async def seconds_until(self, moment: str) -> float | None:
        """How far away a moment is by the database's clock, never by ours."""
        rows = await self.call(f"select extract(epoch from {moment} - treadle.clock())::float8")
        value: float | None = rows[0][0]
        return value

    async def call(self, query: str, *parameters: object) -> list[Row]:
        return await self._run(query, parameters)

    async def call_once(self, query: str, *parameters: object) -> list[Row]:
        """A call that would do its work twice: repeated only if it is known to have done nothing.

        For tasks and the like that are made without a key.
        """
        return await self._run(query, parameters, once=True)

    async def long_call(self, query: str, *parameters: object) -> list[Row]:
        """A call that may take long because there is much to do."""
        return await self._run(query, parameters, times=LONG)

    async def claim_call(self, query: str, *parameters: object) -> list[Row]:
        """A call that takes tasks."""
        return await self._run(query, parameters, times=CLAIM)

    async def rows(
        self, query: Query, parameters: dict[str, Any] | Sequence[Any] | None = None
    ) -> list[Record]:
        """Run a select and return its rows by column name."""
        return cast(list[Record], await self._run(query, parameters, dict_row))

    async def page(
        self,
        view: str,
        *,
        key: str,
        after: object = None,
        limit: int,
        newest: bool = False,
        where: Mapping[str, object] | None = None,
    ) -> list[Record]:
        """Rows after a key in its order; `where` has conditions like "queue = {}" and their values.

        A condition whose value is None does not count.
        """
        given = {condition: each for condition, each in (where or {}).items() if each is not None}
        conditions = [
            sql.SQL(condition).format(sql.Placeholder(f"p{number}"))
            for number, condition in enumerate(given)
        ]
        parameters = {f"p{number}": each for number, each in enumerate(given.values())}
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
        """The id from its full form or a unique ending of six characters or more."""
        try:
            return UUID(text)
        except ValueError:
            pass
        if len(text) < 6 or not set(text.lower()) <= set("0123456789abcdef-"):
            raise InvalidArgument(
                f"{text!r} is no {noun} id",
                hint="Give the whole id, or at least its last 6 characters.",
                argument=f"{noun.lower()}_id",
            )
        found = await self.rows(query, {"end": f"%{text.lower()}"})
        if not found:
            raise missing
        if len(found) > 1:
            raise InvalidArgument(
                f"more than one {noun} id ends in {text}", hint="Give more of it."
            )
        found_id: UUID = found[0]["id"]
        return found_id

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A pooled connection, for tests and for what is neither a call nor a select."""
        pool = await self.open()
        async with pool.connection() as conn:
            yield conn

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["Calls"]:
        """The same calls, all in one transaction; a deadlock or a lost connection ends it."""
        with translate_errors():
            async with self.begin() as conn:
                held = Calls(cast(Pool, _SingleConnection(conn)))
                held.tries = 1
                yield held

    async def is_active(self, conn: Connection, *, end: bool = False) -> bool:
        """Whether the server works on what this connection asked for; see Pool.is_active."""
        pool = await self.open()
        return await pool.is_active(conn, end=end)

    @asynccontextmanager
    async def begin(self, pool: Pool | None = None) -> AsyncIterator[Connection]:
        """A transaction, on another connection when it cannot begin on one that was lost.

        Once it has begun it is not repeated: what happens in it is the caller's.
        """
        pool = pool or await self.open()
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
        # Outside the loop: what goes wrong there is not repeated.
        pool = await self.open() if self._pool is None else self._pool
        attempt = 0
        while True:
            attempt += 1
            try:
                with translate_errors():
                    return await _once(pool, query, parameters, rows=rows, times=times)
            except TreadleError as error:
                pause_s = None if self.tries == 1 else pause_before_repeat(error, attempt)
                if pause_s is None or (once and may_have_happened(error.__cause__)):
                    raise
                if not is_retryable(error):
                    log.warning(
                        "call.repeated", call=_name(query), attempt=attempt, error=str(error)
                    )
                await anyio.sleep(pause_s)


async def _once(
    pool: Pool, query: Query, parameters: Any, *, rows: AsyncRowFactory[Any] | None, times: float
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
    """Seconds to wait before the same call is made again; None when it should not be."""
    cause = error.__cause__
    if is_retryable(error):
        return random.uniform(0, 0.02 * 2**attempt) if attempt < TRIES else None
    if isinstance(cause, CallTimeout):
        return 0.0 if attempt < TIMEOUT_TRIES else None
    if is_lost(cause):
        return random.uniform(0, 0.05 * 2**attempt) if attempt < LOST_TRIES else None
    return None


def is_retryable(error: BaseException) -> bool:
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
