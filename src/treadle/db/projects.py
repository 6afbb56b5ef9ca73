"""Projects with their shares, and the ranks that change as deadlines come closer."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson
from treadle.json import encode
from treadle.models import Promoted


class OrderCalls(Calls):
    """Who is next, and whose turn it is."""

    async def rerank_tasks(self, limit: int, skip: Iterable[UUID]) -> list[Promoted]:
        rows = await self._call(
            "select id, problem from treadle.rerank_tasks(%b::integer, %b::uuid[])",
            limit,
            list(skip),
        )
        return [Promoted(*row) for row in rows]

    async def define_project(self, name: str, settings: Mapping[str, Any]) -> UUID:
        rows = await self._call(
            "select treadle.define_project(%b, %b)", name, RawJson(encode(settings))
        )
        made: UUID = rows[0][0]
        return made
