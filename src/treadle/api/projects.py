"""Projects of the work API: whose work it is."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request
from starlette.responses import Response

from treadle.api import work_models as models
from treadle.api.access import Who, need
from treadle.api.deps import Views
from treadle.api.idempotency import Once
from treadle.api.problems import answers
from treadle.api.v1.reach import check_everywhere, queues_of
from treadle.api.wire import answer, record
from treadle.api.work_pages import PAGE, PAGED, Cursor, Limit, page
from treadle.db.gateway import Gateway
from treadle.db.reader import Reader
from treadle.errors import Forbidden

router = APIRouter(prefix="/projects", tags=["work"])


@router.get(
    "",
    response_model=list[models.Project],
    responses=PAGED,
    dependencies=[need("read")],
)
async def list_projects(
    request: Request, who: Who, views: Views, limit: Limit = PAGE, cursor: Cursor = None
) -> Response:
    """Projects, the oldest first. The body is an array, in pages.

    A token for some queues or an agent gets the projects that have a task in its reach.
    """
    rows = await views.project_list(
        only=who.project_id,
        queues=queues_of(who),
        agent=who.agent,
        after=cursor,
        limit=limit + 1,
    )
    shown = [_shown(row) for row in rows[:limit]]
    return page(request, shown, limit, more=len(rows) > limit)


@router.post(
    "",
    status_code=201,
    response_model=models.Project,
    responses=answers(409),
    dependencies=[need("enqueue")],
)
async def add_project(project: models.NewProject, who: Who, once: Once) -> Response:
    """Make a project. Two may be called alike: with an Idempotency-Key a repeat makes no second."""
    check_everywhere(who)

    async def effect(calls: Gateway) -> Response:
        made = await calls.create_project(project.name, project.external_ref)
        row = await Reader(calls).project(made)
        return answer(_shown(row), 201, {"Location": f"/projects/{made}"})

    return await once(effect)


@router.get(
    "/{project_id}",
    response_model=models.Project,
    responses=answers(404),
    dependencies=[need("read")],
)
async def get_project(project_id: UUID, who: Who, views: Views) -> Response:
    """One project."""
    row = await views.project(project_id)
    who.check_project(row["id"])
    if not await views.project_list(
        only=row["id"], queues=queues_of(who), agent=who.agent, limit=1
    ):
        raise Forbidden(f"{who.name} has no task of the project {project_id} in its reach")
    return answer(_shown(row))


@router.patch(
    "/{project_id}",
    response_model=models.Project,
    responses=answers(404, 409),
    dependencies=[need("enqueue")],
)
async def change_project(
    project_id: UUID, change: models.ProjectChange, who: Who, once: Once
) -> Response:
    """Change the name or the external_ref of a project; an external_ref of null takes it away."""
    check_everywhere(who)
    changes = change.model_dump(exclude_unset=True)
    if changes.get("name", "") is None:
        del changes["name"]

    async def effect(calls: Gateway) -> Response:
        await calls.change_project(project_id, changes)
        return answer(_shown(await Reader(calls).project(project_id)))

    return await once(effect)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """As the work API has it: what it is called, not the name that is its alone."""
    return record(
        {name: row["label" if name == "name" else name] for name in models.Project.model_fields}
    )
