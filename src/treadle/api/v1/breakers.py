"""`/v1/breakers`: stop the tasks of a type after repeated failures."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import SHARED, Access, requires
from treadle.api.bodies import Body, Text, json_response, json_row
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers

router = APIRouter(prefix="/v1", tags=["breakers"])
Read = Annotated[Access, requires("read", on=SHARED)]
Operate = Annotated[Access, requires("operate", on=SHARED)]
Type = Annotated[str, Path(min_length=1, max_length=100)]


class Trip(Body):
    """Seconds until a probe, and the reason; the default is the setting of the type."""

    seconds: float | None = Field(None, ge=0.001, le=31_536_000)
    reason: Text | None = Field(None, max_length=500)


class Breaker(BaseModel):
    """A breaker: tasks of its type do not start while it is open."""

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


@router.get("/breakers", response_model=Listed[Breaker])
async def breakers(
    access: Read, page: Page, state: Literal["closed", "open", "half_open"] | None = None
) -> Response:
    """List breakers.

    They are sorted by type; `state` is a filter, for example for open ones.
    """
    rows = await access.db.breakers.page(state=state, after=page.after(str), limit=page.more)
    return page.answer(rows, "type")


@router.post(
    "/breakers/{type:path}/trip",
    response_model=Breaker,
    responses=answers(404),
)
async def trip(type: Type, access: Operate, asked: Trip | None = None) -> Response:
    """Open a breaker.

    No task of its type starts until a probe succeeds.
    """
    given = asked or Trip.model_validate({})
    await access.db.breakers.trip(type, given.seconds, given.reason, access.caller.name)
    return json_response(json_row(await access.db.breakers.get(type)))


@router.post(
    "/breakers/{type:path}/reset",
    response_model=Breaker,
    responses=answers(404),
)
async def reset(type: Type, access: Operate) -> Response:
    """Close a breaker.

    Its count of failures starts again.
    """
    await access.db.breakers.reset(type, access.caller.name)
    return json_response(json_row(await access.db.breakers.get(type)))


@router.get(
    "/breakers/{type:path}",
    response_model=Breaker,
    responses=answers(404),
)
async def breaker(type: Type, access: Read) -> Response:
    """Get a breaker.

    A breaker is identified by its type of tasks.
    """
    return json_response(json_row(await access.db.breakers.get(type)))
