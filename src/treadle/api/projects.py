"""Projects of the work API: whose work it is."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from treadle.api.access import Caller, Db, check_everywhere, queues_of, requires
from treadle.api.bodies import Text
from treadle.api.idempotency import Once
from treadle.api.paging import PAGED, WORK_PAGE, Cursor, Limit, work_page
from treadle.api.problems import answers
from treadle.api.responses import json_response, json_row
from treadle.api.work import Visible
from treadle.db.database import Database
from treadle.errors import Forbidden

router = APIRouter(prefix="/projects", tags=["work"])


class NewProject(BaseModel):
    """A project to be."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "Shopping List API", "external_ref": "todoist:123"}]
        }
    )

    name: Visible = Field(max_length=200)
    external_ref: Text | None = Field(
        None, max_length=1000, description="A Todoist project, a repository, and so on."
    )


class ProjectChange(BaseModel):
    """What is to be changed; what is not named stays as it is."""

    name: Visible | None = Field(None, max_length=200)
    external_ref: Text | None = Field(None, max_length=1000)


class Project(BaseModel):
    """A project."""

    id: UUID
    name: str
    external_ref: str | None
    created_at: datetime
    updated_at: datetime


@router.get(
    "",
    response_model=list[Project],
    responses=PAGED,
    dependencies=[requires("read")],
)
async def list_projects(
    request: Request, who: Caller, db: Db, limit: Limit = WORK_PAGE, cursor: Cursor = None
) -> Response:
    """Projects, the oldest first. The body is an array, in pages.

    A token for some queues or an agent gets the projects that have a task in its reach.
    """
    rows = await db.projects.page(
        only=who.project_id,
        queues=queues_of(who),
        agent=who.agent,
        after=cursor,
        limit=limit + 1,
    )
    shown = [_shown(row) for row in rows[:limit]]
    return work_page(request, shown, limit, more=len(rows) > limit)


@router.post(
    "",
    status_code=201,
    response_model=Project,
    responses=answers(409),
    dependencies=[requires("enqueue")],
)
async def add_project(project: NewProject, who: Caller, once: Once) -> Response:
    """Make a project. Two may be called alike: with an Idempotency-Key a repeat makes no second."""
    check_everywhere(who)

    async def effect(db: Database) -> Response:
        made = await db.projects.create(project.name, project.external_ref)
        row = await db.projects.get(made)
        return json_response(_shown(row), 201, {"Location": f"/projects/{made}"})

    return await once(effect)


@router.get(
    "/{project_id}",
    response_model=Project,
    responses=answers(404),
    dependencies=[requires("read")],
)
async def get_project(project_id: UUID, who: Caller, db: Db) -> Response:
    """One project."""
    row = await db.projects.get(project_id)
    who.check_project(row["id"])
    if not await db.projects.page(only=row["id"], queues=queues_of(who), agent=who.agent, limit=1):
        raise Forbidden(f"{who.name} has no task of the project {project_id} in its reach")
    return json_response(_shown(row))


@router.patch(
    "/{project_id}",
    response_model=Project,
    responses=answers(404, 409),
    dependencies=[requires("enqueue")],
)
async def change_project(
    project_id: UUID, change: ProjectChange, who: Caller, once: Once
) -> Response:
    """Change the name or the external_ref of a project; an external_ref of null takes it away."""
    check_everywhere(who)
    changes = change.model_dump(exclude_unset=True)
    if changes.get("name", "") is None:
        del changes["name"]

    async def effect(db: Database) -> Response:
        await db.projects.change(project_id, changes)
        return json_response(_shown(await db.projects.get(project_id)))

    return await once(effect)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """As the work API has it: what it is called, not the name that is its alone."""
    return json_row(
        {name: row["label" if name == "name" else name] for name in Project.model_fields}
    )
