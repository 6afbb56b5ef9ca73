"""Gates: rate limits that decide when tasks may start; reached as `db.gates`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from treadle.db.calls import Calls, RawJson, Record
from treadle.errors import UnknownGate
from treadle.json import encode


class Gates:
    """Define, close and open gates."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def define(self, key: str, settings: Mapping[str, Any], actor: str | None = None) -> bool:
        """Create or change a gate; return whether it is new."""
        document = RawJson(encode(settings, name="settings"))
        rows = await self._calls.call(
            "select treadle.define_gate(%b, %b, %b)", key, document, actor
        )
        return bool(rows[0][0])

    async def close(
        self, key: str, seconds: float, reason: str | None = None, actor: str | None = None
    ) -> datetime:
        rows = await self._calls.call(
            "select treadle.close_gate(%b, %b::float8, %b, %b)", key, seconds, reason, actor
        )
        until: datetime = rows[0][0]
        return until

    async def open(self, key: str, actor: str | None = None) -> bool:
        rows = await self._calls.call("select treadle.open_gate(%b, %b)", key, actor)
        return bool(rows[0][0])

    async def reopen(self) -> int:
        rows = await self._calls.call("select treadle.reopen_gates()")
        return int(rows[0][0])

    async def page(self, *, after: str | None, limit: int) -> list[Record]:
        """Gates by key."""
        return await self._calls.page("gate_status", key="key", after=after, limit=limit)

    async def get(self, key: str) -> Record:
        found = await self._calls.rows(
            "select * from treadle.gate_status where key = %(key)s", {"key": key}
        )
        if not found:
            raise UnknownGate(f"there is no gate {key!r}", gate=key)
        return found[0]

    async def list(self) -> list[dict[str, Any]]:
        return await self._calls.rows("select * from treadle.gate_status order by key")
