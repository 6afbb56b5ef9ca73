"""Schedules and their runs; reached as `db.schedules`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson, Record
from treadle.db.reach import Reach
from treadle.errors import UnknownSchedule
from treadle.json import encode


@dataclass(frozen=True, slots=True)
class DueSchedule:
    """A schedule that is due, or whose next time must be calculated."""

    id: UUID
    name: str
    cron: str
    timezone: str
    catch_up: str
    grace_s: int
    revision: int
    from_at: datetime
    next_at: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """The outcome of a nominal time."""

    nominal_at: datetime
    status: str
    task_id: UUID | None
    dag_id: UUID | None
    error: str | None
    # The depth of queue `push`, if the run was submitted there.
    depth: int | None


class Schedules:
    """Define, fire and read schedules."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def define(self, name: str, settings: Mapping[str, Any], actor: str | None = None) -> str:
        """Create or change a schedule; return created, changed or unchanged."""
        rows = await self._calls.call(
            "select treadle.define_schedule(%b, %b, %b)",
            name,
            RawJson(encode(settings, name="settings")),
            actor,
        )
        return str(rows[0][0])

    async def declare(
        self, schedules: Mapping[str, Mapping[str, Any]], actor: str | None = None
    ) -> dict[str, str]:
        rows = await self._calls.call(
            "select name, verdict from treadle.declare_schedules(%b, %b)",
            RawJson(encode(schedules, name="schedules")),
            actor,
        )
        return dict(rows)

    async def pause(self, name: str, reason: str | None = None, actor: str | None = None) -> None:
        await self._calls.call("select treadle.pause_schedule(%b, %b, %b)", name, reason, actor)

    async def resume(self, name: str, actor: str | None = None) -> bool:
        rows = await self._calls.call("select treadle.resume_schedule(%b, %b)", name, actor)
        return bool(rows[0][0])

    async def remove(self, name: str, actor: str | None = None) -> None:
        await self._calls.call("select treadle.remove_schedule(%b, %b)", name, actor)

    async def run(
        self, name: str, actor: str | None = None
    ) -> tuple[UUID | None, UUID | None, bool]:
        """Run a schedule now; return its task or DAG, and whether it is new.

        If the queue is full, nothing is stored: record it with `skip` in a separate call.
        """
        rows = await self._calls.call_once(
            "select task_id, dag_id, created from treadle.run_schedule(%b, %b)", name, actor
        )
        task_id, dag_id, created = rows[0]
        return task_id, dag_id, created

    async def skip(self, name: str, error: str, actor: str | None = None) -> None:
        await self._calls.call("select treadle.record_skipped_run(%b, %b, %b)", name, error, actor)

    async def due(self, limit: int, skip: Iterable[UUID]) -> list[DueSchedule]:
        rows = await self._calls.call(
            """
            select id, name, cron, timezone, catch_up, grace_s, revision, from_at, next_at, now
            from treadle.due_schedules(%b::integer, %b::uuid[])
            """,
            limit,
            list(skip),
        )
        return [DueSchedule(*row) for row in rows]

    async def fire(
        self, schedule: UUID, revision: int, due: Sequence[datetime], following: datetime | None
    ) -> list[ScheduleRun]:
        """Handle due times; return nothing if the schedule has changed meanwhile."""
        rows = await self._calls.call(
            """
            select nominal_at, status, task_id, dag_id, error, depth
            from treadle.fire_schedule(%b, %b::bigint, %b::timestamptz[], %b::timestamptz)
            """,
            schedule,
            revision,
            list(due),
            following,
        )
        return [ScheduleRun(*row) for row in rows]

    async def reject(self, schedule: UUID, revision: int, problem: str) -> bool:
        rows = await self._calls.call(
            "select treadle.mark_schedule_invalid(%b, %b::bigint, %b)", schedule, revision, problem
        )
        return bool(rows[0][0])

    async def next_due_in(self) -> float | None:
        return await self._calls.seconds_until("treadle.next_schedule_at()")

    async def get(self, name: str) -> dict[str, Any]:
        found = await self._calls.rows(
            "select * from treadle.schedule_status where name = %s", [name]
        )
        if not found:
            raise UnknownSchedule(
                f"there is no schedule {name!r}", hint="List them: treadle schedules"
            )
        return found[0]

    async def runs(self, name: str, limit: int = 10) -> list[dict[str, Any]]:
        return await self._calls.rows(
            "select * from treadle.schedule_log where schedule = %s order by id desc limit %s",
            [name, limit],
        )

    async def page(self, reach: Reach, *, after: str | None, limit: int) -> list[Record]:
        """List schedules by name, within the queues that the caller may see."""
        return await self._calls.page(
            "schedule_status",
            key="name",
            after=after,
            limit=limit,
            where={"queue = any({})": None if reach.queues is None else [*reach.queues]},
        )

    async def run_page(self, name: str, *, after: int | None, limit: int) -> list[Record]:
        """List the runs of a schedule, newest first: created, skipped and missed ones."""
        return await self._calls.page(
            "schedule_log",
            key="id",
            after=after,
            limit=limit,
            newest=True,
            where={"schedule = {}": name},
        )

    async def list(self) -> list[dict[str, Any]]:
        return await self._calls.rows(
            "select * from treadle.schedule_status order by next_at nulls last, name"
        )
