"""Projects of the work API."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import LIST, PROJECT, SHARED, Access, requires
from treadle.api.bodies import Text, Visible, json_response, json_row
from treadle.api.idempotency import Once
from treadle.api.paging import PAGED, WORK_PAGE, Cursor, Limit, work_page
from treadle.api.problems import answers
from treadle.db.database import Database

router = APIRouter(prefix="/projects", tags=["projects"])
List = Annotated[Access, requires("read", on=LIST)]
Read = Annotated[Access, requires("read", on=PROJECT)]
Change = Annotated[Access, requires("enqueue", on=SHARED)]


class NewProject(BaseModel):
    """A new project."""

    name: Visible = Field(max_length=200)
    external_ref: Text | None = Field(
        None, max_length=1000, description="For example a Todoist project or a repository."
    )


class ProjectChange(BaseModel):
    """Changes; absent fields keep their values."""

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
)
async def list_projects(
    request: Request, access: List, limit: Limit = WORK_PAGE, cursor: Cursor = None
) -> Response:
    """List projects.

    The oldest come first. The body is an array, in pages. A token restricted to queues or an agent
    gets the projects that have a visible task.
    """
    rows = await access.db.projects.page(access.view, after=cursor, limit=limit + 1)
    shown = [_shown(row) for row in rows[:limit]]
    return work_page(request, shown, limit, more=len(rows) > limit)


@router.post(
    "",
    status_code=201,
    response_model=Project,
    responses=answers(409),
)
async def add_project(project: NewProject, access: Change, once: Once) -> Response:
    """Create a project.

    Names need not be unique: use an `Idempotency-Key` for safe repeats.
    """

    async def effect(db: Database) -> Response:
        made = await db.projects.create(project.name, project.external_ref)
        row = await db.projects.get(made)
        return json_response(_shown(row), 201, {"Location": f"/projects/{made}"})

    return await once(effect)


@router.get(
    "/{project_id}",
    response_model=Project,
    responses=answers(404),
)
async def get_project(project_id: UUID, access: Read) -> Response:
    """Get a project.

    The response has its name and its `external_ref`.
    """
    return json_response(_shown(await access.db.projects.get(project_id)))


@router.patch(
    "/{project_id}",
    response_model=Project,
    responses=answers(404, 409),
)
async def change_project(
    project_id: UUID, change: ProjectChange, access: Change, once: Once
) -> Response:
    """Change a project.

    The body has a new `name` or `external_ref`; null removes the `external_ref`.
    """
    changes = change.model_dump(exclude_unset=True)
    if changes.get("name", "") is None:
        del changes["name"]

    async def effect(db: Database) -> Response:
        await db.projects.change(project_id, changes)
        return json_response(_shown(await db.projects.get(project_id)))

    return await once(effect)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the work API; its name is the label, which is not unique."""
    return json_row(
        {name: row["label" if name == "name" else name] for name in Project.model_fields}
    )
