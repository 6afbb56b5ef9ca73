"""The calls about events and triggers, and the views of them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson
from treadle.errors import UnknownTrigger
from treadle.json import encode
from treadle.models import Event, TriggerRun


class TriggerCalls(Calls):
    """Triggers defined and fired, events read in their order."""

    async def define_trigger(
        self, name: str, settings: Mapping[str, Any], actor: str | None = None
    ) -> UUID:
        rows = await self._call(
            "select treadle.define_trigger(%b, %b, %b)",
            name,
            RawJson(encode(settings, name="settings")),
            actor,
        )
        made: UUID = rows[0][0]
        return made

    async def pause_trigger(
        self, name: str, reason: str | None = None, actor: str | None = None
    ) -> None:
        await self._call("select treadle.pause_trigger(%b, %b, %b)", name, reason, actor)

    async def resume_trigger(self, name: str, actor: str | None = None) -> None:
        await self._call("select treadle.resume_trigger(%b, %b)", name, actor)

    async def remove_trigger(self, name: str, actor: str | None = None) -> None:
        await self._call("select treadle.remove_trigger(%b, %b)", name, actor)

    async def fire_triggers(self, limit: int) -> list[TriggerRun]:
        """Do what follows from new events; a trigger that cannot fire is among the answers."""
        rows = await self._call(
            "select id, event_id, task_id, dag_id, problem from treadle.fire_triggers(%b::integer)",
            limit,
        )
        return [TriggerRun(*row) for row in rows]

    async def check_failure_rates(self) -> list[str]:
        """Say of types whose failures pass a limit; the names of the triggers that will fire."""
        rows = await self._call("select name from treadle.check_failure_rates()")
        return [row[0] for row in rows]

    async def fire_trigger(self, name: str, event_id: int, actor: str | None = None) -> TriggerRun:
        rows = await self._call_once(
            "select id, event_id, task_id, dag_id, problem"
            " from treadle.fire_trigger(%b, %b::bigint, %b)",
            name,
            event_id,
            actor,
        )
        return TriggerRun(*rows[0])

    async def test_trigger(
        self, name: str, event_id: int | None = None, sample: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        rows = await self._call_once(
            "select treadle.test_trigger(%b, %b::bigint, %b)",
            name,
            event_id,
            None if sample is None else RawJson(encode(sample, name="sample")),
        )
        verdict: dict[str, Any] = rows[0][0]
        return verdict

    async def receive_webhook(
        self,
        name: str,
        payload: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        dedup_key: str | None = None,
        actor: str | None = None,
    ) -> int:
        rows = await self._call(
            "select treadle.receive_webhook(%b, %b, %b, %b, %b)",
            name,
            RawJson(payload),
            RawJson(encode(dict(headers or {}), name="headers")),
            dedup_key,
            actor,
        )
        return int(rows[0][0])

    async def read_events(
        self, after: str | None, kinds: Sequence[str] | None, limit: int
    ) -> tuple[list[Event], str]:
        """Events after a place, and the place that is reached with them; None is the end."""
        rows = await self._call(
            """
            select wanted, place, id, at, kind, task_id, dag_id, queue, actor, key, data
            from treadle.read_events(%b, %b::text[], %b::integer)
            """,
            after,
            None if kinds is None else list(kinds),
            limit,
        )
        return [Event(*row[1:]) for row in rows if row[0]], rows[-1][1]

    async def event_place(self, after: str) -> str:
        """The place of an event by its id; a place is one already, and 0 the beginning."""
        rows = await self._call("select treadle.event_place(%b)", after)
        return str(rows[0][0])

    async def listen_events(
        self, name: str, seconds: float, kinds: Sequence[str] | None = None
    ) -> None:
        """Ask for NOTIFY treadle_events for so many seconds; none gives it up."""
        await self._call(
            "select treadle.listen_events(%b, %b::float8, %b::text[])",
            name,
            seconds,
            None if kinds is None else list(kinds),
        )

    async def rebase_events(self) -> int:
        rows = await self._call("select treadle.rebase_events()")
        return int(rows[0][0])


class TriggerViews(ABC):
    """What people read of them; mixed into the reader."""

    @abstractmethod
    async def rows(self, query: str, parameters: Any = None) -> list[dict[str, Any]]:
        """Run a select and return its rows by name."""

    async def triggers(self) -> list[dict[str, Any]]:
        return await self.rows("select * from treadle.trigger_status order by name")

    async def trigger(self, name: str) -> dict[str, Any]:
        """One trigger with its template."""
        found = await self.rows(
            "select * from treadle.trigger_status where name = %(name)s", {"name": name}
        )
        if not found:
            raise UnknownTrigger(
                f"there is no trigger {name}", hint="List them: treadle triggers", name=name
            )
        return found[0]

    async def trigger_log(self, name: str, limit: int = 20) -> list[dict[str, Any]]:
        """What a trigger made lately, the newest first."""
        return await self.rows(
            """
            select * from treadle.trigger_log where trigger = %(name)s
            order by fired_at desc, event_id desc limit %(limit)s
            """,
            {"name": name, "limit": limit},
        )

    async def events(
        self,
        *,
        kinds: Sequence[str] = (),
        task_id: UUID | None = None,
        dag_id: UUID | None = None,
        limit: int = 50,
    ) -> list[dict[str, Any]]:
        """The newest events that match."""
        return await self.rows(
            """
            select * from treadle.event_log
            where
              (%(kinds)s::text[] = '{}' or kind = any (%(kinds)s::text[]))
              and (%(task_id)s::uuid is null or task_id = %(task_id)s)
              and (%(dag_id)s::uuid is null or dag_id = %(dag_id)s)
            order by id desc
            limit %(limit)s
            """,
            {"kinds": list(kinds), "task_id": task_id, "dag_id": dag_id, "limit": limit},
        )
