"""Claims: how agents get tasks, and the validation of their output."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from treadle.db.calls import Calls
from treadle.models import Claim

# What a claim has besides its token.
_CLAIM = """
  id, queue, type, spec, attempt, max_attempts, timeout_s, priority, lease_until, created_at,
  deadline_at, title, tags, parent_id, dag_id, project_id, idempotency_key, previous, name, steps,
  problem, max_cost_usd, cost_usd, gates, models, validation, report
"""


class ClaimingCalls(Calls):
    """Claims of one agent, and of many at once."""

    async def claim_tasks(
        self,
        agent: str,
        queues: Sequence[str],
        *,
        types: Sequence[str] | None,
        limit: int,
        token: UUID,
        start: bool = False,
        idle: bool = False,
    ) -> list[Claim]:
        """Claim up to `limit` tasks; repeat with the same token when the answer was lost."""
        rows = await self._call(
            f"select {_CLAIM} from treadle.claim_tasks(%b, %b, %b, %b::integer, %b, %b, %b)",
            agent,
            list(queues),
            None if types is None else list(types),
            limit,
            start,
            token,
            idle,
        )
        return [Claim(token, *row) for row in rows]

    async def claim_each(
        self,
        limits: Mapping[str, int],
        queues: Sequence[str],
        *,
        types: Sequence[str] | None,
        start: bool = False,
    ) -> dict[str, list[Claim]]:
        """Claim up to so many tasks for each agent; those that were not asked are left out."""
        rows = await self._call(
            f"""
            select agent, claim_token, {_CLAIM}
            from treadle.claim_each(%b, %b::integer[], %b, %b, %b)
            """,
            list(limits),
            list(limits.values()),
            list(queues),
            None if types is None else list(types),
            start,
        )
        found: dict[str, list[Claim]] = {}
        for agent, token, *claim in rows:
            claims = found.setdefault(agent, [])
            if token is not None:
                claims.append(Claim(token, *claim))
        return found


class ValidationCalls(Calls):
    """Tasks whose output is being checked, and notes."""

    async def validate_tasks(self, claims: Sequence[tuple[UUID, UUID]]) -> dict[UUID, str]:
        """Say that outputs are being checked; whether each claim still holds."""
        rows = await self._call(
            "select id, verdict from treadle.validate_tasks(%b, %b)",
            [claim[0] for claim in claims],
            [claim[1] for claim in claims],
        )
        return {row[0]: row[1] for row in rows}

    async def add_note(self, task_id: UUID, token: UUID, note: str) -> None:
        await self._call("select treadle.add_note(%b, %b, %b)", task_id, token, note)
