"""Queue `push`: prompts to send to agents, and their submissions; reached as `db.push`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson
from treadle.db.errors import refusal
from treadle.errors import TaskNotFound
from treadle.json import encode

_PREFIX = "queue-"
_TARGET = """
    task_id, claim_token, number, attempt, max_attempts, agent_id, agent_url, allow_private,
    agent_task_id, spec, verdict, again
"""


@dataclass(frozen=True, slots=True)
class Submitted:
    """A queued prompt and its position."""

    queue_id: str
    position: int
    state: str
    depth: int


@dataclass(frozen=True)
class PushAgent:
    """An agent that prompts can be sent to."""

    id: str
    url: str
    allow_private: bool
    free: bool
    waiting: bool


@dataclass(frozen=True)
class Dispatch:
    """A submission of a task to an agent."""

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
    # Whether it was sent to the agent before, which may have it.
    again: bool

    @property
    def queue_id(self) -> str:
        return f"queue-{self.task_id}"

    @property
    def key(self) -> str:
        """The idempotency key, which is the same for every try of this submission."""
        return f"{self.queue_id}.{self.number}"


class Push:
    """Submit prompts, dispatch them to agents and track them."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def submit(
        self,
        request: Mapping[str, Any],
        *,
        source: str,
        job: str | None = None,
        max_depth: int | None = None,
        max_attempts: int | None = None,
    ) -> Submitted:
        """Queue a prompt; raise QueueFull if the queue has reached its maximum size."""
        rows = await self._calls.call_once(
            """
            select problem, queue_id, position, state, depth
            from treadle.try_submit_push(%b, %b, %b, %b::integer, %b::integer)
            """,
            RawJson(encode(dict(request), name="request")),
            source,
            job,
            max_depth,
            max_attempts,
        )
        problem, *submitted = rows[0]
        if problem is not None:
            raise refusal(problem)
        return Submitted(*submitted)

    async def cancel(
        self, queue_id: str, reason: str | None = None, actor: str | None = None
    ) -> str:
        """Cancel an entry; return its new state."""
        _task_id(queue_id)
        rows = await self._calls.call(
            "select state, problem from treadle.try_cancel_push(%b, %b, %b)",
            queue_id,
            reason,
            actor,
        )
        state, problem = rows[0]
        if problem is not None:
            raise refusal(problem)
        return str(state)

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
        """Claim the next task for an agent; if the response is lost, repeat with the token."""
        rows = await self._calls.call(
            f"""
            select {_TARGET}
            from treadle.dispatch_task(%b, %b, %b, %b::float8, p_cooldown_s => %b::float8)
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
        """Record the outcome; return the new state, None if another dispatcher took over."""
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
        """End a submission whose outcome stays unknown; return None if it is too early."""
        rows = await self._calls.call(
            "select treadle.expire_dispatch(%b, %b, %b, %b, %b::float8, %b::float8)",
            dispatch.task_id,
            dispatch.claim_token,
            holder,
            error,
            unsure_s,
            silent_s,
        )
        state: str | None = rows[0][0]
        return state

    async def renew(
        self, holder: UUID, responded: Iterable[UUID], *, lease_s: float
    ) -> list[Dispatch]:
        """Renew the leases of a dispatcher; return all submissions that it holds."""
        rows = await self._calls.call(
            f"select {_TARGET} from treadle.renew_dispatches(%b, %b::uuid[], %b::float8)",
            holder,
            list(responded),
            lease_s,
        )
        return [Dispatch(*row) for row in rows]

    async def take(self, holder: UUID, limit: int, *, lease_s: float) -> list[Dispatch]:
        """Take over submissions whose leases have expired."""
        rows = await self._calls.call(
            f"select {_TARGET} from treadle.take_over_dispatches(%b, %b::integer, %b::float8)",
            holder,
            limit,
            lease_s,
        )
        return [Dispatch(*row) for row in rows]

    async def leave(self, holder: UUID) -> int:
        rows = await self._calls.call("select treadle.release_dispatches(%b)", holder)
        return int(rows[0][0])

    async def get(self, queue_id: str) -> dict[str, Any]:
        found = await self._calls.rows(
            "select * from treadle.push_queue where id = %(id)s", {"id": _task_id(queue_id)}
        )
        if not found:
            raise _missing(queue_id)
        return found[0]

    async def summary(self) -> dict[str, Any]:
        """Return the number of waiting and dispatched prompts, and the age of the oldest."""
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
        """List the schedules that submit to the queue, with their last runs."""
        return await self._calls.rows(
            """
            select name, last_status, last_queue_id, last_at as last_run, next_at as next_run
            from treadle.schedule_status
            where queue = 'push'
            order by name
            """
        )

    async def list(self, limit: int = 1000) -> list[dict[str, Any]]:
        """List active entries: dispatched ones, then waiting ones in order; each with the depth."""
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
        hint="It may have been pruned after it ended.",
        queue_id=queue_id[:200],
    )
