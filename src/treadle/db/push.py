"""The calls and views about queue `push`: prompts that wait to be sent to agents."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from treadle.db.calls import Caller, RawJson
from treadle.errors import TaskNotFound
from treadle.jsontext import encode

_PREFIX = "queue-"


@dataclass(frozen=True, slots=True)
class Submitted:
    """A prompt that was queued, and how it stands there."""

    queue_id: str
    position: int
    state: str
    depth: int


class PushCalls(Caller):
    """What submitters do."""

    async def submit_push(
        self,
        request: Mapping[str, Any],
        *,
        source: str,
        source_job: str | None = None,
        max_depth: int | None = None,
        max_attempts: int | None = None,
    ) -> Submitted:
        """Queue a prompt; QueueFull when as many wait as may."""
        rows = await self._call_once(
            """
            select queue_id, position, state, depth
            from treadle.submit_push(%b, %b, %b, %b::integer, %b::integer)
            """,
            RawJson(encode(dict(request), name="request")),
            source,
            source_job,
            max_depth,
            max_attempts,
        )
        return Submitted(*rows[0])

    async def cancel_push(
        self, queue_id: str, reason: str | None = None, actor: str | None = None
    ) -> str:
        """Cancel an entry; the state it is in then."""
        _task_id(queue_id)
        rows = await self._call("select treadle.cancel_push(%b, %b, %b)", queue_id, reason, actor)
        return str(rows[0][0])


class PushViews(ABC):
    """What people read of it; mixed into the reader."""

    @abstractmethod
    async def rows(self, query: str, parameters: Any = None) -> list[dict[str, Any]]:
        """Run a select and return its rows by name."""

    async def push_entries(self, limit: int = 1000) -> list[dict[str, Any]]:
        """What has not ended: what agents have, then what waits, in order; each with the depth."""
        return await self.rows(
            """
            select *, count(position) over () as depth
            from treadle.push_queue
            where completed_at is null
            order by position nulls first, created_at, id
            limit %(limit)s
            """,
            {"limit": limit},
        )

    async def push_entry(self, queue_id: str) -> dict[str, Any]:
        found = await self.rows(
            "select * from treadle.push_queue where id = %(id)s", {"id": _task_id(queue_id)}
        )
        if not found:
            raise _missing(queue_id)
        return found[0]

    async def push_summary(self) -> dict[str, Any]:
        """How many wait, for how long the oldest does, and how many are with agents."""
        found = await self.rows(
            """
            select
              count(position) as depth,
              count(*) - count(position) as dispatched_count,
              coalesce(
                extract(epoch from treadle.clock() - min(created_at)
                  filter (where state = 'pending')),
                0
              )::bigint as oldest_age_seconds
            from treadle.push_queue
            where completed_at is null
            """
        )
        return found[0]

    async def push_jobs(self) -> list[dict[str, Any]]:
        """The schedules that submit to the queue, and what became of their last times."""
        return await self.rows(
            """
            select name, last_status, last_queue_id, last_at as last_run, next_at as next_run
            from treadle.schedule_status
            where queue = 'push'
            order by name
            """
        )


def _task_id(queue_id: str) -> UUID:
    try:
        task_id = UUID(queue_id.removeprefix(_PREFIX))
    except ValueError:
        raise _missing(queue_id) from None
    if queue_id != f"{_PREFIX}{task_id}":
        raise _missing(queue_id)
    return task_id


def _missing(queue_id: str) -> TaskNotFound:
    return TaskNotFound(
        f"there is no {queue_id[:60]} in the queue",
        hint="What has ended is there until it is pruned.",
        queue_id=queue_id[:200],
    )
