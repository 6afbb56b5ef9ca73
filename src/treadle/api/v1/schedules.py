"""`/v1/schedules`: tasks and DAGs that are created at set times."""

from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import SCHEDULE, SCHEDULES, Access, requires, tasks_of
from treadle.api.bodies import Body, Object, Reason, Text, json_response, json_row
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.cron import Cron, zone_named
from treadle.db.database import Database
from treadle.errors import MissingExtra, QueueFull

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])
List = Annotated[Access, requires("read", on=SCHEDULES)]
Read = Annotated[Access, requires("read", on=SCHEDULE)]
Operate = Annotated[Access, requires("operate", on=SCHEDULE)]
Name = Annotated[str, Path(min_length=1, max_length=150)]


class ScheduleSettings(Body):
    """When to create a task or a DAG; absent fields keep their values."""

    cron: Text | None = Field(
        None, min_length=1, max_length=200, description="Five cron fields, or a word like @daily."
    )
    timezone: Text | None = Field(None, min_length=1, max_length=100, examples=["Europe/Berlin"])
    task: Object | None = Field(None, description='The task to create: {"type": "report"}.')
    dag: Object | None = Field(None, description="Or the DAG to create, as in POST /v1/dags.")
    jitter_s: int | None = Field(None, ge=0, le=86_400)
    catch_up: Literal["skip", "one", "all"] | None = None
    overlap: Literal["allow", "skip", "cancel_previous"] | None = None
    grace_s: int | None = Field(None, ge=1, le=86_400)


class Schedule(BaseModel):
    """A schedule with its next time and the result of the last run."""

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
    """A run of a schedule."""

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


class CreatedBySchedule(BaseModel):
    """What a manual run created; `created` is false if its key existed."""

    task_id: UUID | None
    dag_id: UUID | None
    created: bool


@router.get("", response_model=Listed[Schedule])
async def list_schedules(access: List, page: Page) -> Response:
    """List schedules.

    They are sorted by name; each has its next time and its last result.
    """
    rows = await access.db.schedules.page(access.view, after=page.after(str), limit=page.more)
    return page.answer(rows, "name")


@router.get(
    "/{name:path}/runs",
    response_model=Listed[ScheduleRun],
    responses=answers(404),
)
async def runs(name: Name, access: Read, page: Page) -> Response:
    """List the runs of a schedule.

    A run was created, skipped or missed. The newest come first, also after the schedule was
    removed.
    """
    after = page.after(int)
    rows = await access.db.schedules.run_page(name, after=after, limit=page.more)
    if not rows and after is None:
        await access.db.schedules.get(name)
    return page.answer(rows, "id")


@router.post(
    "/{name:path}/run",
    status_code=201,
    response_model=CreatedBySchedule,
    responses=answers(404, 409, 503),
)
async def run(name: Name, access: Operate, once: Once) -> Response:
    """Run a schedule now.

    Its task or DAG is created in addition to its times, also while it is paused. The response is
    503 when the queue is full.
    """

    async def effect(db: Database) -> Response:
        task_id, dag_id, created = await db.schedules.run(name, access.caller.name)
        return json_response({"task_id": task_id, "dag_id": dag_id, "created": created}, 201)

    try:
        return await once(effect)
    except QueueFull as error:
        await access.db.schedules.skip(name, str(error), access.caller.name)
        raise


@router.post(
    "/{name:path}/pause",
    response_model=Schedule,
    responses=answers(404),
)
async def pause(name: Name, access: Operate, why: Reason | None = None) -> Response:
    """Pause a schedule.

    It creates nothing until it is resumed.
    """
    await access.db.schedules.pause(name, why.reason if why else None, access.caller.name)
    return await _shown(access.db, name)


@router.post(
    "/{name:path}/resume",
    response_model=Schedule,
    responses=answers(404),
)
async def resume(name: Name, access: Operate) -> Response:
    """Resume a schedule.

    Its `catch_up` policy decides about missed times.
    """
    await access.db.schedules.resume(name, access.caller.name)
    return await _shown(access.db, name)


@router.get(
    "/{name:path}",
    response_model=Schedule,
    responses=answers(404),
)
async def show(name: Name, access: Read) -> Response:
    """Get a schedule.

    The response has its next time and its last result.
    """
    return json_response(json_row(await access.db.schedules.get(name)))


@router.put(
    "/{name:path}",
    response_model=Schedule,
    responses=answers(404, 409),
)
async def define(name: Name, settings: ScheduleSettings, access: Operate) -> Response:
    """Create or change a schedule.

    Fields that the body leaves out keep their values.
    """
    given = settings.model_dump(exclude_none=True)
    await access.new(tasks_of(given))
    # Without the cron extra the scheduler reports an invalid line.
    with suppress(MissingExtra):
        if "cron" in given:
            Cron(given["cron"], given.get("timezone", "UTC"))
        elif "timezone" in given:
            zone_named(given["timezone"])
    await access.db.schedules.define(name, given, access.caller.name)
    return await _shown(access.db, name)


@router.delete("/{name:path}", status_code=204, responses=answers(404))
async def remove(name: Name, access: Operate) -> Response:
    """Remove a schedule.

    Its tasks and the record of its runs stay.
    """
    await access.db.schedules.remove(name, access.caller.name)
    return Response(status_code=204)


async def _shown(db: Database, name: str) -> Response:
    return json_response(json_row(await db.schedules.get(name)))
