"""What people read about money: budgets, and what was spent."""

from abc import ABC, abstractmethod
from typing import Any

from psycopg import sql

Record = dict[str, Any]
KINDS = ("day", "agent", "model", "type", "project")


class Ledger(ABC):
    """Reads budgets and the ledger; mixed into the reader."""

    @abstractmethod
    async def rows(self, query: Any, parameters: Any = None) -> list[Record]:
        """Run a select and return its rows by name."""

    async def budgets(self) -> list[Record]:
        """Every budget with what is spent, reserved and left; those nearest their end first."""
        return await self.rows(
            """
            select
              id, scope, key, name, period, limit_usd, spent_usd, reserved_usd, left_usd,
              overrun_usd, on_exhausted, parked_tasks, open_wait, period_end, set_by, created_at
            from treadle.budget_status
            order by (spent_usd + reserved_usd) / nullif(limit_usd, 0) desc nulls first, id
            """
        )

    async def spending(self, by: str, days: int) -> list[Record]:
        """What the last days have cost, today included, by one of KINDS; the most first."""
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
        return await self.rows(query)
