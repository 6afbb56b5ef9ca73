"""`/v1/events`: the log and the stream of events."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from treadle.api.access import LIST, WHOLE_QUEUES, Access, requires
from treadle.api.bodies import Name
from treadle.api.paging import Listed, Page
from treadle.api.stream import MEDIA_TYPE, EventStream
from treadle.models import Event

router = APIRouter(prefix="/v1/events", tags=["events"])
List = Annotated[Access, requires("read", on=LIST)]
# An event has neither the project nor the agent of its task.
Stream = Annotated[Access, requires("read", on=WHOLE_QUEUES)]
PLACE = r"^([0-9]{1,18}|[0-9]{1,19}\.[0-9]{1,18})$"
Kinds = Annotated[
    list[Name] | None,
    Query(max_length=50, description="Only events of this kind; may be repeated."),
]


class EventDetails(BaseModel):
    """An event."""

    id: int
    at: datetime
    kind: str
    task_id: UUID | None
    dag_id: UUID | None
    queue: str | None
    actor: str | None
    key: str | None
    data: Any


@router.get("", response_model=Listed[EventDetails])
async def list_events(
    access: List,
    page: Page,
    *,
    kind: Kinds = None,
    task_id: UUID | None = None,
    dag_id: UUID | None = None,
    key: Name | None = None,
) -> Response:
    """List events, newest first. Use the stream to receive every event."""
    rows = await access.db.events.page(
        access.view,
        kinds=kind,
        task_id=task_id,
        dag_id=dag_id,
        key=key,
        after=page.after(int),
        limit=page.more,
    )
    return page.answer(rows, "id")


@router.get(
    "/stream",
    status_code=200,
    response_class=EventStream,
    responses={
        200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}, "description": "Events."}
    },
)
async def stream(
    request: Request,
    access: Stream,
    kind: Annotated[
        list[Name] | None,
        Query(
            max_length=50, description="Only these kinds; task.* matches all that start with task."
        ),
    ] = None,
    after: Annotated[
        str | None,
        Query(pattern=PLACE, description="Start after this event; 0 is the oldest."),
    ] = None,
    last_event_id: Annotated[
        str | None,
        Header(alias="Last-Event-ID", pattern=PLACE, description="The last id that was received."),
    ] = None,
) -> Response:
    """Stream events as they happen (server-sent events), each once and in order.

    `id` is the id of the event, `data` the event as JSON. A client that reconnects with the last id
    continues after it. An event is sent when all transactions older than its own have ended.
    """
    kinds = _pattern(kind)

    def wanted(event: Event) -> bool:
        return kinds(event.kind) and access.caller.sees(event.queue)

    return EventStream(request.app.state.feed, last_event_id or after, wanted)


def _pattern(kinds: list[str] | None) -> Callable[[str], bool]:
    """A function that matches kinds; a * at the end matches any ending."""
    if not kinds:
        return lambda kind: True
    exact = {kind for kind in kinds if not kind.endswith("*")}
    beginnings = tuple(kind[:-1] for kind in kinds if kind.endswith("*"))
    return lambda kind: kind in exact or kind.startswith(beginnings)
