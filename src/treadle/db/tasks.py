"""Tasks: enqueue, list and explain them.

A caller may enqueue on its own psycopg connection, plain or async, in whatever transaction it is:
the tasks exist exactly if the caller commits.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import tuple_row

from treadle.db.calls import Calls, RawJson, TaskLocation, json_array
from treadle.db.errors import translate_errors
from treadle.errors import TaskNotFound
from treadle.models import Enqueued

Record = dict[str, Any]

_LISTED = sql.SQL("""
    select
      id, queue, type, name, title, status, priority, effective_priority, attempt, max_attempts,
      agent_id, assigned_agent, progress, failure_class, failure_reason, tags, dag_id, project_id,
      parent_id, idempotency_key, run_at, retry_at, deadline_at, created_at, created_by, started_at,
      completed_at, cost_usd
    from treadle.task_details
""")
# It has the task, or could have.
_OF_AGENT = sql.SQL("coalesce(agent_id, assigned_agent, %(mine)s) = %(mine)s")
SyncConnection = psycopg.Connection[Any]
AsyncConn = AsyncConnection[Any]
AnyConnection = SyncConnection | AsyncConn


class NativeCalls(Calls):
    """One task at a time, with an error where the verdict is no."""

    async def enqueue_tasks(self, tasks: bytes) -> list[Enqueued]:
        rows = await self._call_once(
            "select id, created from treadle.enqueue_tasks(%b)", RawJson(tasks)
        )
        return [Enqueued(*row) for row in rows]

    async def complete_task(
        self, task_id: UUID, token: UUID, output: bytes | None, report: bytes | None
    ) -> str:
        rows = await self._call(
            "select treadle.complete_task(%b, %b, %b::jsonb, %b::jsonb)",
            task_id,
            token,
            None if output is None else RawJson(output),
            None if report is None else RawJson(report),
        )
        return str(rows[0][0])

    async def cancel_task(self, task_id: UUID, reason: str | None, actor: str | None) -> str:
        rows = await self._call("select treadle.cancel_task(%b, %b, %b)", task_id, reason, actor)
        return str(rows[0][0])

    async def unhold_tasks(self, ids: Sequence[UUID], actor: str | None = None) -> dict[UUID, str]:
        rows = await self._call(
            "select id, verdict from treadle.unhold_tasks(%b, %b)", list(ids), actor
        )
        return dict(rows)

    async def claims_of(self, claims: Sequence[tuple[UUID, UUID]]) -> list[TaskLocation]:
        """Queue, project and agent of each claim whose task exists.

        Of no agent: no claim had this token, and nothing will be done with it.
        """
        rows = await self._call(
            "select queue, project_id, agent_id from treadle.claims_of(%b, %b)",
            [claim[0] for claim in claims],
            [claim[1] for claim in claims],
        )
        return [TaskLocation(*row) for row in rows]


class NativeViews(ABC):
    """Tasks as the API lists them; mixed into the reader."""

    @abstractmethod
    async def rows(
        self, query: str | sql.Composed, parameters: dict[str, Any] | Sequence[Any] | None = None
    ) -> list[Record]:
        """Run a select and return its rows by name."""

    async def place_of(self, task_id: UUID) -> TaskLocation:
        """Where a task belongs; an error when there is no such task."""
        found = await self.rows(
            "select queue, project_id, agent from treadle.task_places where id = %(id)s",
            {"id": task_id},
        )
        if not found:
            raise TaskNotFound(
                f"there is no task {task_id}",
                hint="List them: GET /v1/tasks; older ones: GET /v1/history",
                task_id=str(task_id),
            )
        return TaskLocation(**found[0])

    async def agent_queues(self, agent_id: str) -> list[str] | None:
        """The queues of an agent; None when it is not registered."""
        found = await self.rows(
            "select queues from treadle.agent_load where agent_id = %(id)s", {"id": agent_id}
        )
        return found[0]["queues"] if found else None

    async def task_page(
        self,
        filters: Mapping[str, Any],
        *,
        queues: Sequence[str] | None,
        project_id: UUID | None,
        agent: str | None,
        tag: str | None,
        after: UUID | None,
        limit: int,
    ) -> list[Record]:
        """Tasks that match, the newest first."""
        given = {name: value for name, value in filters.items() if value is not None}
        where: list[sql.Composable] = [
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in given
        ]
        if queues is not None:
            where.append(sql.SQL("queue = any (%(queues)s)"))
        if project_id is not None:
            where.append(sql.SQL("project_id = %(own_project)s"))
        if agent is not None:
            where.append(_OF_AGENT)
        if tag is not None:
            where.append(sql.SQL("tags @> array[%(tag)s::text]"))
        if after is not None:
            where.append(sql.SQL("id < %(after)s"))
        query = sql.SQL("{listed} {where} order by id desc limit %(limit)s").format(
            listed=_LISTED,
            where=sql.SQL("where ") + sql.SQL(" and ").join(where) if where else sql.SQL(""),
        )
        also = {
            "queues": queues,
            "own_project": project_id,
            "mine": agent,
            "tag": tag,
            "after": after,
        }
        return await self.rows(query, {**given, **also, "limit": limit})


def enqueue_call(
    queue: str,
    type: str,
    *,
    specs: Sequence[bytes],
    options: bytes,
    keys: Sequence[str | None] | None,
) -> tuple[Any, ...]:
    """Query and parameters of an enqueue, for our connections and for a caller's."""
    return (
        "select id, created from treadle.enqueue_batch(%b, %b, %b::jsonb[], %b, %b::text[])",
        queue,
        type,
        json_array(specs),
        RawJson(options),
        None if keys is None else list(keys),
    )


def enqueue_sync(
    conn: SyncConnection,
    queue: str,
    type: str,
    *,
    specs: Sequence[bytes],
    options: bytes,
    keys: Sequence[str | None] | None,
) -> list[Enqueued]:
    """Enqueue on a plain connection."""
    query, *parameters = enqueue_call(queue, type, specs=specs, options=options, keys=keys)
    with translate_errors(), conn.cursor(row_factory=tuple_row) as cursor:
        cursor.execute(query, parameters)
        return [Enqueued(*row) for row in cursor.fetchall()]


async def enqueue_async(
    conn: AsyncConnection[Any],
    queue: str,
    type: str,
    *,
    specs: Sequence[bytes],
    options: bytes,
    keys: Sequence[str | None] | None,
) -> list[Enqueued]:
    """Enqueue on an async connection."""
    query, *parameters = enqueue_call(queue, type, specs=specs, options=options, keys=keys)
    with translate_errors():
        async with conn.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(query, parameters)
            return [Enqueued(*row) for row in await cursor.fetchall()]


class Explanations(ABC):
    """Reads what the server says about a task or a queue; mixed into the reader."""

    @abstractmethod
    async def rows(self, query: str, parameters: Any = None) -> list[Record]:
        """Run a select and return its rows by name."""

    async def why(self, task_id: UUID) -> list[Record]:
        """Every reason why a task is not running now, the weightiest first."""
        return await self.rows(
            "select sentence, reason, until, detail from treadle.why(%(id)s)", {"id": task_id}
        )

    async def queue(self, name: str) -> Record:
        """A queue with its settings."""
        found = await self.rows("select * from treadle.read_queue(%(name)s)", {"name": name})
        return found[0]

    async def claim_order(self, queue: str, limit: int) -> list[Record]:
        """The ready tasks of a queue in the order in which they would be claimed."""
        return await self.rows(
            "select * from treadle.claim_order(%(queue)s, %(limit)s)",
            {"queue": queue, "limit": limit},
        )
