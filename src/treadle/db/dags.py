"""The calls about DAGs, on our connections and on a caller's own."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import anyio
import psycopg
from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from treadle.db.calls import Calls, RawJson
from treadle.db.errors import translate_errors
from treadle.errors import Unavailable
from treadle.json import encode
from treadle.models import DagState, Enqueued

CREATE = "select dag_id, created, ids from treadle.create_dag(%b)"
OPEN = "select treadle.open_dag(%b, %b)"
ADD = "select id, created from treadle.add_tasks(%b, %b)"
PAUSES_S = (0.05, 0.5)


class CreatedDag(NamedTuple):
    """A DAG that was made, or the one that already had its key; ids in the order of its tasks."""

    id: UUID
    created: bool
    ids: list[UUID]


class DagCalls(Calls):
    """DAGs: made, filled, started, cancelled, retried."""

    async def create_dag(self, document: bytes) -> CreatedDag:
        """Make a whole DAG; with a key in it, a connection lost on the way is tried again."""
        # A transaction around it begins anew as a whole.
        pauses = PAUSES_S if self.tries > 1 else ()
        for pause in (*pauses, None):
            try:
                rows = await self._long_call(CREATE, RawJson(document))
                return CreatedDag(*rows[0])
            except Unavailable as error:
                if pause is None or not isinstance(error.__cause__, psycopg.Error):
                    raise
            await anyio.sleep(pause)
        raise AssertionError("unreachable")

    async def read_dag(self, dag_id: UUID) -> DagState:
        rows = await self._call("select * from treadle.read_dag(%b)", dag_id)
        return DagState(*rows[0])

    async def dag_status(self, dag_id: UUID) -> str:
        rows = await self._call("select treadle.dag_status(%b)", dag_id)
        return str(rows[0][0])

    async def open_dag(self, name: str, options: Mapping[str, Any]) -> UUID:
        rows = await self._call_once(OPEN, name, RawJson(encode(options, name="options")))
        made: UUID = rows[0][0]
        return made

    async def add_tasks(self, dag_id: UUID, tasks: Sequence[Mapping[str, Any]]) -> list[Enqueued]:
        rows = await self._call_once(ADD, dag_id, RawJson(encode(tasks, name="tasks")))
        return [Enqueued(*row) for row in rows]

    async def add_dependency(
        self, task_id: UUID, depends_on: UUID, *, optional: bool = False
    ) -> bool:
        rows = await self._call(
            "select treadle.add_dependency(%b, %b, %b)", task_id, depends_on, optional
        )
        return bool(rows[0][0])

    async def start_dag(self, dag_id: UUID, actor: str | None = None) -> int:
        rows = await self._long_call("select treadle.start_dag(%b, %b)", dag_id, actor)
        return int(rows[0][0])

    async def cancel_dag(
        self, dag_id: UUID, reason: str | None = None, actor: str | None = None
    ) -> int:
        rows = await self._long_call("select treadle.cancel_dag(%b, %b, %b)", dag_id, reason, actor)
        return int(rows[0][0])

    async def retry_dag(
        self, dag_id: UUID, note: str | None = None, actor: str | None = None
    ) -> int:
        rows = await self._long_call("select treadle.retry_dag(%b, %b, %b)", dag_id, actor, note)
        return int(rows[0][0])


def create_sync(conn: psycopg.Connection[Any], document: bytes) -> CreatedDag:
    """Make a DAG on a plain connection: it is there exactly if the caller commits."""
    with translate_errors(), conn.cursor(row_factory=tuple_row) as cursor:
        cursor.execute(CREATE, [RawJson(document)])
        [row] = cursor.fetchall()
        return CreatedDag(*row)


async def create_async(conn: AsyncConnection[Any], document: bytes) -> CreatedDag:
    """Make a DAG on an async connection."""
    with translate_errors():
        async with conn.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(CREATE, [RawJson(document)])
            [row] = await cursor.fetchall()
            return CreatedDag(*row)
