"""`/v1/schedules`: work that starts by the calendar."""

from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import (
    Caller,
    Db,
    Principal,
    check_options,
    check_references,
    check_template,
    is_restricted,
    queues_of,
    requires,
    tasks_of,
)
from treadle.api.bodies import Body, Object, Reason, Text
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.responses import json_response, json_row
from treadle.cron import Cron, zone_named
from treadle.db.database import Database
from treadle.errors import MissingExtra, QueueFull, UnknownSchedule

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])
Name = Annotated[str, Path(min_length=1, max_length=150)]


class ScheduleSettings(Body):
    """When something is made, and what: a task or a DAG. What is not named stays as it is."""

    cron: Text | None = Field(
        None, min_length=1, max_length=200, description="Five fields, or a word like @daily."
    )
    timezone: Text | None = Field(None, min_length=1, max_length=100, examples=["Europe/Berlin"])
    task: Object | None = Field(None, description='The task to make: {"type": "report"}.')
    dag: Object | None = Field(None, description="Or the DAG to make, as POST /v1/dags takes it.")
    jitter_s: int | None = Field(None, ge=0, le=86_400)
    catch_up: Literal["skip", "one", "all"] | None = None
    overlap: Literal["allow", "skip", "cancel_previous"] | None = None
    grace_s: int | None = Field(None, ge=1, le=86_400)


class Schedule(BaseModel):
    """A schedule: its next time, and what became of the last."""

    id: UUID
    name: str
    state: Literal["active", "paused", "stopped"]
    cron: str
    timezone: str
    next_at: datetime | None
    last_at: datetime | None
    last_status: str | None
    last_error: str | None
    last_task: UUID | None
    last_dag: UUID | None
    last_queue_id: str | None
    makes: Literal["task", "dag"]
    what: str
    queue: str | None
    jitter_s: int
    catch_up: str
    overlap: str
    grace_s: int
    template: dict[str, Any]
    paused_at: datetime | None
    paused_by: str | None
    paused_reason: str | None
    in_code: bool
    created_by: str | None
    created_at: datetime
    updated_at: datetime


class ScheduleRun(BaseModel):
    """What became of a time of a schedule."""

    id: int
    schedule: str
    nominal_at: datetime | None
    missed_until: datetime | None
    fired_at: datetime
    status: str
    now: str | None
    task_id: UUID | None
    dag_id: UUID | None
    actor: str | None
    error: str | None


class MadeBySchedule(BaseModel):
    """What an extra run made; not `created` is one that had its key already."""

    task_id: UUID | None
    dag_id: UUID | None
    created: bool


@router.get("", response_model=Listed[Schedule], dependencies=[requires("read")])
async def list_schedules(db: Db, page: Page, who: Caller) -> Response:
    """Schedules by name: the next time, and what became of the last."""
    who.check_project(None)
    rows = await db.calls.page(
        "schedule_status",
        key="name",
        after=page.after(str),
        limit=page.more,
        where={"queue = any({})": queues_of(who)},
    )
    return page.answer(rows, "name")


@router.get(
    "/{name:path}/runs",
    response_model=Listed[ScheduleRun],
    responses=answers(404),
    dependencies=[requires("read")],
)
async def runs(name: Name, db: Db, page: Page, who: Caller) -> Response:
    """What a schedule made, skipped or missed, the newest first; also after it was removed."""
    after = page.after(int)
    rows = await db.calls.page(
        "schedule_history",
        key="id",
        after=after,
        limit=page.more,
        newest=True,
        where={"schedule = {}": name},
    )
    if is_restricted(who) or (not rows and after is None):
        await _found(db, name, who)
    return page.answer(rows, "id")


@router.post(
    "/{name:path}/run",
    status_code=201,
    response_model=MadeBySchedule,
    responses=answers(404, 409, 503),
    dependencies=[requires("operate")],
)
async def run(name: Name, db: Db, who: Caller, once: Once) -> Response:
    """Make its task or DAG now, besides its times; also while it is paused. 503: queue full."""
    await _found(db, name, who)

    async def effect(db: Database) -> Response:
        task_id, dag_id, created = await db.schedules.run(name, who.name)
        return json_response({"task_id": task_id, "dag_id": dag_id, "created": created}, 201)

    try:
        return await once(effect)
    except QueueFull as error:
        await db.schedules.skip(name, str(error), who.name)
        raise


@router.post(
    "/{name:path}/pause",
    response_model=Schedule,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def pause(name: Name, db: Db, who: Caller, why: Reason | None = None) -> Response:
    """Let a schedule make nothing until it is resumed."""
    await _found(db, name, who)
    await db.schedules.pause(name, why.reason if why else None, who.name)
    return await _shown(db, name)


@router.post(
    "/{name:path}/resume",
    response_model=Schedule,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def resume(name: Name, db: Db, who: Caller) -> Response:
    """Let a paused schedule go on; its catch-up policy says what is made up for."""
    await _found(db, name, who)
    await db.schedules.resume(name, who.name)
    return await _shown(db, name)


@router.get(
    "/{name:path}",
    response_model=Schedule,
    responses=answers(404),
    dependencies=[requires("read")],
)
async def show(name: Name, db: Db, who: Caller) -> Response:
    """One schedule."""
    return json_response(json_row(await _found(db, name, who)))


@router.put(
    "/{name:path}",
    response_model=Schedule,
    responses=answers(404, 409),
    dependencies=[requires("operate")],
)
async def define(name: Name, settings: ScheduleSettings, db: Db, who: Caller) -> Response:
    """Make a schedule, or change one; what is not named stays as it is."""
    given = settings.model_dump(exclude_none=True)
    # A template may say its project in more than one way.
    who.check_project(None)
    tasks = tasks_of(given)
    for task in tasks:
        check_options(who, task)
    await check_references(who, db, tasks)
    if is_restricted(who):
        with suppress(UnknownSchedule):
            await _found(db, name, who)
    # Without the reader of cron lines the scheduler finds out, and says so.
    with suppress(MissingExtra):
        if "cron" in given:
            Cron(given["cron"], given.get("timezone", "UTC"))
        elif "timezone" in given:
            zone_named(given["timezone"])
    await db.schedules.define(name, given, who.name)
    return await _shown(db, name)


@router.delete(
    "/{name:path}", status_code=204, responses=answers(404), dependencies=[requires("operate")]
)
async def remove(name: Name, db: Db, who: Caller) -> Response:
    """Remove a schedule; what it made stays, and the record of its runs."""
    await _found(db, name, who)
    await db.schedules.remove(name, who.name)
    return Response(status_code=204)


async def _found(db: Database, name: str, who: Principal) -> dict[str, Any]:
    """The schedule, if what it makes is in reach of the token."""
    row = await db.schedules.get(name)
    check_template(who, row["template"])
    return row


async def _shown(db: Database, name: str) -> Response:
    return json_response(json_row(await db.schedules.get(name)))
