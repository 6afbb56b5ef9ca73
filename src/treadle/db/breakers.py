"""Circuit breakers of task types; reached as `db.breakers`."""

from datetime import datetime
from typing import Any

from treadle.db.calls import Calls, Record
from treadle.errors import UnknownType


class Breakers:
    """Trip, reset and list circuit breakers."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def trip(
        self,
        type: str,
        seconds: float | None = None,
        reason: str | None = None,
        actor: str | None = None,
    ) -> datetime:
        rows = await self._calls.call(
            "select treadle.trip_breaker(%b, %b::float8, %b, %b)", type, seconds, reason, actor
        )
        probe_at: datetime = rows[0][0]
        return probe_at

    async def reset(self, type: str, actor: str | None = None) -> bool:
        rows = await self._calls.call("select treadle.reset_breaker(%b, %b)", type, actor)
        return bool(rows[0][0])

    async def page(self, *, state: str | None, after: str | None, limit: int) -> list[Record]:
        """Breakers by type."""
        return await self._calls.page(
            "breaker_status", key="type", after=after, limit=limit, where={"state = {}": state}
        )

    async def get(self, type: str) -> Record:
        found = await self._calls.rows(
            "select * from treadle.breaker_status where type = %(type)s", {"type": type}
        )
        if not found:
            raise UnknownType(f"there is no task type {type!r}", type=type)
        return found[0]

    async def list(self) -> list[dict[str, Any]]:
        return await self._calls.rows(
            "select * from treadle.breaker_status order by state = 'closed', failures desc, type"
        )
