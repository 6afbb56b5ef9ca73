"""Projects with their shares, and the projects of the work API; reached as `db.projects`."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls, RawJson, Record
from treadle.errors import UnknownProject
from treadle.json import encode


class Projects:
    """Define, change and read projects."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def define(self, name: str, settings: Mapping[str, Any]) -> UUID:
        rows = await self._calls.call(
            "select treadle.define_project(%b, %b)", name, RawJson(encode(settings))
        )
        made: UUID = rows[0][0]
        return made

    async def create(self, name: str, external_ref: str | None) -> UUID:
        rows = await self._calls.call_once(
            "select treadle.create_project(%b, %b)", name, external_ref
        )
        made: UUID = rows[0][0]
        return made

    async def change(self, project_id: UUID, changes: Mapping[str, str | None]) -> None:
        await self._calls.call(
            "select treadle.change_project(%b, %b)",
            project_id,
            RawJson(encode(dict(changes), name="changes")),
        )

    async def get(self, project_id: UUID) -> Record:
        found = await self._calls.rows(
            """
            select id, name, label, external_ref, created_at, updated_at
            from treadle.project_list where id = %(id)s
            """,
            {"id": project_id},
        )
        if not found:
            raise UnknownProject(
                f"there is no project {project_id}",
                hint="List them: GET /projects",
                project_id=str(project_id),
            )
        return found[0]

    async def page(
        self,
        *,
        only: UUID | None = None,
        queues: Sequence[str] | None = None,
        agent: str | None = None,
        after: UUID | None = None,
        limit: int,
    ) -> list[Record]:
        """Projects in the order of their making, or only one.

        With queues or an agent: those that have a task in one of the queues that the agent, or
        nobody yet, has.
        """
        return await self._calls.rows(
            """
            select id, name, label, external_ref, created_at, updated_at
            from treadle.project_list
            where
              (%(only)s::uuid is null or id = %(only)s)
              and (%(after)s::uuid is null or id > %(after)s)
              and (
                (%(queues)s::text[] is null and %(agent)s::text is null)
                or id in (
                  select places.project_id from treadle.task_places as places
                  where
                    (%(queues)s::text[] is null or places.queue = any (%(queues)s::text[]))
                    and (%(agent)s::text is null or coalesce(places.agent, %(agent)s) = %(agent)s)
                )
              )
            order by id
            limit %(limit)s
            """,
            {
                "only": only,
                "queues": None if queues is None else list(queues),
                "agent": agent,
                "after": after,
                "limit": limit,
            },
        )

    async def list(self) -> list[Record]:
        return await self._calls.rows("select * from treadle.project_load order by name")
