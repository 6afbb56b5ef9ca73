"""`/v1/events`: emit events, list them, and stream them."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import LIST, SHARED, WHOLE_QUEUES, Access, requires
from treadle.api.bodies import Body, Id, Name, Text, json_response
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.stream import MEDIA_TYPE, EventStream
from treadle.db.database import Database
from treadle.json import encode
from treadle.models import Event

router = APIRouter(prefix="/v1/events", tags=["events"])
List = Annotated[Access, requires("read", on=LIST)]
# Tasks of every queue may wait for an event.
Emit = Annotated[Access, requires("enqueue", on=SHARED)]
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


class NewEvent(Body):
    """An event; tasks that wait for it continue."""

    event: Name
    payload: Any = Field(default_factory=dict)
    key: Annotated[Text, Field(max_length=200)] = ""
    dedup_key: Name | None = Field(None, description="Reusing it returns the existing event.")
    task_id: Id | None = Field(None, description="The task that emits the event.")


class Emitted(BaseModel):
    """The emitted event."""

    id: int


@router.post(
    "",
    status_code=201,
    response_model=Emitted,
    responses=answers(404),
)
async def emit(asked: NewEvent, access: Emit, once: Once) -> Response:
    """Emit an event.

    Tasks that wait for it resume, and triggers fire.
    """
    if asked.task_id is not None:
        await access.check_row("task", asked.task_id)
        await access.db.tasks.check_exists(asked.task_id)
    payload = encode(asked.payload, name="payload")

    async def effect(db: Database) -> Response:
        made = await db.events.emit(
            asked.event,
            payload,
            key=asked.key,
            dedup_key=asked.dedup_key,
            actor=access.caller.name,
            task_id=asked.task_id,
        )
        return json_response({"id": made}, 201)

    return await once(effect)


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
    """List events.

    The newest come first. A client that must not miss any event uses the stream.
    """
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
    """Stream events.

    The response is a stream of server-sent events, each sent once: `id` is the id of the event,
    `data` the event as JSON. A client that reconnects with `Last-Event-ID` continues after it. An
    event is sent when all transactions older than its own have ended.
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
