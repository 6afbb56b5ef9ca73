"""Events: emit, read in order, and list; reached as `db.events`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson, Record
from treadle.db.reach import Reach
from treadle.json import encode
from treadle.models import Event


class Events:
    """Emit, read and list events."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def emit(
        self,
        event: str,
        payload: bytes,
        *,
        key: str,
        dedup_key: str | None,
        actor: str | None,
        task_id: UUID | None = None,
    ) -> int:
        rows = await self._calls.call_once(
            "select treadle.emit_event(%b, %b, %b, %b, %b, %b)",
            event,
            RawJson(payload),
            key,
            dedup_key,
            actor,
            task_id,
        )
        return int(rows[0][0])

    async def receive_webhook(
        self,
        name: str,
        payload: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        dedup_key: str | None = None,
        actor: str | None = None,
    ) -> int:
        rows = await self._calls.call(
            "select treadle.receive_webhook(%b, %b, %b, %b, %b)",
            name,
            RawJson(payload),
            RawJson(encode(dict(headers or {}), name="headers")),
            dedup_key,
            actor,
        )
        return int(rows[0][0])

    async def read(
        self, after: str | None, kinds: Sequence[str] | None, limit: int
    ) -> tuple[list[Event], str]:
        """Read events after a place, and the place of the last; `after=None` starts at the end."""
        rows = await self._calls.call(
            """
            select wanted, place, id, at, kind, task_id, dag_id, queue, actor, key, data
            from treadle.read_events(%b, %b::text[], %b::integer)
            """,
            after,
            None if kinds is None else list(kinds),
            limit,
        )
        return [Event(*row[1:]) for row in rows if row[0]], rows[-1][1]

    async def place(self, after: str) -> str:
        """Return the place of an event id; a place is returned unchanged, 0 is the beginning."""
        rows = await self._calls.call("select treadle.event_cursor(%b)", after)
        return str(rows[0][0])

    async def listen(self, name: str, seconds: float, kinds: Sequence[str] | None = None) -> None:
        """Request NOTIFY treadle_events for a number of seconds; 0 ends the request."""
        await self._calls.call(
            "select treadle.listen_events(%b, %b::float8, %b::text[])",
            name,
            seconds,
            None if kinds is None else list(kinds),
        )

    async def rebase(self) -> int:
        rows = await self._calls.call("select treadle.rebase_events()")
        return int(rows[0][0])

    async def completions(self, since: datetime, limit: int) -> list[Record]:
        """Read the newest tasks that were completed since a time, oldest first.

        Most queues do not record completions as events.
        """
        return await self._calls.rows(
            """
            select * from (
              select
                completed_at as at, id as task_id,
                jsonb_build_object('type', type, 'attempt', attempt, 'agent', completed_by) as data
              from treadle.task_details
              where
                status = 'completed' and completed_at > %(since)s
              order by completed_at desc
              limit %(limit)s
            ) as newest
            order by at, task_id
            """,
            {"since": since, "limit": limit},
        )

    async def page(
        self,
        reach: Reach,
        *,
        kinds: Sequence[str] | None = None,
        task_id: UUID | None = None,
        dag_id: UUID | None = None,
        key: str | None = None,
        after: int | None,
        limit: int,
    ) -> list[Record]:
        """Visible events that match, the newest first."""
        return await self._calls.page(
            "event_log",
            key="id",
            after=after,
            limit=limit,
            newest=True,
            where={
                "kind = any({})": list(kinds) if kinds else None,
                "task_id = {}": task_id,
                "dag_id = {}": dag_id,
                "key = {}": key,
            },
            reach=reach,
            visible=Reach.of_event,
        )

    async def list(
        self,
        *,
        kinds: Sequence[str] = (),
        task_id: UUID | None = None,
        dag_id: UUID | None = None,
        limit: int = 50,
    ) -> list[dict[str, Any]]:
        """List the newest events that match."""
        return await self._calls.rows(
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
