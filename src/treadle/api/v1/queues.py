"""`/v1/queues` and `/v1/stuck`: depth, order and settings of queues, and stuck tasks."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle import fields
from treadle.api.access import LIST, QUEUE, WHOLE_QUEUE, WHOLE_QUEUES, Access, requires
from treadle.api.bodies import (
    Body,
    Object,
    Reason,
    json_response,
    json_row,
    json_rows,
    with_columns,
    with_fields,
)
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.db.database import Database

router = APIRouter(prefix="/v1", tags=["queues"])
List = Annotated[Access, requires("read", on=LIST)]
Read = Annotated[Access, requires("read", on=QUEUE)]
ReadWhole = Annotated[Access, requires("read", on=WHOLE_QUEUE)]
ReadAll = Annotated[Access, requires("read", on=WHOLE_QUEUES)]
Operate = Annotated[Access, requires("operate", on=WHOLE_QUEUE)]
QueueName = Annotated[str, Path(min_length=1, max_length=48)]
DEFAULTS = fields.fields_of(fields.QueueDefaults)


@with_fields(fields.fields_of(fields.QueueSettings))
class QueueSettings(Body):
    """Settings of a queue; absent fields keep their values."""


class Queue(BaseModel):
    """The depth and throughput of a queue; rates are of the last five minutes."""

    queue: str
    paused: bool
    ready: int
    waiting: int
    in_flight: int
    retrying: int
    dead_letters: int
    oldest_ready_at: datetime | None
    oldest_ready_age: float | None = Field(description="In seconds.")
    completed_5m: int
    completed_per_s: float
    failed_attempts_5m: int
    wait_p50_s: float | None
    run_p50_s: float | None
    depth: int
    max_depth: int | None
    fair: bool


@with_columns(DEFAULTS, nullable=True)
class QueueDetails(Queue):
    """A queue with its settings."""

    paused_at: datetime | None
    paused_by: str | None
    paused_reason: str | None
    retry: Object
    max_spec_bytes: int
    audit: str
    assignment: Literal["claim", "manual", "dispatch"]
    hold: bool
    on_lease_expiry: Literal["fail", "block"]
    keep_completed_s: float | None
    keep_cancelled_s: float | None
    keep_dead_s: float | None
    prune_mode: str
    created_at: datetime


class QueuePosition(BaseModel):
    """A ready task and its place in the order in which tasks would be claimed."""

    place: int
    id: UUID
    type: str
    priority: int
    effective_priority: float
    since: datetime
    title: str | None
    project: str | None
    closed_reason: str | None


class ClaimOrder(BaseModel):
    """Ready tasks in the order in which they would be claimed."""

    queue: str
    items: list[QueuePosition]


class Stuck(BaseModel):
    """Tasks that are stuck for the same reason."""

    reason: str
    status: str
    queue: str
    type: str
    tasks: int
    since: datetime | None
    example_id: UUID


class StuckList(BaseModel):
    """Stuck tasks, oldest first."""

    items: list[Stuck]


@router.get("/queues", response_model=Listed[Queue])
async def list_queues(access: List, page: Page) -> Response:
    """List queues.

    Each has its depth, oldest task and throughput.
    """
    rows = await access.db.queues.page(access.view, after=page.after(str), limit=page.more)
    return page.answer(rows, "queue")


@router.get(
    "/queues/{queue}",
    response_model=QueueDetails,
    responses=answers(404),
)
async def show(queue: QueueName, access: Read) -> Response:
    """Get a queue.

    The response has its depth, oldest task, throughput and settings.
    """
    return await _shown(access.db, queue)


@router.get(
    "/queues/{queue}/order",
    response_model=ClaimOrder,
    responses=answers(404),
)
async def order(
    queue: QueueName, access: ReadWhole, limit: Annotated[int, Query(ge=1, le=1000)] = 20
) -> Response:
    """List ready tasks in claim order.

    Each has what keeps it from being claimed.
    """
    return json_response(
        {"queue": queue, "items": json_rows(await access.db.queues.claim_order(queue, limit))}
    )


@router.put(
    "/queues/{queue}",
    response_model=QueueDetails,
)
async def define(queue: QueueName, settings: QueueSettings, access: Operate) -> Response:
    """Create or change a queue.

    Fields that the body leaves out keep their values; `max_depth: null` removes the limit.
    """
    await access.db.queues.define(queue, settings.named(), access.caller.name)
    return await _shown(access.db, queue)


@router.delete("/queues/{queue}", status_code=204, responses=answers(404, 409))
async def remove(queue: QueueName, access: Operate) -> Response:
    """Remove a queue.

    It must have no tasks, and no agent, schedule or trigger may use it.
    """
    await access.db.queues.remove(queue, access.caller.name)
    return Response(status_code=204)


@router.post(
    "/queues/{queue}/pause",
    response_model=QueueDetails,
    responses=answers(404),
)
async def pause(queue: QueueName, access: Operate, why: Reason | None = None) -> Response:
    """Pause a queue.

    No task is claimed; running tasks continue.
    """
    await access.db.queues.pause(queue, why.reason if why else None, access.caller.name)
    return await _shown(access.db, queue)


@router.post(
    "/queues/{queue}/resume",
    response_model=QueueDetails,
    responses=answers(404),
)
async def resume(queue: QueueName, access: Operate) -> Response:
    """Resume a queue.

    Its tasks can be claimed again.
    """
    await access.db.queues.resume(queue, access.caller.name)
    return await _shown(access.db, queue)


@router.get("/stuck", response_model=StuckList)
async def stuck(access: ReadAll) -> Response:
    """List stuck tasks.

    These are tasks that should run and do not, with the reason.
    """
    rows = await access.db.queues.stuck()
    shown = [row for row in rows if access.caller.sees(row["queue"])]
    return json_response({"items": json_rows(shown)})


async def _shown(db: Database, queue: str) -> Response:
    settings = await db.queues.get(queue)
    health = await db.queues.health(queue)
    ages = await db.retention.queue_ages(queue)
    return json_response({**json_row(health), **json_row(settings), **ages})
