"""`/v1/types`: task types, their settings, and whether they are paused."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel
from starlette.responses import Response

from treadle import fields
from treadle.api.access import OPEN, SHARED, Access, requires
from treadle.api.bodies import (
    Body,
    Object,
    Reason,
    json_response,
    json_row,
    with_columns,
    with_fields,
)
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.db.database import Database

router = APIRouter(prefix="/v1/types", tags=["types"])
Read = Annotated[Access, requires("read", on=OPEN)]
Operate = Annotated[Access, requires("operate", on=SHARED)]
TypeName = Annotated[str, Path(min_length=1, max_length=100)]
SETTINGS = fields.fields_of(fields.TypeSettings)


@with_fields(SETTINGS)
class TypeSettings(Body):
    """Settings of a task type; absent fields keep their values."""


@with_columns(SETTINGS, nullable=True)
class Type(BaseModel):
    """A task type with its settings; null means the setting of the queue."""

    type: str
    state: str
    paused_at: datetime | None
    paused_by: str | None
    paused_reason: str | None
    retry: Object
    gates: list[str]
    breaker: Object


@router.get("", response_model=Listed[Type])
async def list_types(access: Read, page: Page) -> Response:
    """List types.

    Each has its settings, and whether its tasks can be claimed.
    """
    rows = await access.db.types.page(after=page.after(str), limit=page.more)
    return page.answer(rows, "type")


@router.post(
    "/{name:path}/pause",
    response_model=Type,
    responses=answers(404),
)
async def pause(name: TypeName, access: Operate, why: Reason | None = None) -> Response:
    """Pause a type.

    No task of it is claimed; running tasks continue.
    """
    await access.db.types.pause(name, why.reason if why else None, access.caller.name)
    return await _shown(access.db, name)


@router.post(
    "/{name:path}/resume",
    response_model=Type,
    responses=answers(404),
)
async def resume(name: TypeName, access: Operate) -> Response:
    """Resume a type.

    Its tasks can be claimed again.
    """
    await access.db.types.resume(name, access.caller.name)
    return await _shown(access.db, name)


@router.get("/{name:path}", response_model=Type, responses=answers(404))
async def show(name: TypeName, access: Read) -> Response:
    """Get a type.

    The response has its settings, and whether its tasks can be claimed.
    """
    return await _shown(access.db, name)


@router.put(
    "/{name:path}",
    response_model=Type,
    responses=answers(404),
)
async def define(name: TypeName, settings: TypeSettings, access: Operate) -> Response:
    """Create or change a type.

    Fields that the body leaves out keep their values.
    """
    await access.db.types.define(name, settings.named(), access.caller.name)
    return await _shown(access.db, name)


async def _shown(db: Database, name: str) -> Response:
    return json_response(json_row(await db.types.get(name)))
