"""Triggers: events that enqueue tasks and DAGs; reached as `db.triggers`."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson, Record
from treadle.errors import UnknownTrigger
from treadle.json import encode
from treadle.models import TriggerRun


class Triggers:
    """Define, fire and read triggers."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def define(
        self, name: str, settings: Mapping[str, Any], actor: str | None = None
    ) -> tuple[UUID, bool]:
        """Create or change a trigger; return its id and whether it is new."""
        rows = await self._calls.call(
            "select id, created from treadle.define_trigger(%b, %b, %b)",
            name,
            RawJson(encode(settings, name="settings")),
            actor,
        )
        made, created = rows[0]
        return made, created

    async def pause(self, name: str, reason: str | None = None, actor: str | None = None) -> None:
        await self._calls.call("select treadle.pause_trigger(%b, %b, %b)", name, reason, actor)

    async def resume(self, name: str, actor: str | None = None) -> None:
        await self._calls.call("select treadle.resume_trigger(%b, %b)", name, actor)

    async def remove(self, name: str, actor: str | None = None) -> None:
        await self._calls.call("select treadle.remove_trigger(%b, %b)", name, actor)

    async def fire_all(self, limit: int) -> list[TriggerRun]:
        """Fire triggers for new events; a trigger that cannot fire has a problem in the result."""
        rows = await self._calls.call(
            "select id, event_id, task_id, dag_id, problem from treadle.fire_triggers(%b::integer)",
            limit,
        )
        return [TriggerRun(*row) for row in rows]

    async def check_failure_rates(self) -> list[str]:
        """Emit events for types that fail too often; return the triggers that will fire."""
        rows = await self._calls.call("select name from treadle.check_failure_rates()")
        return [row[0] for row in rows]

    async def fire(self, name: str, event_id: int, actor: str | None = None) -> TriggerRun:
        rows = await self._calls.call_once(
            "select id, event_id, task_id, dag_id, problem"
            " from treadle.fire_trigger(%b, %b::bigint, %b)",
            name,
            event_id,
            actor,
        )
        return TriggerRun(*rows[0])

    async def test(
        self, name: str, event_id: int | None = None, sample: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        rows = await self._calls.call_once(
            "select treadle.test_trigger(%b, %b::bigint, %b)",
            name,
            event_id,
            None if sample is None else RawJson(encode(sample, name="sample")),
        )
        verdict: dict[str, Any] = rows[0][0]
        return verdict

    async def get(self, name: str) -> dict[str, Any]:
        """Get one trigger with its template."""
        found = await self._calls.rows(
            "select * from treadle.trigger_status where name = %(name)s", {"name": name}
        )
        if not found:
            raise UnknownTrigger(
                f"there is no trigger {name}", hint="List them: treadle triggers", name=name
            )
        return found[0]

    async def log(self, name: str, limit: int = 20) -> list[dict[str, Any]]:
        """List the latest runs of a trigger, newest first."""
        return await self._calls.rows(
            """
            select * from treadle.trigger_log where trigger = %(name)s
            order by fired_at desc, event_id desc limit %(limit)s
            """,
            {"name": name, "limit": limit},
        )

    async def page(self, *, after: str | None, limit: int) -> list[Record]:
        """Triggers by name."""
        return await self._calls.page("trigger_status", key="name", after=after, limit=limit)

    async def log_page(self, name: str, *, after: int | None, limit: int) -> list[Record]:
        """List the runs of a trigger, newest event first."""
        return await self._calls.page(
            "trigger_log",
            key="event_id",
            after=after,
            limit=limit,
            newest=True,
            where={"trigger = {}": name},
        )

    async def list(self) -> list[dict[str, Any]]:
        return await self._calls.rows("select * from treadle.trigger_status order by name")
