"""Tasks: enqueue, list and explain them.

A caller may enqueue on its own psycopg connection, sync or async, as part of its transaction: the
tasks exist if and only if the caller commits.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import tuple_row

from treadle.db.access import Access
from treadle.db.calls import Calls, RawJson, Record, json_array
from treadle.db.errors import refusal, translate_errors
from treadle.db.reach import Reach
from treadle.errors import TaskNotFound
from treadle.fields import detail_fields, list_fields
from treadle.json import encode
from treadle.models import BulkCount, Enqueued, Prioritised, Promoted, TakenResult, TaskResult

_LISTED = sql.SQL("select {} from treadle.task_details").format(
    sql.SQL(", ").join(sql.Identifier(field.wire) for field in list_fields())
)
_DETAILS = sql.SQL("select {} from treadle.task_details where id = %(id)s").format(
    sql.SQL(", ").join(sql.Identifier(field.wire) for field in detail_fields())
)
SyncConnection = psycopg.Connection[Any]
AsyncConn = AsyncConnection[Any]
AnyConnection = SyncConnection | AsyncConn

_BULK_COUNT = "queue, type, status, verdict, why, tasks"


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
        # Without a key, a repeated call could create the task twice.
        call = self._calls.call if keys and None not in keys else self._calls.call_once
        rows = await call(*enqueue_call(queue, type, specs=specs, options=options, keys=keys))
        return [Enqueued(*row) for row in rows]

    async def try_enqueue_batch(
        self,
        queue: str,
        type: str,
        *,
        specs: Sequence[bytes],
        options: bytes,
        keys: Sequence[str | None] | None,
    ) -> list[Enqueued]:
        """The same for requests over HTTP: a full queue leaves no error in the server log."""
        call = self._calls.call if keys and None not in keys else self._calls.call_once
        _, *parameters = enqueue_call(queue, type, specs=specs, options=options, keys=keys)
        rows = await call(
            """
            select problem, id, created
            from treadle.try_enqueue_batch(%b, %b, %b::jsonb[], %b, %b::text[])
            """,
            *parameters,
        )
        for problem, *_ in rows:
            if problem is not None:
                raise refusal(problem)
        return [Enqueued(*row[1:]) for row in rows]

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
        """Cancel the tasks that match a filter, or only count them."""
        query = f"select {_BULK_COUNT} from treadle.cancel_tasks_where(%b, %b, %b, %b, %b::integer)"
        values = (RawJson(encode(filters, name="filter")), reason, actor, dry_run, limit)
        return [BulkCount(*row) for row in await self._calls.call(query, *values)]

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
        """Retry the tasks that match a filter, or only count them."""
        query = f"select {_BULK_COUNT} from treadle.retry_tasks_where(%b, %b, %b, %b, %b::integer)"
        values = (RawJson(encode(filters, name="filter")), note, actor, dry_run, limit)
        return [BulkCount(*row) for row in await self._calls.call(query, *values)]

    async def set_priority(
        self,
        ids: Sequence[UUID],
        *,
        priority: int | None = None,
        tier: str | None = None,
        urgency: int | None = None,
        reason: str | None = None,
        actor: str | None = None,
    ) -> list[Prioritised]:
        """Change the priority of tasks that wait; a verdict for each."""
        rows = await self._calls.call(
            """
            select id, verdict, priority
            from treadle.set_priority(%b, %b::integer, %b, %b::integer, %b, %b)
            """,
            list(ids),
            priority,
            tier,
            urgency,
            reason,
            actor,
        )
        return [Prioritised(*row) for row in rows]

    async def set_priority_where(
        self,
        filters: Mapping[str, Any],
        reason: str | None,
        actor: str | None = None,
        *,
        priority: int | None = None,
        tier: str | None = None,
        urgency: int | None = None,
        dry_run: bool,
        limit: int,
    ) -> list[BulkCount]:
        """Change the priority of the waiting tasks that match a filter, or only count them."""
        rows = await self._calls.call(
            """
            select queue, type, status, verdict, why, tasks
            from treadle.set_priority_where(
              %b, %b::integer, %b, %b::integer, %b, %b, %b, %b::integer
            )
            """,
            RawJson(encode(filters, name="filter")),
            priority,
            tier,
            urgency,
            reason,
            actor,
            dry_run,
            limit,
        )
        return [BulkCount(*row) for row in rows]

    async def unhold(self, ids: Sequence[UUID], actor: str | None = None) -> dict[UUID, str]:
        rows = await self._calls.call(
            "select id, verdict from treadle.release_held_tasks(%b, %b)", list(ids), actor
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
        """Admit tasks that a concurrency key or a budget now allows; return their number."""
        rows = await self._calls.call("select treadle.admit_waiting_tasks(%b::integer)", limit)
        return int(rows[0][0])

    async def rerank(self, limit: int, skip: Iterable[UUID]) -> list[Promoted]:
        rows = await self._calls.call(
            "select id, problem from treadle.rerank_tasks(%b::integer, %b::uuid[])",
            limit,
            list(skip),
        )
        return [Promoted(*row) for row in rows]

    async def get(self, task_id: UUID) -> Record:
        """Get one task with all its details."""
        found = await self._calls.rows(_DETAILS, {"id": task_id})
        if not found:
            raise TaskNotFound(
                f"there is no task {task_id}",
                hint="Tasks: treadle tasks list, GET /v1/tasks; older ones: treadle archive list,"
                " GET /v1/history",
                task_id=str(task_id),
            )
        return found[0]

    async def check_exists(self, task_id: UUID) -> None:
        """Raise TaskNotFound when there is no such task; for lists that may be empty."""
        await Access(self._calls).sees(Reach.ALL, "task", task_id)

    async def find(self, text: str) -> UUID:
        """Find the id of a task by the id, or by a unique ending of six characters or more."""
        query = "select id from treadle.task_details where id::text like %(end)s limit 2"
        missing = TaskNotFound(f"no task id ends in {text}", hint="List them: treadle tasks list")
        return await self._calls.find(text, query, "task", missing)

    async def why(self, task_id: UUID) -> list[Record]:
        """List the reasons why a task is not running, most important first."""
        return await self._calls.rows(
            "select sentence, reason, until, detail from treadle.why(%(id)s)", {"id": task_id}
        )

    async def dependencies(self, task: Record) -> list[Record]:
        """List the dependencies of a task."""
        found = await self._calls.rows(
            """
            select id, name, type, title, status from treadle.task_details
            where id = any(%(ids)s) order by id
            """,
            {"ids": task["depends_on"]},
        )
        return [{**each, "met": each["id"] not in task["blocked_by"]} for each in found]

    async def subtasks(self, task_id: UUID) -> list[Record]:
        """List the subtasks of a task."""
        return await self._calls.rows(
            """
            select id, name, type, title, status, cost_usd from treadle.task_details
            where parent_id = %(id)s order by id
            """,
            {"id": task_id},
        )

    async def history(self, task_id: UUID) -> list[Record]:
        """List the attempts of a task, oldest first."""
        return await self._calls.rows(
            """
            select * from treadle.dispatch_log where task_id = %(id)s
            order by coalesce(ended_at, 'infinity'), attempt
            """,
            {"id": task_id},
        )

    async def page(
        self,
        reach: Reach,
        filters: Mapping[str, Any],
        *,
        tag: str | None = None,
        after: UUID | None = None,
        limit: int,
    ) -> list[Record]:
        """List matching tasks that are visible, newest first."""
        given = {name: value for name, value in filters.items() if value is not None}
        where: list[sql.Composable] = [
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in given
        ]
        if reach.is_restricted:
            where.append(reach.of_row("coalesce(agent_id, assigned_agent)"))
        if tag is not None:
            where.append(sql.SQL("tags @> array[%(tag)s::text]"))
        if after is not None:
            where.append(sql.SQL("id < %(after)s"))
        query = sql.SQL("{listed} {where} order by id desc limit %(limit)s").format(
            listed=_LISTED,
            where=sql.SQL("where ") + sql.SQL(" and ").join(where) if where else sql.SQL(""),
        )
        also = {"tag": tag, "after": after, "limit": limit}
        return await self._calls.rows(query, {**given, **reach.parameters, **also})

    async def list(self, filters: Mapping[str, Any] | None = None, limit: int = 50) -> list[Record]:
        """List the newest tasks that match; the filters are those of `cancel_where`."""
        # Two calls: a join with an empty table would not call the function, which checks names.
        found = await self._calls.call(
            "select treadle.find_tasks(%b, %b)", RawJson(encode(dict(filters or {}))), limit
        )
        query = sql.SQL("{} where id = any (%(ids)s) order by id desc").format(_LISTED)
        return await self._calls.rows(query, {"ids": [row[0] for row in found]})


def enqueue_call(
    queue: str,
    type: str,
    *,
    specs: Sequence[bytes],
    options: bytes,
    keys: Sequence[str | None] | None,
) -> tuple[Any, ...]:
    """Return the query and the parameters of an enqueue."""
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
    """Enqueue on a sync connection of the caller."""
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
    """Enqueue on an async connection of the caller."""
    query, *parameters = enqueue_call(queue, type, specs=specs, options=options, keys=keys)
    with translate_errors():
        async with conn.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(query, parameters)
            return [Enqueued(*row) for row in await cursor.fetchall()]
