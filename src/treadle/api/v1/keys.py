"""`/v1/concurrency-keys`: how many tasks of a key run at once."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import SHARED, Access, requires
from treadle.api.bodies import Body, json_response, json_row
from treadle.api.paging import Listed, Page

router = APIRouter(prefix="/v1", tags=["concurrency keys"])
Read = Annotated[Access, requires("read", on=SHARED)]
Operate = Annotated[Access, requires("operate", on=SHARED)]
Key = Annotated[str, Path(min_length=1, max_length=200)]


class ConcurrencyLimit(Body):
    """How many tasks of a key may run at once; 0 holds all of them."""

    limit: int = Field(ge=0, le=2**31 - 1)


class ConcurrencyKey(BaseModel):
    """A concurrency key with its limit, held slots and waiting tasks."""

    key: str
    max: int
    held: int
    waiting: int
    oldest_waiting_at: datetime | None


@router.get("/concurrency-keys", response_model=Listed[ConcurrencyKey])
async def keys(access: Read, page: Page) -> Response:
    """List concurrency keys.

    Each has its limit, the slots in use and the waiting tasks.
    """
    rows = await access.db.keys.page(after=page.after(str), limit=page.more)
    return page.answer(rows, "key")


@router.put(
    "/concurrency-keys/{key:path}",
    response_model=ConcurrencyKey,
)
async def set_key(key: Key, slots: ConcurrencyLimit, access: Operate) -> Response:
    """Set the limit of a concurrency key.

    The limit is the number of its tasks that may run at once; running tasks continue.
    """
    await access.db.keys.set(key, slots.limit, access.caller.name)
    return json_response(json_row(await access.db.keys.get(key)))
