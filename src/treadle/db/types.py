"""Task types and their settings; reached as `db.types`."""

from collections.abc import Iterable, Mapping
from typing import Any

from treadle.db.calls import Calls, RawJson, Record
from treadle.errors import UnknownType
from treadle.json import encode


class Types:
    """Declare, define, pause and list task types."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def declare(
        self, types: Mapping[str, Any], queues: Iterable[str], *, uses: Iterable[str] = ()
    ) -> None:
        """Store types and create missing queues; the queues that are used must exist."""
        await self._calls.call(
            "select treadle.declare_types(%b, %b, %b)",
            RawJson(encode(types)),
            sorted(set(queues)),
            sorted(set(uses)),
        )

    async def define(
        self, name: str, settings: Mapping[str, Any], actor: str | None = None
    ) -> bool:
        """Create or change a task type; return whether it is new."""
        document = RawJson(encode(settings, name="settings"))
        rows = await self._calls.call(
            "select treadle.define_type(%b, %b, %b)", name, document, actor
        )
        return bool(rows[0][0])

    async def pause(self, name: str, reason: str | None = None, actor: str | None = None) -> None:
        await self._calls.call("select treadle.pause_type(%b, %b, %b)", name, reason, actor)

    async def resume(self, name: str, actor: str | None = None) -> None:
        await self._calls.call("select treadle.resume_type(%b, %b)", name, actor)

    async def page(self, *, after: str | None, limit: int) -> list[Record]:
        """Task types by name, with their settings."""
        return await self._calls.page("type_status", key="type", after=after, limit=limit)

    async def get(self, name: str) -> Record:
        found = await self._calls.rows(
            "select * from treadle.type_status where type = %(name)s", {"name": name}
        )
        if not found:
            raise UnknownType(f"there is no task type {name!r}", type=name)
        return found[0]

    async def list(self) -> list[dict[str, Any]]:
        return await self._calls.rows("select * from treadle.type_status order by type")
