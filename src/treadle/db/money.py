"""The calls about money: budgets, what running tasks spend and reserve, and what ran out."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from treadle.db.calls import Caller, RawJson
from treadle.jsontext import encode
from treadle.models import Money, Reviewed


class MoneyCalls(Caller):
    """Budgets and what is spent of them."""

    async def record_spend(
        self, task_id: UUID, token: UUID, calls: Sequence[Mapping[str, Any]]
    ) -> Money:
        """Count paid calls, each once by its id; says whether the task may go on."""
        rows = await self._call(
            """
            select cost_usd, max_cost_usd, left_usd, verdict, reason
            from treadle.record_spend(%b, %b, %b)
            """,
            task_id,
            token,
            RawJson(encode(calls, name="calls")),
        )
        return Money(*rows[0])

    async def reserve_spend(
        self, task_id: UUID, token: UUID, usd: Decimal, *, ask: bool = True
    ) -> Money:
        """Reserve for a running task; where there is not so much, open the wait that asks."""
        rows = await self._call(
            """
            select cost_usd, max_cost_usd, left_usd, verdict, reason, wait_id
            from treadle.reserve_spend(%b, %b, %b, %b)
            """,
            task_id,
            token,
            usd,
            ask,
        )
        return Money(*rows[0])

    async def set_budget(
        self,
        scope: str,
        key: str | None,
        limit_usd: Decimal,
        *,
        period: str | None = None,
        on_exhausted: str | None = None,
        actor: str | None = None,
    ) -> int:
        rows = await self._call(
            "select treadle.set_budget(%b, %b, %b, %b, %b, %b)",
            scope,
            key,
            limit_usd,
            period,
            on_exhausted,
            actor,
        )
        return int(rows[0][0])

    async def remove_budget(
        self, scope: str, key: str | None, *, period: str | None = None, actor: str | None = None
    ) -> None:
        await self._call("select treadle.remove_budget(%b, %b, %b, %b)", scope, key, period, actor)

    async def review_budgets(self, limit: int, skip: Iterable[UUID]) -> list[Reviewed]:
        """Let tasks go on that budgets have room for; ask or give up where one ran out."""
        rows = await self._call(
            "select id, verdict, problem from treadle.review_budgets(%b::integer, %b::uuid[])",
            limit,
            list(skip),
        )
        return [Reviewed(*row) for row in rows]
