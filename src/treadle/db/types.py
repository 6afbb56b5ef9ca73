"""Task types and their settings; reached as `db.types`."""

from collections.abc import Iterable, Mapping
from typing import Any

from treadle.db.calls import Calls, RawJson
from treadle.json import encode


class Types:
    """Declare, define, pause and list task types."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def declare(self, types: Mapping[str, Any], queues: Iterable[str]) -> None:
        await self._calls.call(
            "select treadle.declare_types(%b, %b)", RawJson(encode(types)), sorted(set(queues))
        )

    async def define(
        self, name: str, settings: Mapping[str, Any], actor: str | None = None
    ) -> None:
        document = RawJson(encode(settings, name="settings"))
        await self._calls.call("select treadle.define_type(%b, %b, %b)", name, document, actor)

    async def pause(self, name: str, reason: str | None = None, actor: str | None = None) -> None:
        await self._calls.call("select treadle.pause_type(%b, %b, %b)", name, reason, actor)

    async def resume(self, name: str, actor: str | None = None) -> None:
        await self._calls.call("select treadle.resume_type(%b, %b)", name, actor)

    async def list(self) -> list[dict[str, Any]]:
        return await self._calls.rows("select * from treadle.type_status order by type")
