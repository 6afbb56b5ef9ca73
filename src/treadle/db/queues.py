"""Queues, their settings and the order of their tasks; reached as `db.queues`."""

from collections.abc import Mapping
from typing import Any

from treadle.db.calls import Calls, RawJson, Record
from treadle.db.reach import Reach
from treadle.json import encode


class Queues:
    """Define, remove, pause, resume and read queues."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def define(
        self, name: str, settings: Mapping[str, Any], actor: str | None = None
    ) -> bool:
        """Create or change a queue; return whether it is new."""
        document = RawJson(encode(settings, name="settings"))
        rows = await self._calls.call(
            "select treadle.define_queue(%b, %b, %b)", name, document, actor
        )
        return bool(rows[0][0])

    async def remove(self, name: str, actor: str | None = None) -> None:
        await self._calls.call("select treadle.remove_queue(%b, %b)", name, actor)

    async def pause(self, name: str, reason: str | None, actor: str | None = None) -> None:
        await self._calls.call("select treadle.pause_queue(%b, %b, %b)", name, reason, actor)

    async def resume(self, name: str, actor: str | None = None) -> None:
        await self._calls.call("select treadle.resume_queue(%b, %b)", name, actor)

    async def get(self, name: str) -> Record:
        """Get a queue with its settings."""
        found = await self._calls.rows("select * from treadle.read_queue(%(name)s)", {"name": name})
        return found[0]

    async def claim_order(self, queue: str, limit: int) -> list[Record]:
        """List the ready tasks of a queue in the order in which they would be claimed."""
        return await self._calls.rows(
            "select * from treadle.claim_order(%(queue)s, %(limit)s)",
            {"queue": queue, "limit": limit},
        )

    async def stuck(self) -> list[Record]:
        return await self._calls.rows("select * from treadle.stuck order by since")

    async def page(self, reach: Reach, *, after: str | None, limit: int) -> list[Record]:
        """List queues by name with their depth and throughput, within those the caller may see."""
        return await self._calls.page(
            "queue_health",
            key="queue",
            after=after,
            limit=limit,
            where={"queue = any({})": None if reach.queues is None else [*reach.queues]},
        )

    async def health(self, name: str) -> Record:
        """Return the depth and the throughput of a queue."""
        found = await self._calls.rows(
            "select * from treadle.queue_health where queue = %(name)s", {"name": name}
        )
        return found[0]

    async def list(self) -> list[Record]:
        return await self._calls.rows("select * from treadle.queue_health order by queue")
