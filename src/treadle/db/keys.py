"""Concurrency keys, and the calls that change many tasks at once."""

from collections.abc import Mapping
from typing import Any

from treadle.db.calls import Calls, RawJson
from treadle.json import encode
from treadle.models import BulkCount


class LimitCalls(Calls):
    """Slots of concurrency keys; cancelling and retrying what a filter finds."""

    async def admit_tasks(self, limit: int) -> int:
        """Let tasks go on for which a key or a budget has room; returns how many."""
        rows = await self._call("select treadle.admit_tasks(%b::integer)", limit)
        return int(rows[0][0])

    async def set_concurrency(self, key: str, limit: int, actor: str | None = None) -> None:
        await self._call("select treadle.set_concurrency(%b, %b::integer, %b)", key, limit, actor)

    async def cancel_where(
        self,
        filters: Mapping[str, Any],
        reason: str | None,
        actor: str | None = None,
        *,
        dry_run: bool,
        limit: int,
    ) -> list[BulkCount]:
        """Cancel what a filter finds, or only count it."""
        rows = await self._call(
            """
            select queue, type, status, verdict, why, tasks
            from treadle.cancel_where(%b, %b, %b, %b, %b::integer)
            """,
            RawJson(encode(filters, name="filter")),
            reason,
            actor,
            dry_run,
            limit,
        )
        return [BulkCount(*row) for row in rows]

    async def retry_where(
        self,
        filters: Mapping[str, Any],
        note: str | None,
        actor: str | None = None,
        *,
        dry_run: bool,
        limit: int,
    ) -> list[BulkCount]:
        """Give what a filter finds another round, or only count it."""
        rows = await self._call(
            """
            select queue, type, status, verdict, why, tasks
            from treadle.retry_where(%b, %b, %b, %b, %b::integer)
            """,
            RawJson(encode(filters, name="filter")),
            note,
            actor,
            dry_run,
            limit,
        )
        return [BulkCount(*row) for row in rows]
