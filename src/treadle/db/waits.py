"""Waits: the questions, approvals and events that tasks wait for; reached as `db.waits`."""

from collections.abc import Iterable
from uuid import UUID

from psycopg import sql

from treadle.db.calls import Calls, RawJson, Record
from treadle.db.reach import Reach
from treadle.errors import WaitNotFound
from treadle.models import ExpiredWait, OpenedWait


class Waits:
    """Open, answer, expire and read waits."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def open(self, task_id: UUID, token: UUID, name: str, wait: bytes) -> OpenedWait:
        rows = await self._calls.call(
            "select wait_id, status, answer from treadle.open_wait(%b, %b, %b, %b)",
            task_id,
            token,
            name,
            RawJson(wait),
        )
        return OpenedWait(*rows[0])

    async def answer(self, wait_id: UUID, value: bytes, by: str | None, note: str | None) -> str:
        """Answer a wait on behalf of `by`, by default the login."""
        rows = await self._calls.call(
            "select treadle.answer_wait(%b, %b, coalesce(%b, session_user), %b)",
            wait_id,
            RawJson(value),
            by,
            note,
        )
        return str(rows[0][0])

    async def expire(self, limit: int, skip: Iterable[UUID]) -> list[ExpiredWait]:
        rows = await self._calls.call(
            "select id, problem from treadle.expire_waits(%b::integer, %b::uuid[])",
            limit,
            list(skip),
        )
        return [ExpiredWait(*row) for row in rows]

    async def get(self, wait_id: UUID) -> Record:
        """Get one wait with its answers so far."""
        found = await self._calls.rows(
            "select * from treadle.wait_details where id = %(id)s", {"id": wait_id}
        )
        if not found:
            raise WaitNotFound(
                f"there is no wait {wait_id}", hint="List them: treadle waits", wait_id=str(wait_id)
            )
        return found[0]

    async def find(self, text: str) -> UUID:
        """Find the id of a wait by the id, or by a unique ending of six characters or more."""
        query = "select id from treadle.wait_details where id::text like %(end)s limit 2"
        missing = WaitNotFound(f"no wait id ends in {text}", hint="List them: treadle waits")
        return await self._calls.find(text, query, "wait", missing)

    async def page(
        self,
        reach: Reach,
        *,
        ended: bool,
        task_id: UUID | None,
        after: UUID | None,
        limit: int,
    ) -> list[Record]:
        """Visible waits: open ones, the oldest first; or ended ones, the newest first."""
        return await self._calls.page(
            "wait_details",
            key="id",
            after=after,
            limit=limit,
            newest=ended,
            where={"(status <> 'open') = {}": ended, "task_id = {}": task_id},
            reach=reach,
        )

    async def list(
        self, *, ended: bool = False, task_id: UUID | None = None, limit: int = 50
    ) -> list[Record]:
        """List open waits, oldest first; with `ended` all waits, newest first."""
        order = sql.SQL("id desc" if ended else "opened_at, id")
        query = sql.SQL(
            """
            select * from treadle.wait_details
            where
              {which}
              and (%(task_id)s::uuid is null or task_id = %(task_id)s)
            order by {order}
            limit %(limit)s
            """
        ).format(which=sql.SQL("true" if ended else "status = 'open'"), order=order)
        return await self._calls.rows(query, {"task_id": task_id, "limit": limit})
