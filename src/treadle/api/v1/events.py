"""`/v1/events`: what happened, and what happens."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from treadle.api.access import (
    OF_AGENT,
    Caller,
    Db,
    check_whole_queues,
    requires,
    whole_dags,
    within,
)
from treadle.api.bodies import Name
from treadle.api.paging import Listed, Page
from treadle.api.stream import MEDIA_TYPE, EventStream
from treadle.models import Event

router = APIRouter(prefix="/v1/events", tags=["events"])
PLACE = r"^([0-9]{1,18}|[0-9]{1,19}\.[0-9]{1,18})$"
DAG_IS_THERE = """
    exists (select from treadle.dag_tasks as nodes where nodes.dag_id = event_log.dag_id)
"""
Kinds = Annotated[
    list[Name] | None,
    Query(max_length=50, description="Only of this kind; may be repeated."),
]


class EventDetails(BaseModel):
    """Something that happened."""

    id: int
    at: datetime
    kind: str
    task_id: UUID | None
    dag_id: UUID | None
    queue: str | None
    actor: str | None
    key: str | None
    data: Any


@router.get("", response_model=Listed[EventDetails], dependencies=[requires("read")])
async def list_events(
    db: Db,
    page: Page,
    who: Caller,
    *,
    kind: Kinds = None,
    task_id: UUID | None = None,
    dag_id: UUID | None = None,
    key: Name | None = None,
) -> Response:
    """Events, the newest first. Who must miss none reads the stream."""
    # One that is about no task is its DAG's.
    dags = {
        f"(task_id is not null or {condition})": value
        for condition, value in whole_dags(who, "event_log.dag_id").items()
    }
    reach = within(who)
    if who.agent is not None:
        # Of one about neither a task nor a DAG that is there nobody can say whose it is.
        reach[f"({OF_AGENT} or (task_id is null and {DAG_IS_THERE}))"] = reach.pop(OF_AGENT)
    rows = await db.calls.page(
        "event_log",
        key="id",
        after=page.after(int),
        limit=page.more,
        newest=True,
        where={
            "kind = any({})": kind or None,
            "task_id = {}": task_id,
            "dag_id = {}": dag_id,
            "key = {}": key,
            **reach,
            **dags,
        },
    )
    return page.answer(rows, "id")


@router.get(
    "/stream",
    status_code=200,
    response_class=EventStream,
    responses={
        200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}, "description": "Events."}
    },
    dependencies=[requires("read")],
)
async def stream(
    request: Request,
    who: Caller,
    kind: Annotated[
        list[Name] | None,
        Query(max_length=50, description="Only these kinds; task.* is all that begin so."),
    ] = None,
    after: Annotated[
        str | None,
        Query(pattern=PLACE, description="Go on after this event; 0 is the beginning."),
    ] = None,
    last_event_id: Annotated[
        str | None,
        Header(alias="Last-Event-ID", pattern=PLACE, description="The last id that was received."),
    ] = None,
) -> Response:
    """Events as they happen (server-sent events), each once and none left out, for ever.

    `id` is that of the event, `data` the event as JSON. Whoever comes back with the last id goes on
    after it. An event comes when all transactions older than its own have ended.
    """
    # An event says neither its project nor whom its task is for.
    check_whole_queues(who)
    kinds = _pattern(kind)

    def wanted(event: Event) -> bool:
        return kinds(event.kind) and who.sees(event.queue)

    return EventStream(request.app.state.feed, last_event_id or after, wanted)


def _pattern(kinds: list[str] | None) -> Callable[[str], bool]:
    """Whether a kind is meant; a * stands for any ending."""
    if not kinds:
        return lambda kind: True
    exact = {kind for kind in kinds if not kind.endswith("*")}
    beginnings = tuple(kind[:-1] for kind in kinds if kind.endswith("*"))
    return lambda kind: kind in exact or kind.startswith(beginnings)
