"""Tasks: enqueue, list and explain them.

A caller may enqueue on its own psycopg connection, plain or async, in whatever transaction it is:
the tasks exist exactly if the caller commits.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import tuple_row

from treadle.db.calls import Calls, RawJson, Record, json_array
from treadle.db.errors import translate_errors
from treadle.errors import (
    TaskNotFound,
)
from treadle.json import encode
from treadle.models import (
    BulkCount,
    Enqueued,
    Promoted,
    TakenResult,
    TaskResult,
)

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


class Tasks:
    """Enqueue, change, list and explain tasks."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def enqueue_batch(
        self,
        queue: str,
        type: str,
        *,
        specs: Sequence[bytes],
        options: bytes,
        keys: Sequence[str | None] | None,
    ) -> list[Enqueued]:
        # A task without a key would be there twice if the first call did succeed.
        call = self._calls.call if keys and None not in keys else self._calls.call_once
        rows = await call(*enqueue_call(queue, type, specs=specs, options=options, keys=keys))
        return [Enqueued(*row) for row in rows]

    async def enqueue(self, tasks: bytes) -> list[Enqueued]:
        rows = await self._calls.call_once(
            "select id, created from treadle.enqueue_tasks(%b)", RawJson(tasks)
        )
        return [Enqueued(*row) for row in rows]

    async def cancel(
        self, ids: Sequence[UUID], reason: str | None, actor: str | None = None
    ) -> dict[UUID, str]:
        rows = await self._calls.call(
            "select id, verdict from treadle.cancel_tasks(%b, %b, %b)", list(ids), reason, actor
        )
        return {row[0]: row[1] for row in rows}

    async def cancel_one(self, task_id: UUID, reason: str | None, actor: str | None) -> str:
        rows = await self._calls.call(
            "select treadle.cancel_task(%b, %b, %b)", task_id, reason, actor
        )
        return str(rows[0][0])

    async def cancel_where(
        self,
        filters: Mapping[str, Any],
        reason: str | None,
        actor: str | None = None,
        *,
        dry_run: bool,
        limit: int,
    ) -> list[BulkCount]:
        """Cancel what a filter finds, or only count it."""
        rows = await self._calls.call(
            """
            select queue, type, status, verdict, why, tasks
            from treadle.cancel_where(%b, %b, %b, %b, %b::integer)
            """,
            RawJson(encode(filters, name="filter")),
            reason,
            actor,
            dry_run,
            limit,
        )
        return [BulkCount(*row) for row in rows]

    async def retry(
        self,
        task_id: UUID,
        resolution: str = "retry",
        *,
        changes: Mapping[str, Any] | None = None,
        reviewer: str | None = None,
        note: str | None = None,
    ) -> str:
        rows = await self._calls.call(
            "select treadle.retry_task(%b, %b, %b, %b, %b)",
            task_id,
            resolution,
            RawJson(encode(dict(changes or {}), name="changes")),
            reviewer,
            note,
        )
        return str(rows[0][0])

    async def retry_where(
        self,
        filters: Mapping[str, Any],
        note: str | None,
        actor: str | None = None,
        *,
        dry_run: bool,
        limit: int,
    ) -> list[BulkCount]:
        """Give what a filter finds another round, or only count it."""
        rows = await self._calls.call(
            """
            select queue, type, status, verdict, why, tasks
            from treadle.retry_where(%b, %b, %b, %b, %b::integer)
            """,
            RawJson(encode(filters, name="filter")),
            note,
            actor,
            dry_run,
            limit,
        )
        return [BulkCount(*row) for row in rows]

    async def unhold(self, ids: Sequence[UUID], actor: str | None = None) -> dict[UUID, str]:
        rows = await self._calls.call(
            "select id, verdict from treadle.unhold_tasks(%b, %b)", list(ids), actor
        )
        return dict(rows)

    async def fork(
        self, task_id: UUID, from_step: str, changes: Mapping[str, Any], actor: str | None
    ) -> UUID:
        rows = await self._calls.call_once(
            "select treadle.fork_task(%b, %b, %b, %b)",
            task_id,
            from_step,
            RawJson(encode(changes, name="changes")),
            actor,
        )
        made: UUID = rows[0][0]
        return made

    async def read_results(self, ids: Sequence[UUID]) -> list[TaskResult]:
        rows = await self._calls.call(
            """
            select id, status, output, failure_class, failure_reason
            from treadle.read_results(%b)
            """,
            list(ids),
        )
        return [TaskResult(*row) for row in rows]

    async def take_results(self, consumer: str, limit: int, token: UUID) -> list[TakenResult]:
        rows = await self._calls.call(
            """
            select id, queue, type, spec, output, decision_report, completed_by, completed_at
            from treadle.take_results(%b, %b::integer, %b)
            """,
            consumer,
            limit,
            token,
        )
        return [TakenResult(*row) for row in rows]

    async def promote(self, limit: int, skip: Iterable[UUID]) -> list[Promoted]:
        rows = await self._calls.call(
            "select id, problem from treadle.promote_tasks(%b::integer, %b::uuid[])",
            limit,
            list(skip),
        )
        return [Promoted(*row) for row in rows]

    async def next_due_in(self) -> float | None:
        return await self._calls.seconds_until("treadle.next_due_at()")

    async def admit(self, limit: int) -> int:
        """Let tasks go on for which a key or a budget has room; returns how many."""
        rows = await self._calls.call("select treadle.admit_tasks(%b::integer)", limit)
        return int(rows[0][0])

    async def rerank(self, limit: int, skip: Iterable[UUID]) -> list[Promoted]:
        rows = await self._calls.call(
            "select id, problem from treadle.rerank_tasks(%b::integer, %b::uuid[])",
            limit,
            list(skip),
        )
        return [Promoted(*row) for row in rows]

    async def get(self, task_id: UUID) -> Record:
        """One task with everything about it."""
        found = await self._calls.rows(
            "select * from treadle.task_details where id = %(id)s", {"id": task_id}
        )
        if not found:
            raise TaskNotFound(
                f"there is no task {task_id}",
                hint="Tasks: treadle tasks list, GET /v1/tasks; older ones: treadle history list,"
                " GET /v1/history",
                task_id=str(task_id),
            )
        return found[0]

    async def find(self, text: str) -> UUID:
        """A task's id from its full form or a unique ending of six characters or more."""
        query = "select id from treadle.task_details where id::text like %(end)s limit 2"
        missing = TaskNotFound(f"no task id ends in {text}", hint="List them: treadle tasks list")
        return await self._calls.find(text, query, "task", missing)

    async def why(self, task_id: UUID) -> list[Record]:
        """Every reason why a task is not running now, the weightiest first."""
        return await self._calls.rows(
            "select sentence, reason, until, detail from treadle.why(%(id)s)", {"id": task_id}
        )

    async def dependencies(self, task: Record) -> list[Record]:
        """The tasks that a task waits for or waited for."""
        found = await self._calls.rows(
            """
            select id, name, type, title, status from treadle.task_details
            where id = any(%(ids)s) order by id
            """,
            {"ids": task["depends_on"]},
        )
        return [{**each, "met": each["id"] not in task["blocked_by"]} for each in found]

    async def subtasks(self, task_id: UUID) -> list[Record]:
        """The tasks that a task has spawned."""
        return await self._calls.rows(
            """
            select id, name, type, title, status, cost_usd from treadle.task_details
            where parent_id = %(id)s order by id
            """,
            {"id": task_id},
        )

    async def history(self, task_id: UUID) -> list[Record]:
        """Every attempt of a task, oldest first."""
        return await self._calls.rows(
            """
            select * from treadle.dispatch_log where task_id = %(id)s
            order by coalesce(ended_at, 'infinity'), attempt
            """,
            {"id": task_id},
        )

    async def page(
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
        return await self._calls.rows(query, {**given, **also, "limit": limit})

    async def list(
        self,
        *,
        status: str | None = None,
        queue: str | None = None,
        type: str | None = None,
        agent: str | None = None,
        limit: int = 50,
    ) -> list[Record]:
        """The newest tasks that match."""
        filters = {"status": status, "queue": queue, "type": type, "agent_id": agent}
        given = {name: value for name, value in filters.items() if value is not None}
        where = sql.SQL(" and ").join(
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in given
        )
        query = sql.SQL(
            """
            select
              id, queue, type, title, status, priority, effective_priority, attempt, max_attempts,
              agent_id, progress, failure_class, failure_reason, run_at, retry_at, created_at,
              started_at, completed_at, cost_usd
            from treadle.task_details
            {where}
            order by id desc
            limit {limit}
            """
        ).format(
            where=sql.SQL("where ") + where if given else sql.SQL(""), limit=sql.Literal(limit)
        )
        return await self._calls.rows(query, given)


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
