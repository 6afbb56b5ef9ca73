"""Queue `push`: prompts that wait to be sent, and what was sent; reached as `db.push`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson
from treadle.errors import TaskNotFound
from treadle.json import encode

_PREFIX = "queue-"
_TARGET = """
    task_id, claim_token, number, attempt, max_attempts, agent_id, agent_url, allow_private,
    agent_task_id, spec, verdict, again
"""


@dataclass(frozen=True, slots=True)
class Submitted:
    """A prompt that was queued, and how it stands there."""

    queue_id: str
    position: int
    state: str
    depth: int


@dataclass(frozen=True)
class PushAgent:
    """An agent that may be sent something."""

    id: str
    url: str
    allow_private: bool
    free: bool
    waiting: bool


@dataclass(frozen=True)
class Dispatch:
    """A submission of a task to an agent, as far as it is known."""

    task_id: UUID
    claim_token: UUID = field(repr=False)
    number: int
    attempt: int
    max_attempts: int
    agent_id: str
    agent_url: str
    allow_private: bool
    agent_task_id: str | None
    spec: Any = field(repr=False)
    verdict: str
    # The agent was sent the same before, and may have it.
    again: bool

    @property
    def queue_id(self) -> str:
        return f"queue-{self.task_id}"

    @property
    def key(self) -> str:
        """The same for every try of this submission, and for nothing else."""
        return f"{self.queue_id}.{self.number}"


class Push:
    """Submit prompts, send them to agents and follow them."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def submit(
        self,
        request: Mapping[str, Any],
        *,
        source: str,
        source_job: str | None = None,
        max_depth: int | None = None,
        max_attempts: int | None = None,
    ) -> Submitted:
        """Queue a prompt; QueueFull when as many wait as may."""
        rows = await self._calls.call_once(
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

    async def cancel(
        self, queue_id: str, reason: str | None = None, actor: str | None = None
    ) -> str:
        """Cancel an entry; the state it is in then."""
        _task_id(queue_id)
        rows = await self._calls.call(
            "select treadle.cancel_push(%b, %b, %b)", queue_id, reason, actor
        )
        return str(rows[0][0])

    async def targets(self, *, rest_s: float) -> list[PushAgent]:
        rows = await self._calls.call(
            """
            select agent_id, url, allow_private, free, waiting
            from treadle.dispatch_targets(%b::float8)
            """,
            rest_s,
        )
        return [PushAgent(*row) for row in rows]

    async def dispatch(
        self, agent: str, token: UUID, holder: UUID, *, lease_s: float, rest_s: float
    ) -> Dispatch | None:
        """The next task for an agent; repeat with the same token when the answer was lost."""
        rows = await self._calls.call(
            f"""
            select {_TARGET}
            from treadle.dispatch_task(%b, %b, %b, %b::float8, p_rest_s => %b::float8)
            """,
            agent,
            token,
            holder,
            lease_s,
            rest_s,
        )
        return Dispatch(*rows[0]) if rows else None

    async def accept(
        self, dispatch: Dispatch, holder: UUID, agent_task: str, session: str | None
    ) -> str:
        rows = await self._calls.call(
            "select treadle.accept_dispatch(%b, %b, %b, %b, %b)",
            dispatch.task_id,
            dispatch.claim_token,
            holder,
            agent_task,
            session,
        )
        return str(rows[0][0])

    async def end(
        self,
        dispatch: Dispatch,
        holder: UUID,
        outcome: str,
        *,
        error: str | None = None,
        output: bytes | None = None,
    ) -> str | None:
        """The state of the task then; None when somebody else follows the submission."""
        rows = await self._calls.call(
            "select treadle.end_dispatch(%b, %b, %b, %b, %b, %b::jsonb)",
            dispatch.task_id,
            dispatch.claim_token,
            holder,
            outcome,
            error,
            None if output is None else RawJson(output),
        )
        state: str | None = rows[0][0]
        return state

    async def give_up(
        self, dispatch: Dispatch, holder: UUID, error: str, *, unsure_s: float, silent_s: float
    ) -> str | None:
        """The state of the task then; None when its agent is to be asked again."""
        rows = await self._calls.call(
            "select treadle.give_up_dispatch(%b, %b, %b, %b, %b::float8, %b::float8)",
            dispatch.task_id,
            dispatch.claim_token,
            holder,
            error,
            unsure_s,
            silent_s,
        )
        state: str | None = rows[0][0]
        return state

    async def renew(self, holder: UUID, heard: Iterable[UUID], *, lease_s: float) -> list[Dispatch]:
        """All that this dispatcher follows."""
        rows = await self._calls.call(
            f"select {_TARGET} from treadle.renew_dispatches(%b, %b::uuid[], %b::float8)",
            holder,
            list(heard),
            lease_s,
        )
        return [Dispatch(*row) for row in rows]

    async def take(self, holder: UUID, limit: int, *, lease_s: float) -> list[Dispatch]:
        """What dispatchers that are gone have left behind."""
        rows = await self._calls.call(
            f"select {_TARGET} from treadle.take_dispatches(%b, %b::integer, %b::float8)",
            holder,
            limit,
            lease_s,
        )
        return [Dispatch(*row) for row in rows]

    async def leave(self, holder: UUID) -> int:
        rows = await self._calls.call("select treadle.leave_dispatches(%b)", holder)
        return int(rows[0][0])

    async def get(self, queue_id: str) -> dict[str, Any]:
        found = await self._calls.rows(
            "select * from treadle.push_queue where id = %(id)s", {"id": _task_id(queue_id)}
        )
        if not found:
            raise _missing(queue_id)
        return found[0]

    async def summary(self) -> dict[str, Any]:
        """How many wait, for how long the oldest does, and how many are with agents."""
        found = await self._calls.rows(
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

    async def jobs(self) -> list[dict[str, Any]]:
        """The schedules that submit to the queue, and what became of their last times."""
        return await self._calls.rows(
            """
            select name, last_status, last_queue_id, last_at as last_run, next_at as next_run
            from treadle.schedule_status
            where queue = 'push'
            order by name
            """
        )

    async def list(self, limit: int = 1000) -> list[dict[str, Any]]:
        """What has not ended: what agents have, then what waits, in order; each with the depth."""
        return await self._calls.rows(
            """
            select *, count(position) over () as depth
            from treadle.push_queue
            where completed_at is null
            order by position nulls first, created_at, id
            limit %(limit)s
            """,
            {"limit": limit},
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
