"""How a SQL function is called and how a view is read, page by page.

A call is one round trip on a pooled connection, in its own transaction. Functions may be called
again with the same arguments. So a call that meets a deadlock, whose connection is lost or whose
deadline passes is repeated here, on another connection; see ADR 23.
"""

import random
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple, cast
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
from treadle.db.pool import Pool
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
_FUNCTION = re.compile(r"treadle\.(\w+)")
Record = dict[str, Any]


class Calls:
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

    async def _run(
        self,
        query: Query,
        parameters: Any,
        rows: AsyncRowFactory[Any] | None = None,
        *,
        times: int = 1,
        once: bool = False,
    ) -> list[Any]:
        attempt = 0
        while True:
            attempt += 1
            try:
                with translate_errors():
                    return await self._once(query, parameters, rows, times)
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
        self, query: Query, parameters: Any, rows: AsyncRowFactory[Any] | None, times: int
    ) -> list[Any]:
        pool = self._pool
        conn = await pool.getconn()
        try:
            if times > 1:
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


class TaskLocation(NamedTuple):
    """Where a task belongs: its queue, its project, and who has it or is to have it."""

    queue: str
    project_id: UUID | None
    agent: str | None


class Pages(ABC):
    """Reads a part of a view; mixed into the reader."""

    @abstractmethod
    async def rows(self, query: Any, parameters: Any = None) -> list[Record]:
        """Run a select and return its rows by name."""

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

    async def dag_places(self, dag_id: UUID) -> list[TaskLocation]:
        """Where the tasks of a DAG belong."""
        return await self._places("select id from treadle.dag_tasks where dag_id = %(of)s", dag_id)

    async def letter_places(self, ids: Sequence[UUID]) -> list[TaskLocation]:
        """Where letters belong, by their ids or by those of their tasks."""
        which = """
            select task_id from treadle.dead_letter_review
            where id = any (%(of)s) or task_id = any (%(of)s)
        """
        return await self._places(which, list(ids))

    async def task_places(self, ids: Sequence[UUID]) -> list[TaskLocation]:
        """Where tasks belong, those that exist."""
        return await self._places("select unnest(%(of)s::uuid[])", list(ids))

    async def places_by_id(self, ids: Sequence[UUID]) -> dict[UUID, TaskLocation]:
        """Where each task belongs, those that exist."""
        found = await self.rows(
            "select id, queue, project_id, agent from treadle.task_places where id = any (%(ids)s)",
            {"ids": list(ids)},
        )
        return {
            row["id"]: TaskLocation(row["queue"], row["project_id"], row["agent"]) for row in found
        }

    async def referred_places(
        self, ids: Sequence[UUID], names: Sequence[str], by: UUID | None
    ) -> list[TaskLocation]:
        """Where the tasks belong behind ids of tasks or artifacts, and behind names in a DAG.

        The DAG is that of the task `by`; its own subtasks are left out.
        """
        which = """
            select unnest(%(of)s::uuid[])
            union all
            select files.task_id from treadle.artifact_details as files
            where files.id = any (%(of)s)
            union all
            select nodes.id from treadle.dag_tasks as nodes
            where
              nodes.name = any (%(names)s)
              and nodes.dag_id = (
                select mine.dag_id from treadle.task_details as mine where mine.id = %(by)s
              )
            except
            select children.id from treadle.task_details as children
            where children.parent_id = %(by)s
        """
        return await self._places(which, list(ids), by=by, names=list(names))

    async def _places(self, which: str, of: object, **also: object) -> list[TaskLocation]:
        found = await self.rows(
            f"""
            select distinct queue, project_id, agent
            from treadle.task_places where id in ({which})
            """,
            {"of": of, **also},
        )
        return [TaskLocation(row["queue"], row["project_id"], row["agent"]) for row in found]
