"""Retention: prune old rows, and read ages and the archive; reached as `db.retention`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from treadle.db.calls import Calls, Record
from treadle.errors import TaskNotFound

START = "(0,0)"


@dataclass(frozen=True)
class Pruned:
    """The result of one batch: the next place, and the tasks removed, kept and skipped."""

    place: str | None
    pruned: int
    kept: int
    bad: list[UUID]
    problems: list[str]


class Retention:
    """Remove old rows, and read retention ages and archived tasks."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def set(self, kind: str, keep_s: float | None, actor: str | None = None) -> None:
        await self._calls.call(
            "select treadle.set_retention(%b, %b::float8, %b)", kind, keep_s, actor
        )

    async def prune_tasks(self, after: str, limit: int, skip: Iterable[UUID]) -> Pruned:
        """Remove one batch; the commit is asynchronous, since a crash only repeats the batch."""
        rows = await self._calls.long_call(
            """
            with quick as materialized (select set_config('synchronous_commit', 'off', true))
            select place::text, pruned, kept, bad, problems
            from quick, treadle.prune_tasks(%b::text::tid, %b::integer, %b::uuid[])
            """,
            after,
            limit,
            list(skip),
        )
        return Pruned(*rows[0])

    async def prune_events(
        self, after: int, limit: int, open_since: datetime | None
    ) -> tuple[int | None, int]:
        """Remove one batch of events; return the next place and the number removed."""
        rows = await self._calls.long_call(
            "select place, pruned from treadle.prune_events(%b::bigint, %b::integer, %b)",
            after,
            limit,
            open_since,
        )
        return rows[0][0], rows[0][1]

    async def prune_rest(self, limit: int) -> dict[str, int]:
        rows = await self._calls.long_call(
            "select kind, pruned from treadle.prune_other(%b::integer)", limit
        )
        return dict(rows)

    async def oldest_open_at(self) -> datetime | None:
        rows = await self._calls.call("select treadle.oldest_open_at()")
        oldest: datetime | None = rows[0][0]
        return oldest

    async def ages(self) -> list[Record]:
        """List how long rows of each kind are kept."""
        return await self._calls.rows(
            "select * from treadle.retention_status order by queue nulls last, what"
        )

    async def queue_ages(self, queue: str) -> Record:
        """Return how long a queue keeps ended tasks, with the names of its settings."""
        found = await self._calls.rows(
            "select what, keep_s, mode from treadle.retention_status where queue = %s", [queue]
        )
        words = {"completed": "completed", "cancelled": "cancelled", "dead_lettered": "dead"}
        ages: Record = {f"keep_{words[row['what']]}_s": row["keep_s"] for row in found}
        return {**ages, "prune_mode": found[0]["mode"] if found else None}

    async def prunable(self) -> list[Record]:
        """Count the tasks that are older than their retention, by queue and state."""
        return await self._calls.rows(
            """
            select queue, status, count(*) as tasks, min(completed_at) as oldest
            from treadle.prunable_tasks group by queue, status order by queue, status
            """
        )

    async def archive(
        self,
        *,
        queue: str | None = None,
        type: str | None = None,
        within: Sequence[str] | None = None,
        after: UUID | None = None,
        limit: int = 50,
    ) -> list[Record]:
        """List archived tasks, newest first, `within` some queues, `after` a task."""
        return await self._calls.rows(
            """
            select
              id, queue, type, title, status, dag_id, parent_id, created_at, completed_at,
              archived_at, attempt, completed_by, failure_class, failure_reason, cost_usd
            from treadle.archived_tasks
            where
              (%(queue)s::text is null or queue = %(queue)s)
              and (%(type)s::text is null or type = %(type)s)
              and (%(within)s::text[] is null or queue = any (%(within)s))
              and (%(after)s::uuid is null or id < %(after)s)
            order by id desc
            limit %(limit)s
            """,
            {
                "queue": queue,
                "type": type,
                "within": None if within is None else [*within],
                "after": after,
                "limit": limit,
            },
        )

    async def archived(self, text: str) -> Record:
        """Get one archived task by its id, or by an ending of it."""
        try:
            where, value = "id = %(id)s", str(UUID(text))
        except ValueError:
            where, value = "id::text like %(id)s", f"%{text.lower()}"
        found = await self._calls.rows(
            f"select * from treadle.archived_tasks where {where} order by archived_at desc limit 1",
            {"id": value},
        )
        if not found:
            raise TaskNotFound(
                f"there is no archived task {text}",
                hint="List them: treadle archive list",
                task_id=text,
            )
        return found[0]
