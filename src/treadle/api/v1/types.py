"""`/v1/types`: the kinds of tasks, their settings, and whether they are claimed."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import Caller, Db, check_everywhere, requires
from treadle.api.bodies import Name, Object, Reason, Text, Usd
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.responses import json_response, json_row
from treadle.api.v1.queues import TaskDefaults
from treadle.db.database import Database
from treadle.errors import UnknownType

router = APIRouter(prefix="/v1/types", tags=["types"])
TypeName = Annotated[str, Path(min_length=1, max_length=100)]


class TypeSettings(TaskDefaults):
    """What tasks of a type are like; what is not named stays as it is."""

    description: Text | None = Field(None, max_length=1000)
    gates: list[Name] | None = Field(None, max_length=20)
    breaker: Object | None = Field(None, description="threshold, first_probe_s, cooldown_s.")
    max_cost_usd: Usd | None = None
    max_tokens: int | None = Field(None, ge=0, le=2**53)
    on_budget: Literal["ask", "fail"] | None = None
    validation: list[Object] | None = Field(None, max_length=20)
    report: Literal["required", "optional"] | None = None
    models: list[Name] | None = Field(None, max_length=20)
    fallback_models: list[Name] | None = Field(None, max_length=20)


class Type(BaseModel):
    """A kind of task: its settings, and whether it is claimed; null leaves it to the queue."""

    type: str
    state: str
    paused_at: datetime | None
    paused_by: str | None
    paused_reason: str | None
    description: str | None
    priority: int | None
    max_attempts: int | None
    timeout_s: float | None
    ageing_rate: float | None
    retry: dict[str, Any]
    gates: list[str]
    breaker: dict[str, Any]
    max_cost_usd: float | None
    max_tokens: int | None
    on_budget: str | None
    validation: list[dict[str, Any]] | None
    report: str | None
    models: list[str] | None
    fallback_models: list[str] | None


@router.get("", response_model=Listed[Type], dependencies=[requires("read")])
async def list_types(db: Db, page: Page) -> Response:
    """Types with their settings."""
    rows = await db.calls.page("type_status", key="type", after=page.after(str), limit=page.more)
    return page.answer(rows, "type")


@router.post(
    "/{name:path}/pause",
    response_model=Type,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def pause(name: TypeName, db: Db, who: Caller, why: Reason | None = None) -> Response:
    """Let no more tasks of a type be claimed; what runs, runs on."""
    check_everywhere(who)
    await db.types.pause(name, why.reason if why else None, who.name)
    return await _shown(db, name)


@router.post(
    "/{name:path}/resume",
    response_model=Type,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def resume(name: TypeName, db: Db, who: Caller) -> Response:
    """Let a paused type go on."""
    check_everywhere(who)
    await db.types.resume(name, who.name)
    return await _shown(db, name)


@router.get(
    "/{name:path}", response_model=Type, responses=answers(404), dependencies=[requires("read")]
)
async def show(name: TypeName, db: Db) -> Response:
    """One type."""
    return await _shown(db, name)


@router.put(
    "/{name:path}",
    response_model=Type,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def define(name: TypeName, settings: TypeSettings, db: Db, who: Caller) -> Response:
    """Make a type, or change one; what is not named stays as it is."""
    check_everywhere(who)
    await db.types.define(name, settings.named(), who.name)
    return await _shown(db, name)


async def _shown(db: Database, name: str) -> Response:
    rows = await db.calls.page("type_status", key="type", limit=1, where={"type = {}": name})
    if not rows:
        raise UnknownType(f"there is no task type {name!r}", type=name)
    return json_response(json_row(rows[0]))
