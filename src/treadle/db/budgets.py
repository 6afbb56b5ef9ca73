"""Budgets, and the amounts that running tasks reserve and spend; reached as `db.budgets`."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import sql

from treadle.db.calls import Calls, RawJson, Record
from treadle.errors import UnknownBudget
from treadle.json import encode
from treadle.models import BudgetReview, SpendState

KINDS = ("day", "agent", "model", "type", "project")


class Budgets:
    """Set budgets, and record what tasks reserve and spend."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def record(
        self, task_id: UUID, token: UUID, calls: Sequence[Mapping[str, Any]]
    ) -> SpendState:
        """Record calls, each id once; the verdict says whether the task may continue."""
        rows = await self._calls.call(
            """
            select cost_usd, max_cost_usd, left_usd, verdict, reason
            from treadle.record_spend(%b, %b, %b)
            """,
            task_id,
            token,
            RawJson(encode(calls, name="calls")),
        )
        return SpendState(*rows[0])

    async def reserve(
        self, task_id: UUID, token: UUID, usd: Decimal, *, ask: bool = True
    ) -> SpendState:
        """Reserve an amount; if it is not left and `ask` is true, open a wait for a decision."""
        rows = await self._calls.call(
            """
            select cost_usd, max_cost_usd, left_usd, verdict, reason, wait_id
            from treadle.reserve_spend(%b, %b, %b, %b)
            """,
            task_id,
            token,
            usd,
            ask,
        )
        return SpendState(*rows[0])

    async def set(
        self,
        scope: str,
        key: str | None,
        limit_usd: Decimal,
        *,
        period: str | None = None,
        on_exhausted: str | None = None,
        actor: str | None = None,
    ) -> int:
        rows = await self._calls.call(
            "select treadle.set_budget(%b, %b, %b, %b, %b, %b)",
            scope,
            key,
            limit_usd,
            period,
            on_exhausted,
            actor,
        )
        return int(rows[0][0])

    async def remove(
        self, scope: str, key: str | None, *, period: str | None = None, actor: str | None = None
    ) -> None:
        await self._calls.call(
            "select treadle.remove_budget(%b, %b, %b, %b)", scope, key, period, actor
        )

    async def review(self, limit: int, skip: Iterable[UUID]) -> list[BudgetReview]:
        """Admit tasks that budgets allow; ask or dead-letter where a budget is exhausted."""
        rows = await self._calls.call(
            "select id, verdict, problem from treadle.review_budgets(%b::integer, %b::uuid[])",
            limit,
            list(skip),
        )
        return [BudgetReview(*row) for row in rows]

    async def spending(self, by: str, days: int) -> list[Record]:
        """Sum the costs of the last days, including today, by one of KINDS; largest first."""
        query = sql.SQL(
            """
            select
              {by}::text as {by}, sum(calls)::bigint as calls,
              sum(input_tokens)::bigint as input_tokens,
              sum(output_tokens)::bigint as output_tokens, sum(usd) as usd
            from treadle.daily_spend
            where day > (clock_timestamp() at time zone 'UTC')::date - {days}
            group by 1
            order by {order}, 1
            """
        ).format(
            by=sql.Identifier(by),
            days=sql.Literal(days),
            order=sql.SQL("1 desc" if by == "day" else "usd desc"),
        )
        return await self._calls.rows(query)

    async def page(self, *, scope: str | None, after: int | None, limit: int) -> list[Record]:
        """Budgets by id."""
        return await self._calls.page(
            "budget_status", key="id", after=after, limit=limit, where={"scope = {}": scope}
        )

    async def get(self, budget_id: int) -> Record:
        found = await self._calls.rows(
            "select * from treadle.budget_status where id = %(id)s", {"id": budget_id}
        )
        if not found:
            raise UnknownBudget(f"there is no budget {budget_id}", budget_id=budget_id)
        return found[0]

    async def list(self) -> list[Record]:
        """List all budgets with the amounts spent, reserved and left; the most used first."""
        return await self._calls.rows(
            """
            select
              id, scope, key, name, period, limit_usd, spent_usd, reserved_usd, left_usd,
              overrun_usd, on_exhausted, parked_tasks, open_wait, period_end, set_by, created_at
            from treadle.budget_status
            order by (spent_usd + reserved_usd) / nullif(limit_usd, 0) desc nulls first, id
            """
        )
