"""Concurrency keys; reached as `db.keys`."""

from typing import Any

from treadle.db.calls import Calls, Record
from treadle.errors import NotFound


class Keys:
    """Concurrency keys: how many tasks of one may run at once."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def set(self, key: str, limit: int, actor: str | None = None) -> None:
        await self._calls.call(
            "select treadle.set_concurrency_limit(%b, %b::integer, %b)", key, limit, actor
        )

    async def page(self, *, after: str | None, limit: int) -> list[Record]:
        """Concurrency keys by name."""
        return await self._calls.page("concurrency_status", key="key", after=after, limit=limit)

    async def get(self, key: str) -> Record:
        found = await self._calls.rows(
            "select * from treadle.concurrency_status where key = %(key)s", {"key": key}
        )
        if not found:
            raise NotFound(f"there is no concurrency key {key!r}", key=key)
        return found[0]

    async def list(self) -> list[dict[str, Any]]:
        return await self._calls.rows(
            "select * from treadle.concurrency_status order by waiting desc, held desc, key"
        )
