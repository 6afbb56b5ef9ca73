"""`/v1/history`, `/v1/retention`: finished tasks that were archived, and what is kept how long."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import (
    Caller,
    Db,
    Principal,
    check_everywhere,
    check_places,
    check_whole_queues,
    queues_of,
    requires,
)
from treadle.api.bodies import Body, Name
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.responses import json_response, json_row, json_rows
from treadle.db.access import TaskLocation

router = APIRouter(prefix="/v1", tags=["history"])
Kind = Literal["events", "agents", "runs"]


class Archived(BaseModel):
    """A task that ended and was pruned."""

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
    """The same with its whole row in `task`, and all that belonged to it."""

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
    """How long something is kept, and what becomes of it then; `keep_s` of null is for ever."""

    what: Literal["completed", "cancelled", "dead_lettered", "events", "agents", "runs"]
    queue: str | None
    keep_s: float | None
    mode: Literal["archive", "drop"]


class Ages(BaseModel):
    """By queue what has ended; then what belongs to no queue."""

    items: list[Age]


class RetentionAge(Body):
    """For so many seconds; null is for ever."""

    keep_s: Annotated[float, Field(ge=0, le=3_153_600_000, allow_inf_nan=False)] | None


@router.get("/history", response_model=Listed[Archived], dependencies=[requires("read")])
async def list_history(
    db: Db, page: Page, who: Caller, queue: Name | None = None, type: Name | None = None
) -> Response:
    """Archived tasks, the newest first."""
    check_whole_queues(who)
    rows = await db.retention.archive(
        queue=queue,
        type=type,
        within=queues_of(who),
        after=page.after(UUID),
        limit=page.more,
    )
    return page.answer(rows, "id")


@router.get(
    "/history/{task_id}",
    response_model=ArchivedTask,
    responses=answers(404),
    dependencies=[requires("read")],
)
async def show(task_id: UUID, db: Db, who: Caller) -> Response:
    """An archived task with all that belonged to it."""
    check_whole_queues(who)
    row = await db.retention.archived(str(task_id))
    check_places(who, [TaskLocation(row["queue"], None, None)])
    return json_response(json_row(row))


@router.get("/retention", response_model=Ages, dependencies=[requires("read")])
async def ages(db: Db, who: Caller) -> Response:
    """What is kept how long. For tasks that is said of their queue: PUT /v1/queues/{name}."""
    return json_response({"items": json_rows(_seen(who, await db.retention.ages()))})


@router.put("/retention/{kind}", response_model=Ages, dependencies=[requires("operate")])
async def keep(kind: Kind, asked: RetentionAge, db: Db, who: Caller) -> Response:
    """Keep events, agents that are gone or the record of runs for so long."""
    check_everywhere(who)
    check_whole_queues(who)
    await db.retention.set(kind, asked.keep_s, who.name)
    return json_response({"items": json_rows(_seen(who, await db.retention.ages()))})


def _seen(who: Principal, ages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [age for age in ages if age["queue"] is None or who.sees(age["queue"])]
