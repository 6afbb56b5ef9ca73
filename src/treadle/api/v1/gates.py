"""`/v1/gates`: rate limits and closed gates keep tasks from starting."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import SHARED, Access, requires
from treadle.api.bodies import Body, Text, json_response, json_row
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers

router = APIRouter(prefix="/v1", tags=["gates"])
Read = Annotated[Access, requires("read", on=SHARED)]
Operate = Annotated[Access, requires("operate", on=SHARED)]
Key = Annotated[str, Path(min_length=1, max_length=105)]


class GateSettings(Body):
    """The limit of a gate in each period; null removes the limit."""

    limit: float | None = Field(None, ge=1e-6, lt=1e12)
    per_s: float | None = Field(None, ge=0.1, le=2_678_400)
    unit: Literal["starts", "tokens", "usd"] | None = None


class Close(Body):
    """How long a gate stays closed, and why."""

    seconds: float = Field(3600, ge=0.001, le=315_360_000)
    reason: Text | None = Field(None, max_length=500)


class Gate(BaseModel):
    """A gate with its state, its limit and how much of it is used."""

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
    """An open gate, and whether the call opened it."""

    key: str
    was_closed: bool


@router.get("/gates", response_model=Listed[Gate])
async def gates(access: Read, page: Page) -> Response:
    """List gates.

    They are sorted by key; each is open or closed, and has the used part of its limit.
    """
    rows = await access.db.gates.page(after=page.after(str), limit=page.more)
    return page.answer(rows, "key")


@router.post(
    "/gates/{key:path}/close",
    response_model=Gate,
    responses=answers(404),
)
async def close(key: Key, access: Operate, asked: Close | None = None) -> Response:
    """Close a gate.

    No task that needs it starts for `seconds`; running tasks continue.
    """
    given = asked or Close.model_validate({})
    await access.db.gates.close(key, given.seconds, given.reason, access.caller.name)
    return json_response(json_row(await access.db.gates.get(key)))


@router.post(
    "/gates/{key:path}/open",
    response_model=Opened,
    responses=answers(404),
)
async def open_gate(key: Key, access: Operate) -> Response:
    """Open a gate.

    Tasks start again. A rate limit stays in force.
    """
    return json_response(
        {"key": key, "was_closed": await access.db.gates.open(key, access.caller.name)}
    )


@router.get(
    "/gates/{key:path}",
    response_model=Gate,
    responses=answers(404),
)
async def gate(key: Key, access: Read) -> Response:
    """Get a gate.

    The response has its state and the used part of its limit.
    """
    return json_response(json_row(await access.db.gates.get(key)))


@router.put(
    "/gates/{key:path}",
    response_model=Gate,
)
async def define_gate(key: Key, settings: GateSettings, access: Operate) -> Response:
    """Create or change a gate.

    Fields that the body leaves out keep their values; `limit: null` removes the limit.
    """
    await access.db.gates.define(key, settings.named(), access.caller.name)
    return json_response(json_row(await access.db.gates.get(key)))
