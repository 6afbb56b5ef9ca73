"""Concurrency keys; reached as `db.keys`."""

from typing import Any

from treadle.db.calls import Calls


class Keys:
    """Concurrency keys: how many tasks of one may run at once."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def set(self, key: str, limit: int, actor: str | None = None) -> None:
        await self._calls.call(
            "select treadle.set_concurrency(%b, %b::integer, %b)", key, limit, actor
        )

    async def list(self) -> list[dict[str, Any]]:
        return await self._calls.rows(
            "select * from treadle.concurrency_status order by waiting desc, held desc, key"
        )
