"""The calls by which agents get tasks."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from treadle.db.calls import Caller
from treadle.models import Claim

# What a claim has besides its token.
_CLAIM = """
  id, queue, type, spec, attempt, max_attempts, timeout_s, priority, lease_until, created_at,
  deadline_at, title, tags, parent_id, dag_id, project_id, idempotency_key, previous, name, steps,
  problem, max_cost_usd, cost_usd, gates, models, validation, report
"""


class ClaimingCalls(Caller):
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
        rows = await self._claim_call(
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
        rows = await self._claim_call(
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
