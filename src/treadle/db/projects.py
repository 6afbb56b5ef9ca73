"""Projects with their shares, and the projects of the work API; reached as `db.projects`."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from psycopg import sql

from treadle.db.calls import Calls, RawJson, Record
from treadle.db.reach import Reach
from treadle.errors import UnknownProject
from treadle.json import encode


class Projects:
    """Define, change and read projects."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def define(self, name: str, settings: Mapping[str, Any]) -> tuple[UUID, bool]:
        """Create or change a project; return its id and whether it is new."""
        rows = await self._calls.call(
            "select id, created from treadle.define_project(%b, %b)",
            name,
            RawJson(encode(settings)),
        )
        made, created = rows[0]
        return made, created

    async def create(self, name: str, external_ref: str | None) -> UUID:
        rows = await self._calls.call_once(
            "select treadle.create_project(%b, %b)", name, external_ref
        )
        made: UUID = rows[0][0]
        return made

    async def change(self, project_id: UUID, changes: Mapping[str, str | None]) -> None:
        await self._calls.call(
            "select treadle.update_project(%b, %b)",
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
        reach: Reach,
        *,
        only: UUID | None = None,
        after: UUID | None = None,
        limit: int,
    ) -> list[Record]:
        """List projects in the order of creation, or only one.

        A restricted caller sees its own project, and projects that have a task that it sees.
        """
        of_tasks = reach.queues is not None or reach.agent is not None
        return await self._calls.page(
            "project_list",
            key="id",
            after=after,
            limit=limit,
            where={"id = {}": only, "id in ({})": reach.project_id},
            reach=reach if of_tasks else Reach.ALL,
            visible=_of_tasks,
        )

    async def list(self) -> list[Record]:
        return await self._calls.rows("select * from treadle.project_load order by name")


def _of_tasks(reach: Reach) -> sql.Composed:
    """A condition: the project has a visible task."""
    return sql.SQL("id in (select project_id from treadle.task_access where {})").format(
        reach.of_row()
    )
