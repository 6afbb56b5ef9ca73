"""Gates, breakers and task types: the calls about them and their views."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from treadle.db.calls import Calls, RawJson
from treadle.json import encode


class GatingCalls(Calls):
    """Gates closed and opened, breakers tripped and reset, types paused and resumed."""

    async def define_gate(
        self, key: str, settings: Mapping[str, Any], actor: str | None = None
    ) -> None:
        document = RawJson(encode(settings, name="settings"))
        await self._call("select treadle.define_gate(%b, %b, %b)", key, document, actor)

    async def close_gate(
        self, key: str, seconds: float, reason: str | None = None, actor: str | None = None
    ) -> datetime:
        rows = await self._call(
            "select treadle.close_gate(%b, %b::float8, %b, %b)", key, seconds, reason, actor
        )
        until: datetime = rows[0][0]
        return until

    async def open_gate(self, key: str, actor: str | None = None) -> bool:
        rows = await self._call("select treadle.open_gate(%b, %b)", key, actor)
        return bool(rows[0][0])

    async def reopen_gates(self) -> int:
        rows = await self._call("select treadle.reopen_gates()")
        return int(rows[0][0])

    async def trip_breaker(
        self,
        type: str,
        seconds: float | None = None,
        reason: str | None = None,
        actor: str | None = None,
    ) -> datetime:
        rows = await self._call(
            "select treadle.trip_breaker(%b, %b::float8, %b, %b)", type, seconds, reason, actor
        )
        probe_at: datetime = rows[0][0]
        return probe_at

    async def reset_breaker(self, type: str, actor: str | None = None) -> bool:
        rows = await self._call("select treadle.reset_breaker(%b, %b)", type, actor)
        return bool(rows[0][0])

    async def define_type(
        self, name: str, settings: Mapping[str, Any], actor: str | None = None
    ) -> None:
        document = RawJson(encode(settings, name="settings"))
        await self._call("select treadle.define_type(%b, %b, %b)", name, document, actor)

    async def pause_type(
        self, name: str, reason: str | None = None, actor: str | None = None
    ) -> None:
        await self._call("select treadle.pause_type(%b, %b, %b)", name, reason, actor)

    async def resume_type(self, name: str, actor: str | None = None) -> None:
        await self._call("select treadle.resume_type(%b, %b)", name, actor)


class GatingViews(ABC):
    """What people read of them; mixed into the reader."""

    @abstractmethod
    async def rows(self, query: str, parameters: Any = None) -> list[dict[str, Any]]:
        """Run a select and return its rows by name."""

    async def gates(self) -> list[dict[str, Any]]:
        return await self.rows("select * from treadle.gate_status order by key")

    async def keys(self) -> list[dict[str, Any]]:
        return await self.rows(
            "select * from treadle.concurrency_status order by waiting desc, held desc, key"
        )

    async def breakers(self) -> list[dict[str, Any]]:
        return await self.rows(
            "select * from treadle.breaker_status order by state = 'closed', failures desc, type"
        )

    async def types(self) -> list[dict[str, Any]]:
        return await self.rows("select * from treadle.type_status order by type")
