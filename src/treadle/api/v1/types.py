"""`/v1/types`: the kinds of tasks, their settings, and whether they are claimed."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from treadle.api.access import Who, need
from treadle.api.deps import Calls, Views
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.v1 import models_queues as models
from treadle.api.v1.fields import Reason
from treadle.api.v1.reach import check_everywhere
from treadle.api.wire import answer, record
from treadle.db.reader import Reader
from treadle.errors import UnknownType

router = APIRouter(prefix="/v1/types", tags=["types"])
Name = Annotated[str, Path(min_length=1, max_length=100)]


@router.get("", response_model=Listed[models.Type], dependencies=[need("read")])
async def list_types(views: Views, page: Page) -> Response:
    """Types with their settings."""
    rows = await views.page("type_status", key="type", after=page.after(str), limit=page.more)
    return page.answer(rows, "type")


@router.post(
    "/{name:path}/pause",
    response_model=models.Type,
    responses=answers(404),
    dependencies=[need("operate")],
)
async def pause(
    name: Name, calls: Calls, views: Views, who: Who, why: Reason | None = None
) -> Response:
    """Let no more tasks of a type be claimed; what runs, runs on."""
    check_everywhere(who)
    await calls.pause_type(name, why.reason if why else None, who.name)
    return await _shown(views, name)


@router.post(
    "/{name:path}/resume",
    response_model=models.Type,
    responses=answers(404),
    dependencies=[need("operate")],
)
async def resume(name: Name, calls: Calls, views: Views, who: Who) -> Response:
    """Let a paused type go on."""
    check_everywhere(who)
    await calls.resume_type(name, who.name)
    return await _shown(views, name)


@router.get(
    "/{name:path}", response_model=models.Type, responses=answers(404), dependencies=[need("read")]
)
async def show(name: Name, views: Views) -> Response:
    """One type."""
    return await _shown(views, name)


@router.put(
    "/{name:path}",
    response_model=models.Type,
    responses=answers(404),
    dependencies=[need("operate")],
)
async def define(
    name: Name, settings: models.TypeSettings, calls: Calls, views: Views, who: Who
) -> Response:
    """Make a type, or change one; what is not named stays as it is."""
    check_everywhere(who)
    await calls.define_type(name, settings.named(), who.name)
    return await _shown(views, name)


async def _shown(views: Reader, name: str) -> Response:
    rows = await views.page("type_status", key="type", limit=1, where={"type = {}": name})
    if not rows:
        raise UnknownType(f"there is no task type {name!r}", type=name)
    return answer(record(rows[0]))
