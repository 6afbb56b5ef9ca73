"""`/v1/history`, `/v1/retention`: archived tasks, and how long data is kept."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import ARCHIVED, EVERYTHING, LIST, WHOLE_QUEUES, Access, Principal, requires
from treadle.api.bodies import Body, Name, json_response, json_row, json_rows
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers

router = APIRouter(prefix="/v1")
History = Annotated[Access, requires("read", on=WHOLE_QUEUES)]
Read = Annotated[Access, requires("read", on=ARCHIVED)]
List = Annotated[Access, requires("read", on=LIST)]
Operate = Annotated[Access, requires("operate", on=EVERYTHING)]
Kind = Literal["events", "agents", "runs"]


class Archived(BaseModel):
    """An archived task."""

    id: UUID
    queue: str
    type: str
    title: str | None
    status: Literal["completed", "cancelled", "dead_lettered"]
    dag_id: UUID | None
    parent_id: UUID | None
    created_at: datetime
    completed_at: datetime
    archived_at: datetime
    attempt: int
    completed_by: str | None
    failure_class: str | None
    failure_reason: str | None
    cost_usd: float


class ArchivedTask(Archived):
    """An archived task with its whole row in `task`, and everything that belonged to it."""

    depends_on: list[UUID] | None
    task: dict[str, Any]
    attempts: list[Any] | None
    steps: list[Any] | None
    waits: list[Any] | None
    dead_letters: list[Any] | None
    spend: list[Any] | None
    artifacts: list[Any] | None
    events: list[Any] | None


class Age(BaseModel):
    """How long data is kept, and what happens then; `keep_s` of null keeps it forever."""

    what: Literal["completed", "cancelled", "dead_lettered", "events", "agents", "runs"]
    queue: str | None
    keep_s: float | None
    mode: Literal["archive", "drop"]


class Ages(BaseModel):
    """Ages of finished tasks by queue, then of data that belongs to no queue."""

    items: list[Age]


class RetentionAge(Body):
    """Seconds to keep; null means forever."""

    keep_s: Annotated[float, Field(ge=0, le=3_153_600_000, allow_inf_nan=False)] | None


@router.get("/history", tags=["history"], response_model=Listed[Archived])
async def list_history(
    access: History, page: Page, queue: Name | None = None, type: Name | None = None
) -> Response:
    """List archived tasks.

    The newest come first. A token for queues sees the history of these queues.
    """
    rows = await access.db.retention.archive(
        queue=queue,
        type=type,
        within=access.view.queues,
        after=page.after(UUID),
        limit=page.more,
    )
    return page.answer(rows, "id")


@router.get(
    "/history/{task_id}",
    tags=["history"],
    response_model=ArchivedTask,
    responses=answers(404),
)
async def show(task_id: UUID, access: Read) -> Response:
    """Get an archived task.

    The response has its whole row in `task`, and its attempts, steps, events and the rest. Under
    `/v1/tasks` an archived task is 404.
    """
    row = await access.db.retention.archived(str(task_id))
    return json_response(json_row(row))


@router.get("/retention", tags=["retention"], response_model=Ages)
async def ages(access: List) -> Response:
    """List retention ages.

    They say how long data is kept. For tasks it is a setting of the queue.
    """
    return json_response(
        {"items": json_rows(_seen(access.caller, await access.db.retention.ages()))}
    )


@router.put("/retention/{kind}", tags=["retention"], response_model=Ages)
async def keep(kind: Kind, asked: RetentionAge, access: Operate) -> Response:
    """Set a retention age.

    It says how long events, offline agents or schedule runs are kept; null means forever.
    """
    await access.db.retention.set(kind, asked.keep_s, access.caller.name)
    return json_response(
        {"items": json_rows(_seen(access.caller, await access.db.retention.ages()))}
    )


def _seen(caller: Principal, ages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [age for age in ages if age["queue"] is None or caller.sees(age["queue"])]
