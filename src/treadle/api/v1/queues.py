"""`/v1/queues` and `/v1/stuck`: depth, order, settings, and what does not move."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import Caller, Db, check_whole_queues, queues_of, requires
from treadle.api.bodies import Body, Object, Reason
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.responses import json_response, json_row, json_rows
from treadle.db.database import Database

KEEP = 3_153_600_000
router = APIRouter(prefix="/v1", tags=["queues"])
QueueName = Annotated[str, Path(min_length=1, max_length=48)]


class TaskDefaults(Body):
    """What tasks get that do not say."""

    max_attempts: int | None = Field(None, ge=1, le=1000)
    timeout_s: float | None = Field(None, gt=0, le=31_536_000)
    ageing_rate: float | None = Field(
        None, ge=0, le=1000, description="Priority points gained per minute of waiting."
    )
    retry: Object | None = Field(None, description="How failed attempts are retried.")
    priority: int | None = Field(None, ge=0, le=100, description="0 is first, 100 last.")


class QueueSettings(TaskDefaults):
    """What a queue is like; what is not named stays as it is."""

    max_spec_bytes: int | None = Field(None, ge=1, le=268_435_456)
    audit: Literal["compact", "full"] | None = None
    max_depth: int | None = Field(
        None, ge=1, le=2**31 - 1, description="Most tasks that may wait; null is any number."
    )
    fair: bool | None = Field(None, description="Let projects take turns.")
    hold: bool | None = Field(None, description="Keep new tasks back until they are released.")
    keep_completed_s: float | None = Field(None, ge=0, le=KEEP)
    keep_cancelled_s: float | None = Field(None, ge=0, le=KEEP)
    keep_dead_s: float | None = Field(None, ge=0, le=KEEP)
    prune_mode: Literal["archive", "drop"] | None = None


class Queue(BaseModel):
    """How deep a queue is, and how fast; rates are of the last five minutes."""

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


class QueueDetails(Queue):
    """A queue with its settings."""

    paused_at: datetime | None
    paused_by: str | None
    paused_reason: str | None
    priority: int | None
    max_attempts: int | None
    timeout_s: float | None
    ageing_rate: float | None
    retry: dict[str, Any]
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
    shut: str | None


class Order(BaseModel):
    """Ready tasks in the order in which they would be claimed."""

    queue: str
    items: list[QueuePosition]


class Stuck(BaseModel):
    """What should move and does not, and why."""

    reason: str
    status: str
    queue: str
    type: str
    tasks: int
    since: datetime | None
    example_id: UUID


class StuckList(BaseModel):
    """What should move and does not, the oldest first."""

    items: list[Stuck]


@router.get("/queues", response_model=Listed[Queue], dependencies=[requires("read")])
async def list_queues(db: Db, page: Page, who: Caller) -> Response:
    """Queues with their depth, oldest task and speed."""
    rows = await db.calls.page(
        "queue_health",
        key="queue",
        after=page.after(str),
        limit=page.more,
        where={"queue = any({})": queues_of(who)},
    )
    return page.answer(rows, "queue")


@router.get(
    "/queues/{queue}",
    response_model=QueueDetails,
    responses=answers(404),
    dependencies=[requires("read")],
)
async def show(queue: QueueName, db: Db, who: Caller) -> Response:
    """One queue with its settings."""
    who.check_queue(queue)
    return await _shown(db, queue)


@router.get(
    "/queues/{queue}/order",
    response_model=Order,
    responses=answers(404),
    dependencies=[requires("read")],
)
async def order(
    queue: QueueName, db: Db, who: Caller, limit: Annotated[int, Query(ge=1, le=1000)] = 20
) -> Response:
    """Its ready tasks in the order in which they would be claimed, and what shuts them out."""
    who.check_queue(queue)
    check_whole_queues(who)
    return json_response(
        {"queue": queue, "items": json_rows(await db.queues.claim_order(queue, limit))}
    )


@router.put(
    "/queues/{queue}",
    response_model=QueueDetails,
    dependencies=[requires("operate")],
)
async def define(queue: QueueName, settings: QueueSettings, db: Db, who: Caller) -> Response:
    """Make a queue, or change one; what is not named stays as it is."""
    who.check_queue(queue)
    check_whole_queues(who)
    await db.queues.define(queue, settings.named(), who.name)
    return await _shown(db, queue)


@router.post(
    "/queues/{queue}/pause",
    response_model=QueueDetails,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def pause(queue: QueueName, db: Db, who: Caller, why: Reason | None = None) -> Response:
    """Let nothing more be claimed from a queue; what runs, runs on."""
    who.check_queue(queue)
    check_whole_queues(who)
    await db.queues.pause(queue, why.reason if why else None, who.name)
    return await _shown(db, queue)


@router.post(
    "/queues/{queue}/resume",
    response_model=QueueDetails,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def resume(queue: QueueName, db: Db, who: Caller) -> Response:
    """Let a paused queue go on."""
    who.check_queue(queue)
    check_whole_queues(who)
    await db.queues.resume(queue, who.name)
    return await _shown(db, queue)


@router.get("/stuck", response_model=StuckList, dependencies=[requires("read")])
async def stuck(db: Db, who: Caller) -> Response:
    """What should move and does not, and why."""
    check_whole_queues(who)
    rows = await db.queues.stuck()
    shown = [row for row in rows if who.sees(row["queue"])]
    return json_response({"items": json_rows(shown)})


async def _shown(db: Database, queue: str) -> Response:
    settings = await db.queues.get(queue)
    [health] = await db.calls.page(
        "queue_health", key="queue", limit=1, where={"queue = {}": queue}
    )
    ages = await db.retention.queue_ages(queue)
    return json_response({**json_row(health), **json_row(settings), **ages})
