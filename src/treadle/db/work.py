"""Work items of the work API; reached as `db.work`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson, Record
from treadle.db.errors import refusal
from treadle.errors import WorkItemNotFound
from treadle.json import encode

# The maximum size of all payloads on a page.
PAGE_BYTES = 64 * 2**20
# The maximum number of changes shown for one item.
CHANGES = 200


class Work:
    """Add, update and read work items."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def add(
        self,
        type: str,
        description: str,
        *,
        payload: Mapping[str, Any],
        priority: int,
        agent: str | None,
        project_id: UUID | None,
        created_by: str | None,
        actor: str | None,
    ) -> UUID:
        rows = await self._calls.call_once(
            "select treadle.create_work_item(%b, %b, %b, %b::integer, %b, %b, %b, %b)",
            type,
            description,
            RawJson(encode(dict(payload), name="payload")),
            priority,
            agent,
            project_id,
            created_by,
            actor,
        )
        made: UUID = rows[0][0]
        return made

    async def update(
        self,
        item_id: UUID,
        changes: Mapping[str, str],
        *,
        actor: str | None,
        as_agent: str | None,
        stale_s: float,
    ) -> Record:
        """Change a work item and return it; with `as_agent`, only while this agent has it."""
        [row] = await self._calls.rows(
            "select * from treadle.try_update_work_item(%s, %s, %s, %s, %s::float8)",
            [
                item_id,
                RawJson(encode(dict(changes), name="changes")),
                actor,
                as_agent,
                stale_s,
            ],
        )
        if problem := row.pop("problem"):
            raise refusal(problem)
        return row

    async def get(self, item_id: UUID) -> Record:
        found = await self._calls.rows(
            "select * from treadle.work_items where id = %(id)s", {"id": item_id}
        )
        if not found:
            raise WorkItemNotFound(
                f"there is no work item {item_id}", hint="List them: GET /work", id=str(item_id)
            )
        return found[0]

    async def dispatches(self, item_id: UUID) -> list[Record]:
        """List the dispatches of a work item and their outcomes, oldest first."""
        return await self._calls.rows(
            """
            select id, work_item_id, dispatched_at, agent, completed_at, outcome
            from treadle.work_dispatches where work_item_id = %(id)s order by number
            """,
            {"id": item_id},
        )

    async def changes(self, item_id: UUID) -> list[Record]:
        """List the latest changes of a work item, oldest first."""
        return await self._calls.rows(
            """
            select id, at, actor, from_status, to_status, agent, note
            from (
              select work_changes.*
              from treadle.work_changes
              where work_item_id = %(id)s
              order by number desc
              limit %(limit)s
            ) as latest
            order by number
            """,
            {"id": item_id, "limit": CHANGES},
        )

    async def list(
        self,
        *,
        status: str | None = None,
        agent: str | None = None,
        project_id: UUID | None = None,
        since: datetime | None = None,
        after: UUID | None = None,
        limit: int,
    ) -> list[Record]:
        """List matching work items in the order of the work API; `more` means that others follow.

        If the payloads are too large for one response, the rest is left for the next page.
        """
        return await self._calls.rows(
            """
            select shown.*
            from (
              select
                work_items.*,
                listed.place,
                lead(listed.id) over places is not null as more,
                sum(octet_length(work_items.payload::text)) over places as bytes
              from
                treadle.list_work_items(
                  %(status)s, %(agent)s, %(project_id)s, %(since)s, %(after)s, %(limit)s + 1
                ) with ordinality as listed (id, place)
              inner join treadle.work_items on listed.id = work_items.id
              window places as (order by listed.place)
            ) as shown
            where shown.place = 1 or (shown.place <= %(limit)s and shown.bytes <= %(bytes)s)
            order by shown.place
            """,
            {
                "status": status,
                "agent": agent,
                "project_id": project_id,
                "since": since,
                "after": after,
                "limit": limit,
                "bytes": PAGE_BYTES,
            },
        )
