"""`/v1/triggers`: work that follows from events."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field, model_validator
from starlette.responses import Response

from treadle.api.access import (
    Caller,
    Db,
    Principal,
    check_everywhere,
    check_options,
    requires,
    tasks_of,
)
from treadle.api.bodies import Body, EventId, Object, Reason, Text
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.responses import json_response, json_row
from treadle.db.database import Database

router = APIRouter(prefix="/v1/triggers", tags=["triggers"])
Name = Annotated[str, Path(min_length=1, max_length=100)]
_NULLABLE = ("max_per_hour", "description")


class TriggerSettings(Body):
    """On which event what is made; what is not named stays as it is."""

    on: Text | None = Field(None, min_length=1, max_length=200, examples=["dag.completed"])
    filter: Object | None = Field(None, description="What the event must contain.")
    task: Object | None = Field(
        None, description='The task to make; {"$event": "data.url"} is a value of the event.'
    )
    dag: Object | None = Field(None, description="Or the DAG to make.")
    failure_rate: Object | None = Field(
        None, description="Instead of an event: type, window_s, limit."
    )
    max_depth: int | None = Field(None, ge=1, le=100)
    max_per_hour: int | None = Field(None, ge=1, le=1_000_000, description="null is no limit.")
    description: Text | None = Field(None, max_length=1000)


class Sample(Body):
    """An event that happened, or one that did not."""

    event_id: EventId | None = None
    sample: Object | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.event_id is None) == (self.sample is None):
            raise ValueError("give event_id or sample")
        return self


class Fire(Body):
    """The event on which it fires."""

    event_id: EventId


class Trigger(BaseModel):
    """A trigger: on which event it makes what, how often it did, and what went wrong."""

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
    """What a trigger made of an event."""

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
    """What a trigger would make of an event, or why it would not fire."""

    trigger: str
    fires: bool
    problem: str | None
    makes: Any
    paused: bool
    event: dict[str, Any]


class ManualRun(BaseModel):
    """What was made, or why nothing was."""

    id: UUID
    event_id: int
    task_id: UUID | None
    dag_id: UUID | None
    problem: str | None


@router.get("", response_model=Listed[Trigger], dependencies=[requires("read")])
async def list_triggers(db: Db, page: Page, who: Caller) -> Response:
    """Triggers by name."""
    check_everywhere(who)
    rows = await db.calls.page("trigger_status", key="name", after=page.after(str), limit=page.more)
    return page.answer(rows, "name")


@router.get(
    "/{name:path}/log",
    response_model=Listed[Firing],
    responses=answers(404),
    dependencies=[requires("read")],
)
async def log(name: Name, db: Db, page: Page, who: Caller) -> Response:
    """What a trigger made of events, the newest event first."""
    await _found(db, name, who)
    rows = await db.calls.page(
        "trigger_log",
        key="event_id",
        after=page.after(int),
        limit=page.more,
        newest=True,
        where={"trigger = {}": name},
    )
    return page.answer(rows, "event_id")


@router.post(
    "/{name:path}/test",
    response_model=Verdict,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def test(name: Name, asked: Sample, db: Db, who: Caller) -> Response:
    """Say what a trigger would make of an event; nothing is made."""
    await _found(db, name, who)
    return json_response(await db.triggers.test(name, asked.event_id, asked.sample))


@router.post(
    "/{name:path}/fire",
    response_model=ManualRun,
    responses=answers(404, 409),
    dependencies=[requires("operate")],
)
async def fire(name: Name, asked: Fire, db: Db, who: Caller, once: Once) -> Response:
    """Fire a trigger on an event where it failed, or before which it was not there."""
    await _found(db, name, who)

    async def effect(db: Database) -> Response:
        return json_response(asdict(await db.triggers.fire(name, asked.event_id, who.name)))

    return await once(effect)


@router.post(
    "/{name:path}/pause",
    response_model=Trigger,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def pause(name: Name, db: Db, who: Caller, why: Reason | None = None) -> Response:
    """Let a trigger rest; events that come meanwhile are passed by."""
    await _found(db, name, who)
    await db.triggers.pause(name, why.reason if why else None, who.name)
    return json_response(json_row(await db.triggers.get(name)))


@router.post(
    "/{name:path}/resume",
    response_model=Trigger,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def resume(name: Name, db: Db, who: Caller) -> Response:
    """Let a trigger fire again, on what happens from now on."""
    await _found(db, name, who)
    await db.triggers.resume(name, who.name)
    return json_response(json_row(await db.triggers.get(name)))


@router.get(
    "/{name:path}", response_model=Trigger, responses=answers(404), dependencies=[requires("read")]
)
async def show(name: Name, db: Db, who: Caller) -> Response:
    """One trigger with its template."""
    return json_response(json_row(await _found(db, name, who)))


@router.put(
    "/{name:path}",
    response_model=Trigger,
    responses=answers(404, 409),
    dependencies=[requires("operate")],
)
async def define(name: Name, settings: TriggerSettings, db: Db, who: Caller) -> Response:
    """Make a trigger, or change one; what is not named stays as it is."""
    check_everywhere(who)
    given = settings.named()
    named = {key: value for key, value in given.items() if value is not None or key in _NULLABLE}
    for task in tasks_of(named):
        check_options(who, task)
    await db.triggers.define(name, named, who.name)
    return json_response(json_row(await db.triggers.get(name)))


@router.delete(
    "/{name:path}", status_code=204, responses=answers(404), dependencies=[requires("operate")]
)
async def remove(name: Name, db: Db, who: Caller) -> Response:
    """Take a trigger away; what it has made stays."""
    await _found(db, name, who)
    await db.triggers.remove(name, who.name)
    return Response(status_code=204)


async def _found(db: Database, name: str, who: Principal) -> dict[str, Any]:
    """The trigger; a token for some queues has no business with what looks at all of them."""
    check_everywhere(who)
    return await db.triggers.get(name)
