"""`/v1/triggers`: tasks and DAGs that are created by events."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field, model_validator
from starlette.responses import Response

from treadle.api.access import SHARED, Access, requires, tasks_of
from treadle.api.bodies import Body, EventId, Object, Reason, Text, json_response, json_row
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.db.database import Database

router = APIRouter(prefix="/v1/triggers", tags=["triggers"])
Read = Annotated[Access, requires("read", on=SHARED)]
Operate = Annotated[Access, requires("operate", on=SHARED)]
Name = Annotated[str, Path(min_length=1, max_length=100)]
_NULLABLE = ("max_per_hour", "description")


class TriggerSettings(Body):
    """Which event creates what; absent fields keep their values."""

    on: Text | None = Field(None, min_length=1, max_length=200, examples=["dag.completed"])
    filter: Object | None = Field(None, description="What the event must contain.")
    task: Object | None = Field(
        None, description='The task to create; {"$event": "data.url"} is a value of the event.'
    )
    dag: Object | None = Field(None, description="Or the DAG to create.")
    failure_rate: Object | None = Field(
        None, description="Instead of an event: type, window_s, limit."
    )
    max_depth: int | None = Field(None, ge=1, le=100)
    max_per_hour: int | None = Field(None, ge=1, le=1_000_000, description="null means no limit.")
    description: Text | None = Field(None, max_length=1000)


class Sample(Body):
    """A stored event, or a sample of one."""

    event_id: EventId | None = None
    sample: Object | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.event_id is None) == (self.sample is None):
            raise ValueError("give event_id or sample")
        return self


class Fire(Body):
    """The event to fire on."""

    event_id: EventId


class Trigger(BaseModel):
    """A trigger with its event, its template, counts and the last error."""

    id: UUID
    name: str
    state: Literal["active", "paused"]
    on_event: str
    filter: dict[str, Any]
    template: dict[str, Any]
    failure_rate: dict[str, Any] | None
    description: str | None
    max_depth: int
    max_per_hour: int | None
    fired: int
    refused: int
    failed: int
    fired_at: datetime | None
    last_task: UUID | None
    last_dag: UUID | None
    last_error: str | None
    error_at: datetime | None
    passed_at: datetime | None
    paused_at: datetime | None
    paused_by: str | None
    paused_reason: str | None
    created_by: str
    created_at: datetime
    updated_at: datetime


class Firing(BaseModel):
    """The result of a trigger for one event."""

    trigger: str
    event_id: int
    kind: str | None
    fired_at: datetime
    verdict: str
    task_id: UUID | None
    dag_id: UUID | None
    depth: int
    problem: str | None


class Verdict(BaseModel):
    """What a trigger would create for an event, or why it would not fire."""

    trigger: str
    fires: bool
    problem: str | None
    makes: Any
    paused: bool
    event: dict[str, Any]


class ManualRun(BaseModel):
    """What was created, or why nothing was."""

    id: UUID
    event_id: int
    task_id: UUID | None
    dag_id: UUID | None
    problem: str | None


@router.get("", response_model=Listed[Trigger])
async def list_triggers(access: Read, page: Page) -> Response:
    """List triggers.

    They are sorted by name; each has how often it fired.
    """
    rows = await access.db.triggers.page(after=page.after(str), limit=page.more)
    return page.answer(rows, "name")


@router.get(
    "/{name:path}/log",
    response_model=Listed[Firing],
    responses=answers(404),
)
async def log(name: Name, access: Read, page: Page) -> Response:
    """List what a trigger created.

    The newest event comes first.
    """
    await access.db.triggers.get(name)
    rows = await access.db.triggers.log_page(name, after=page.after(int), limit=page.more)
    return page.answer(rows, "event_id")


@router.post(
    "/{name:path}/test",
    response_model=Verdict,
    responses=answers(404),
)
async def test(name: Name, asked: Sample, access: Operate) -> Response:
    """Test a trigger.

    The response has what it would create for a stored event (`event_id`) or a `sample`; nothing is
    created.
    """
    return json_response(await access.db.triggers.test(name, asked.event_id, asked.sample))


@router.post(
    "/{name:path}/fire",
    response_model=ManualRun,
    responses=answers(404, 409),
)
async def fire(name: Name, asked: Fire, access: Operate, once: Once) -> Response:
    """Fire a trigger.

    The event is one on which it failed, or that is older than the trigger.
    """

    async def effect(db: Database) -> Response:
        return json_response(
            asdict(await db.triggers.fire(name, asked.event_id, access.caller.name))
        )

    return await once(effect)


@router.post(
    "/{name:path}/pause",
    response_model=Trigger,
    responses=answers(404),
)
async def pause(name: Name, access: Operate, why: Reason | None = None) -> Response:
    """Pause a trigger.

    Events that happen meanwhile are skipped.
    """
    await access.db.triggers.pause(name, why.reason if why else None, access.caller.name)
    return json_response(json_row(await access.db.triggers.get(name)))


@router.post(
    "/{name:path}/resume",
    response_model=Trigger,
    responses=answers(404),
)
async def resume(name: Name, access: Operate) -> Response:
    """Resume a trigger.

    It fires on events from now on.
    """
    await access.db.triggers.resume(name, access.caller.name)
    return json_response(json_row(await access.db.triggers.get(name)))


@router.get("/{name:path}", response_model=Trigger, responses=answers(404))
async def show(name: Name, access: Read) -> Response:
    """Get a trigger.

    The response has its template.
    """
    return json_response(json_row(await access.db.triggers.get(name)))


@router.put(
    "/{name:path}",
    response_model=Trigger,
    responses=answers(404, 409),
)
async def define(name: Name, settings: TriggerSettings, access: Operate) -> Response:
    """Create or change a trigger.

    Fields that the body leaves out keep their values.
    """
    given = settings.named()
    named = {key: value for key, value in given.items() if value is not None or key in _NULLABLE}
    await access.new(tasks_of(named))
    await access.db.triggers.define(name, named, access.caller.name)
    return json_response(json_row(await access.db.triggers.get(name)))


@router.delete("/{name:path}", status_code=204, responses=answers(404))
async def remove(name: Name, access: Operate) -> Response:
    """Remove a trigger.

    What it created stays.
    """
    await access.db.triggers.remove(name, access.caller.name)
    return Response(status_code=204)
