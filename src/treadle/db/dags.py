"""DAGs, on pooled connections or on that of the caller; reached as `db.dags`."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import anyio
import psycopg
from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from treadle.db.calls import Calls, RawJson, Record
from treadle.db.errors import translate_errors
from treadle.db.reach import Reach
from treadle.errors import (
    DagNotFound,
    Unavailable,
)
from treadle.json import encode
from treadle.models import (
    DagState,
    Enqueued,
)

CREATE = "select dag_id, created, ids, reused from treadle.create_dag(%b)"
OPEN = "select treadle.open_dag(%b, %b)"
ADD = "select id, created from treadle.add_tasks(%b, %b)"
PAUSES_S = (0.05, 0.5)


class CreatedDag(NamedTuple):
    """A new DAG, or the existing one with the same key; ids are in the order of its tasks.

    Those in `reused` existed before.
    """

    id: UUID
    created: bool
    ids: list[UUID]
    reused: list[UUID]


class Dags:
    """Create, fill, start, cancel, retry and read DAGs."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def create(self, document: bytes) -> CreatedDag:
        """Create a whole DAG; retry if the connection is lost, unless inside a transaction."""
        # A transaction is repeated as a whole by its owner.
        pauses = PAUSES_S if self._calls.tries > 1 else ()
        for pause in (*pauses, None):
            try:
                rows = await self._calls.long_call(CREATE, RawJson(document))
                return CreatedDag(*rows[0])
            except Unavailable as error:
                if pause is None or not isinstance(error.__cause__, psycopg.Error):
                    raise
            await anyio.sleep(pause)
        raise AssertionError("unreachable")

    async def read(self, dag_id: UUID) -> DagState:
        rows = await self._calls.call("select * from treadle.read_dag(%b)", dag_id)
        return DagState(*rows[0])

    async def status(self, dag_id: UUID) -> str:
        rows = await self._calls.call("select treadle.dag_status(%b)", dag_id)
        return str(rows[0][0])

    async def open(self, name: str, options: Mapping[str, Any]) -> UUID:
        rows = await self._calls.call_once(OPEN, name, RawJson(encode(options, name="options")))
        made: UUID = rows[0][0]
        return made

    async def add_tasks(self, dag_id: UUID, tasks: Sequence[Mapping[str, Any]]) -> list[Enqueued]:
        rows = await self._calls.call_once(ADD, dag_id, RawJson(encode(tasks, name="tasks")))
        return [Enqueued(*row) for row in rows]

    async def add_dependency(
        self, task_id: UUID, depends_on: UUID, *, optional: bool = False
    ) -> bool:
        rows = await self._calls.call(
            "select treadle.add_dependency(%b, %b, %b)", task_id, depends_on, optional
        )
        return bool(rows[0][0])

    async def start(self, dag_id: UUID, actor: str | None = None) -> int:
        rows = await self._calls.long_call("select treadle.start_dag(%b, %b)", dag_id, actor)
        return int(rows[0][0])

    async def cancel(
        self, dag_id: UUID, reason: str | None = None, actor: str | None = None
    ) -> int:
        rows = await self._calls.long_call(
            "select treadle.cancel_dag(%b, %b, %b)", dag_id, reason, actor
        )
        return int(rows[0][0])

    async def retry(self, dag_id: UUID, note: str | None = None, actor: str | None = None) -> int:
        rows = await self._calls.long_call(
            "select treadle.retry_dag(%b, %b, %b)", dag_id, actor, note
        )
        return int(rows[0][0])

    async def get(self, dag_id: UUID) -> Record:
        """Get one DAG with its counts."""
        found = await self._calls.rows(
            "select * from treadle.dag_overview where id = %(id)s", {"id": dag_id}
        )
        if not found:
            raise DagNotFound(
                f"there is no DAG {dag_id}", hint="List them: treadle dags list", dag_id=str(dag_id)
            )
        return found[0]

    async def tasks(self, dag_id: UUID) -> list[Record]:
        """List the tasks of a DAG with their dependencies, oldest first."""
        return await self._calls.rows(
            "select * from treadle.dag_tasks where dag_id = %(id)s order by id", {"id": dag_id}
        )

    async def find(self, text: str) -> UUID:
        """Find the id of a DAG by the id, or by a unique ending of six characters or more."""
        query = "select id from treadle.dag_overview where id::text like %(end)s limit 2"
        missing = DagNotFound(f"no DAG id ends in {text}", hint="List them: treadle dags list")
        return await self._calls.find(text, query, "DAG", missing)

    async def page(
        self, reach: Reach, *, status: str | None, after: UUID | None, limit: int
    ) -> list[Record]:
        """Visible DAGs, the newest first."""
        return await self._calls.page(
            "dag_overview",
            key="id",
            after=after,
            limit=limit,
            newest=True,
            where={"status = {}": status},
            reach=reach,
            visible=partial(Reach.of_dag, column="dag_overview.id"),
        )

    async def task_page(self, dag_id: UUID, *, after: UUID | None, limit: int) -> list[Record]:
        """List the tasks of a DAG with their dependencies, in the order of creation."""
        return await self._calls.page(
            "dag_tasks", key="id", after=after, limit=limit, where={"dag_id = {}": dag_id}
        )

    async def list(self, *, status: str | None = None, limit: int = 50) -> list[Record]:
        """List the newest DAGs, of all states or of one."""
        return await self._calls.rows(
            """
            select * from treadle.dag_overview
            where %(status)s::text is null or status = %(status)s
            order by id desc
            limit %(limit)s
            """,
            {"status": status, "limit": limit},
        )


def create_sync(conn: psycopg.Connection[Any], document: bytes) -> CreatedDag:
    """Create a DAG on a sync connection, as part of the caller's transaction."""
    with translate_errors(), conn.cursor(row_factory=tuple_row) as cursor:
        cursor.execute(CREATE, [RawJson(document)])
        [row] = cursor.fetchall()
        return CreatedDag(*row)


async def create_async(conn: AsyncConnection[Any], document: bytes) -> CreatedDag:
    """Create a DAG on an async connection, as part of the caller's transaction."""
    with translate_errors():
        async with conn.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(CREATE, [RawJson(document)])
            [row] = await cursor.fetchall()
            return CreatedDag(*row)
