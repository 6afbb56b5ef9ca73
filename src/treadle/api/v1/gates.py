"""`/v1/gates`, `/v1/breakers`, `/v1/concurrency-keys`: what keeps tasks from starting."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import Caller, Db, check_everywhere, requires
from treadle.api.bodies import Body, Text
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.responses import json_response, json_row
from treadle.db.database import Database
from treadle.errors import NotFound, UnknownGate, UnknownType

router = APIRouter(prefix="/v1", tags=["gates"])
Key = Annotated[str, Path(min_length=1, max_length=105)]
Type = Annotated[str, Path(min_length=1, max_length=100)]
SlotKey = Annotated[str, Path(min_length=1, max_length=200)]


class GateSettings(Body):
    """How much may pass in each period; a limit of null is none."""

    limit: float | None = Field(None, ge=1e-6, lt=1e12)
    per_s: float | None = Field(None, ge=0.1, le=2_678_400)
    unit: Literal["starts", "tokens", "usd"] | None = None


class Close(Body):
    """For how long, and why."""

    seconds: float = Field(3600, ge=0.001, le=315_360_000)
    reason: Text | None = Field(None, max_length=500)


class Trip(Body):
    """Until one task is tried, and why; as set for the type where nothing is said."""

    seconds: float | None = Field(None, ge=0.001, le=31_536_000)
    reason: Text | None = Field(None, max_length=500)


class ConcurrencyLimit(Body):
    """How many tasks of a key may be under way at once; 0 holds all back."""

    limit: int = Field(ge=0, le=2**31 - 1)


class Gate(BaseModel):
    """A gate: open or closed, until when and why, and what of its limit is used."""

    key: str
    state: Literal["open", "closed"]
    closed_until: datetime | None
    reason: str | None
    closed_by: str | None
    slowdowns: int
    unit: str | None
    limit: float | None
    per_s: float | None
    used: float | None
    types: list[str]


class Opened(BaseModel):
    """A gate that is open, and whether it was closed."""

    key: str
    was_closed: bool


class Breaker(BaseModel):
    """A breaker: a type is kept back while it is open."""

    type: str
    state: Literal["closed", "open", "half_open"]
    failures: int
    threshold: int
    opened_at: datetime | None
    opened_by: str | None
    probe_at: datetime | None
    probe_task: UUID | None
    last_failure_at: datetime | None
    last_error: str | None
    first_probe_s: float
    cooldown_s: float


class ConcurrencyKey(BaseModel):
    """A concurrency key: its limit, slots held, tasks that wait for one."""

    key: str
    max: int
    held: int
    waiting: int
    oldest_waiting_at: datetime | None


@router.get("/gates", response_model=Listed[Gate], dependencies=[requires("read")])
async def gates(db: Db, page: Page, who: Caller) -> Response:
    """Gates by key."""
    check_everywhere(who)
    rows = await db.calls.page("gate_status", key="key", after=page.after(str), limit=page.more)
    return page.answer(rows, "key")


@router.post(
    "/gates/{key:path}/close",
    response_model=Gate,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def close(key: Key, db: Db, who: Caller, asked: Close | None = None) -> Response:
    """Let no task behind a gate start for a while; what runs, runs on."""
    check_everywhere(who)
    given = asked or Close.model_validate({})
    await db.gates.close(key, given.seconds, given.reason, who.name)
    return await _gate(db, key)


@router.post(
    "/gates/{key:path}/open",
    response_model=Opened,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def open_gate(key: Key, db: Db, who: Caller) -> Response:
    """Let tasks behind a gate start again; a limit by rate stays in force."""
    check_everywhere(who)
    return json_response({"key": key, "was_closed": await db.gates.open(key, who.name)})


@router.get(
    "/gates/{key:path}",
    response_model=Gate,
    responses=answers(404),
    dependencies=[requires("read")],
)
async def gate(key: Key, db: Db, who: Caller) -> Response:
    """One gate."""
    check_everywhere(who)
    return await _gate(db, key)


@router.put(
    "/gates/{key:path}",
    response_model=Gate,
    dependencies=[requires("operate")],
)
async def define_gate(key: Key, settings: GateSettings, db: Db, who: Caller) -> Response:
    """Make a gate, or change its limit; what is not named stays as it is."""
    check_everywhere(who)
    await db.gates.define(key, settings.named(), who.name)
    return await _gate(db, key)


@router.get("/breakers", response_model=Listed[Breaker], dependencies=[requires("read")])
async def breakers(
    db: Db,
    page: Page,
    who: Caller,
    state: Literal["closed", "open", "half_open"] | None = None,
) -> Response:
    """Breakers by type."""
    check_everywhere(who)
    rows = await db.calls.page(
        "breaker_status",
        key="type",
        after=page.after(str),
        limit=page.more,
        where={"state = {}": state},
    )
    return page.answer(rows, "type")


@router.post(
    "/breakers/{type:path}/trip",
    response_model=Breaker,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def trip(type: Type, db: Db, who: Caller, asked: Trip | None = None) -> Response:
    """Let no task of a type start; after a while one is tried."""
    check_everywhere(who)
    given = asked or Trip.model_validate({})
    await db.breakers.trip(type, given.seconds, given.reason, who.name)
    return await _breaker(db, type)


@router.post(
    "/breakers/{type:path}/reset",
    response_model=Breaker,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def reset(type: Type, db: Db, who: Caller) -> Response:
    """Let tasks of a type start again and forget its failures."""
    check_everywhere(who)
    await db.breakers.reset(type, who.name)
    return await _breaker(db, type)


@router.get(
    "/breakers/{type:path}",
    response_model=Breaker,
    responses=answers(404),
    dependencies=[requires("read")],
)
async def breaker(type: Type, db: Db, who: Caller) -> Response:
    """The breaker of a type."""
    check_everywhere(who)
    return await _breaker(db, type)


@router.get(
    "/concurrency-keys", response_model=Listed[ConcurrencyKey], dependencies=[requires("read")]
)
async def keys(db: Db, page: Page, who: Caller) -> Response:
    """Concurrency keys with how many tasks hold a slot and how many wait for one."""
    check_everywhere(who)
    rows = await db.calls.page(
        "concurrency_status", key="key", after=page.after(str), limit=page.more
    )
    return page.answer(rows, "key")


@router.put(
    "/concurrency-keys/{key:path}",
    response_model=ConcurrencyKey,
    dependencies=[requires("operate")],
)
async def set_key(key: SlotKey, slots: ConcurrencyLimit, db: Db, who: Caller) -> Response:
    """Let so many tasks of a key be under way at once; what runs, runs on."""
    check_everywhere(who)
    await db.keys.set(key, slots.limit, who.name)
    rows = await db.calls.page("concurrency_status", key="key", limit=1, where={"key = {}": key})
    if not rows:
        raise NotFound(f"there is no concurrency key {key!r}", key=key)
    return json_response(json_row(rows[0]))


async def _gate(db: Database, key: str) -> Response:
    rows = await db.calls.page("gate_status", key="key", limit=1, where={"key = {}": key})
    if not rows:
        raise UnknownGate(f"there is no gate {key!r}", gate=key)
    return json_response(json_row(rows[0]))


async def _breaker(db: Database, type: str) -> Response:
    rows = await db.calls.page("breaker_status", key="type", limit=1, where={"type = {}": type})
    if not rows:
        raise UnknownType(f"there is no task type {type!r}", type=type)
    return json_response(json_row(rows[0]))
