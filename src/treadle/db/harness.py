"""The harness: tasks for agents, their decisions and actions; reached as `db.harness`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson, Record
from treadle.db.errors import claim_lost
from treadle.errors import NotFound, TaskNotFound
from treadle.json import encode

_ACTION = "id, agent_url, payload, decision, tries, retry_count, created_at, completed_at"


@dataclass(frozen=True)
class HarnessClaim:
    """A task that an agent has claimed."""

    task_id: UUID
    agent_url: str
    payload: dict[str, Any]
    retry_count: int
    max_retries: int
    created_at: datetime
    claim_until: datetime
    # Whether an earlier call with the same token claimed it.
    already: bool


@dataclass(frozen=True)
class HarnessTask:
    """A task with a decision, as the callback gets it."""

    task_id: str
    agent_url: str
    payload: dict[str, Any]
    # The number of this try; above 1, an earlier one failed or an operator repeated the action.
    tries: int
    retry_count: int
    created_at: datetime
    completed_at: datetime


@dataclass(frozen=True)
class Action:
    """A decision to call the callback with."""

    task_id: UUID
    task: HarnessTask
    # Not an object if the task was completed outside the harness protocol.
    decision: Any
    token: UUID = field(repr=False)


@dataclass(frozen=True)
class Requeued:
    """A task whose claim expired: pending again, or failed."""

    task_id: UUID
    agent_url: str
    reason: str
    status: str | None
    problem: str | None


@dataclass(frozen=True)
class Nudge:
    """A nudge to send: an agent and a task that waits for it."""

    agent_url: str
    task_id: UUID
    allow_private: bool


class Harness:
    """Tasks for agents, their decisions and the actions that follow."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def enqueue(
        self,
        agent_url: str,
        payload: Mapping[str, Any],
        *,
        task_id: UUID | None = None,
        secrets: bool = False,
    ) -> tuple[UUID, bool]:
        """Store a task; return its id and whether it is new."""
        rows = await self._calls.call_once(
            "select id, created from treadle.enqueue_harness_task(%b, %b, %b, %b)",
            agent_url,
            RawJson(encode(dict(payload), name="payload")),
            task_id,
            secrets,
        )
        return rows[0][0], rows[0][1]

    async def claim(self, agent_url: str, token: UUID, timeout_s: float) -> HarnessClaim | None:
        """Claim the oldest task of an agent; if the response is lost, repeat with the token."""
        rows = await self._calls.call(
            """
            select
              id, agent_url, payload, retry_count, max_retries, created_at, claim_until, already
            from treadle.claim_harness_task(%b, %b, %b::float8)
            """,
            agent_url,
            token,
            timeout_s,
        )
        return HarnessClaim(*rows[0]) if rows else None

    async def heartbeat(self, task_id: UUID, token: UUID) -> datetime:
        rows = await self._calls.call(
            "select treadle.heartbeat_harness_task(%b, %b)", task_id, token
        )
        until: datetime | None = rows[0][0]
        if until is None:
            raise claim_lost(task_id)
        return until

    async def complete(
        self, task_id: UUID, token: UUID, decision: Mapping[str, Any], *, secrets: bool = False
    ) -> str:
        """Store a decision; return `completed`, or `already` if it was stored before."""
        rows = await self._calls.call(
            "select treadle.complete_harness_task(%b, %b, %b, %b)",
            task_id,
            token,
            RawJson(encode(dict(decision), name="decision")),
            secrets,
        )
        return _kept(task_id, rows[0][0])

    async def fail(self, task_id: UUID, token: UUID, error: str, *, retry: bool = True) -> str:
        """Fail an attempt; return the new state of the task, or `already`.

        The class is always `error`: a rate limit found in the text would stop other agents.
        """
        rows = await self._calls.call(
            "select verdict from treadle.fail_tasks(%b, %b, '{error}', %b, %b)",
            [task_id],
            [token],
            [error],
            ["retry" if retry else "fail"],
        )
        return _kept(task_id, rows[0][0])

    async def wake(self) -> None:
        await self._calls.call("select treadle.notify_harness()")

    async def requeue(self, limit: int, skip: Sequence[UUID]) -> list[Requeued]:
        rows = await self._calls.call(
            """
            select id, agent_url, reason, status, problem
            from treadle.requeue_harness_tasks(%b::integer, %b::uuid[])
            """,
            limit,
            list(skip),
        )
        return [Requeued(*row) for row in rows]

    async def take_actions(
        self, token: UUID, limit: int, lease_s: float, *, redeliver: bool = False
    ) -> list[Action]:
        """Take decisions to act on and log them; if the call fails, repeat it with the token."""
        rows = await self._calls.call(
            f"select {_ACTION} from treadle.take_actions(%b, %b::integer, %b::float8, %b)",
            token,
            limit,
            lease_s,
            redeliver,
        )
        return [
            Action(
                row[0],
                HarnessTask(str(row[0]), *row[1:3], *row[4:]),
                decision=row[3],
                token=token,
            )
            for row in rows
        ]

    async def renew_actions(self, held: Sequence[tuple[UUID, UUID]], lease_s: float) -> set[UUID]:
        """Renew leases; return the tasks whose actions are still held."""
        rows = await self._calls.call(
            "select renewed.id from treadle.renew_actions(%b, %b, %b::float8) as renewed (id)",
            [task_id for task_id, _ in held],
            [token for _, token in held],
            lease_s,
        )
        return {row[0] for row in rows}

    async def finish_action(
        self, action: Action, outcome: str, *, error: str | None = None, tries: int = 3
    ) -> str:
        """Record the outcome of an action; return its new status, or `lost`."""
        rows = await self._calls.call(
            "select treadle.finish_action(%b, %b, %b, %b, %b::integer)",
            action.task_id,
            action.token,
            outcome,
            error,
            tries,
        )
        return str(rows[0][0])

    async def interrupt_actions(self, tries: int) -> dict[UUID, str]:
        """End the runs of harnesses that stopped; return the new status of each action."""
        rows = await self._calls.call(
            "select id, status from treadle.interrupt_actions(p_max_tries => %b::integer)", tries
        )
        return dict(rows)

    async def next_action_in(self) -> float | None:
        return await self._calls.seconds_until("treadle.next_action_at()")

    async def rerun_action(
        self, task_id: UUID, actor: str | None = None, note: str | None = None
    ) -> str:
        rows = await self._calls.call(
            "select treadle.rerun_action(%b, %b, %b)", task_id, actor, note
        )
        return str(rows[0][0])

    async def skip_action(
        self, task_id: UUID, actor: str | None = None, note: str | None = None
    ) -> str:
        rows = await self._calls.call(
            "select treadle.skip_action(%b, %b, %b)", task_id, actor, note
        )
        return str(rows[0][0])

    async def take_nudges(self, limit: int, skip: Sequence[str]) -> list[Nudge]:
        rows = await self._calls.call(
            """
            select agent_url, task_id, allow_private
            from treadle.take_nudges(%b::integer, %b::text[])
            """,
            limit,
            list(skip),
        )
        return [Nudge(*row) for row in rows]

    async def note_nudge(self, agent_url: str, error: str | None) -> None:
        await self._calls.call("select treadle.record_nudge(%b, %b)", agent_url, error)

    async def allow_nudges(
        self,
        agent_url: str,
        *,
        allow: bool = True,
        private: bool = False,
        actor: str | None = None,
        only_new: bool = False,
    ) -> str:
        """Allow or forbid nudges; return the address of the agent as it is stored.

        With `only_new`, an earlier decision about this agent stays as it is.
        """
        rows = await self._calls.call(
            "select treadle.allow_nudges(%b, %b, %b, %b, %b)",
            agent_url,
            allow,
            private,
            actor,
            only_new,
        )
        return str(rows[0][0])

    async def get(self, task_id: UUID, columns: str = "*") -> dict[str, Any]:
        found = await self._calls.rows(
            f"select {columns} from treadle.harness_tasks where task_id = %(id)s", {"id": task_id}
        )
        if not found:
            raise TaskNotFound(
                f"the harness has no task {task_id}",
                hint="It may have been pruned after it ended.",
                task_id=str(task_id),
            )
        return found[0]

    async def agent(self, task_id: UUID) -> str:
        """Return the address of the agent of a task."""
        return str((await self.get(task_id, "agent_url"))["agent_url"])

    async def actions(
        self, status: str | None = None, limit: int = 50, *, after: UUID | None = None
    ) -> list[dict[str, Any]]:
        """List tasks with an action, newest first."""
        return await self._calls.rows(
            """
            select
              task_id, agent_url, status, action, action_tries, action_started_at,
              action_ended_at, action_next_try_at, action_error
            from treadle.harness_tasks
            where
              action_started_at is not null
              and (%(status)s::text is null or action = %(status)s)
              and (%(after)s::uuid is null or task_id < %(after)s)
            order by task_id desc
            limit %(limit)s
            """,
            {"status": status, "limit": limit, "after": after},
        )

    async def nudging(self) -> list[dict[str, Any]]:
        return await self._calls.rows(
            "select * from treadle.harness_agent_status order by agent_url"
        )

    async def nudging_page(self, *, after: str | None, limit: int) -> list[Record]:
        """Agents that are nudged, by address."""
        return await self._calls.page(
            "harness_agent_status", key="agent_url", after=after, limit=limit
        )

    async def nudged(self, agent_url: str) -> Record:
        found = await self._calls.rows(
            "select * from treadle.harness_agent_status where agent_url = %(url)s",
            {"url": agent_url},
        )
        if not found:
            raise NotFound(f"agent {agent_url} is not nudged", agent_url=agent_url)
        return found[0]


def _kept(task_id: UUID, verdict: str) -> str:
    """Return the verdict of a call that ends a claim; raise ClaimLost if it was superseded."""
    if verdict in ("stale", "cancelled"):
        raise claim_lost(task_id)
    return verdict
