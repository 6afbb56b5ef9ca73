"""The work API: a dispatcher assigns work items to agents, and agents report their progress."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StrictInt
from starlette.responses import Response

from treadle.api.access import WORK, WORK_ITEM, Access, Config, requires
from treadle.api.bodies import Text, Visible, json_response, json_row, json_rows
from treadle.api.idempotency import Once
from treadle.api.paging import PAGED, WORK_PAGE, Cursor, Limit, work_page
from treadle.api.problems import answers
from treadle.db.database import Database
from treadle.errors import InvalidArgument

Status = Literal[
    "queued", "dispatched", "in_progress", "blocked", "completed", "failed", "cancelled"
]
Outcome = Literal["success", "failed", "cancelled"]
WORD = r"^[A-Za-z0-9_.:/-]{1,100}$"
router = APIRouter(tags=["work API"])
List = Annotated[Access, requires("read", on=WORK)]
Add = Annotated[Access, requires("enqueue", on=WORK)]
Read = Annotated[Access, requires("read", on=WORK_ITEM)]
Work = Annotated[Access, requires("work", on=WORK_ITEM)]
Cancel = Annotated[Access, requires("enqueue", on=WORK_ITEM)]

# The statuses that a dispatcher sets; the agent of the item sets the others.
DISPATCHERS = ("dispatched", "cancelled")


def _word(text: str) -> str:
    if not re.fullmatch(WORD, text):
        raise ValueError("must be 1 to 100 letters, digits and _ . : / -, without spaces")
    return text


def _utc(moment: datetime) -> datetime:
    """Convert a time to UTC; one without a time zone is taken as UTC."""
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time is out of range") from None


def _written(value: object) -> object:
    """Reject numbers, which pydantic would read as seconds since 1970.

    In a query a plus sign that was not encoded has become a space.
    """
    if not isinstance(value, str) or "-" not in value[1:]:
        raise ValueError("must be ISO 8601 with dashes and colons: 2026-01-31T12:00:00Z")
    return re.sub(r"(T.*) (\d\d:?\d\d)$", r"\1+\2", value)


def _given(value: object) -> object:
    return None if value == "" else value


def unless_empty(kind: Any) -> BeforeValidator:
    """Accept an empty string for null: some clients send it."""
    return BeforeValidator(_given, json_schema_input_type=kind | Literal[""] | None)


Name = Annotated[Visible, Field(max_length=200)]
Agent = Annotated[Visible, Field(max_length=200, examples=["steve-w"])]
Moment = Annotated[datetime, AfterValidator(_utc)]
Since = Annotated[Moment, BeforeValidator(_written)]


class NewWork(BaseModel):
    """A new work item; it is queued until it is dispatched."""

    type: Annotated[str, AfterValidator(_word)] = Field(
        json_schema_extra={"pattern": WORD}, examples=["code_review"]
    )
    description: Visible = Field(max_length=20_000)
    payload: dict[str, Any] | None = None
    priority: StrictInt | None = Field(3, ge=1, le=5, description="1 is the highest.")
    assigned_agent: Annotated[Agent | None, unless_empty(Agent)] = Field(
        None,
        description="The agent that gets the item when it is dispatched; need not be registered.",
    )
    created_by: Annotated[Name | None, unless_empty(Name)] = None
    project_id: Annotated[UUID | None, unless_empty(UUID)] = None


class WorkChange(BaseModel):
    """Changes; fields that are absent, null or empty (except notes) keep their values."""

    status: Annotated[Status | None, unless_empty(Status)] = None
    outcome: Annotated[Outcome | None, unless_empty(Outcome)] = Field(
        None, description="With completed, failed or cancelled."
    )
    notes: Text | None = Field(None, max_length=20_000)
    assigned_agent: Annotated[Agent | None, unless_empty(Agent)] = None
    unless_updated_since: Annotated[Moment | None, unless_empty(Moment)] = Field(
        None, description="The updated_at that was read; 409 if the item has changed since."
    )


class WorkItem(BaseModel):
    """A work item."""

    id: UUID
    project_id: UUID | None
    type: str
    description: str
    payload: dict[str, Any]
    priority: int
    status: Status
    assigned_agent: str | None
    created_by: str | None
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None = Field(description="Set once it has ended.")
    outcome: Outcome | None = Field(description="Set once it has ended.")
    notes: str | None


class Dispatch(BaseModel):
    """One assignment of a work item to an agent, and its outcome."""

    id: UUID
    work_item_id: UUID
    dispatched_at: datetime
    agent: str | None
    completed_at: datetime | None
    outcome: Outcome | None


class Change(BaseModel):
    """A change of status of a work item."""

    id: UUID
    at: datetime
    actor: str
    from_status: Status | None
    to_status: Status
    agent: str | None
    note: str | None


class WorkHistory(WorkItem):
    """A work item with its history."""

    dispatch_history: list[Dispatch]
    changes: list[Change]


@router.get(
    "/work",
    response_model=list[WorkItem],
    responses={**PAGED, **answers(404)},
)
async def list_work(
    request: Request,
    access: List,
    status: Annotated[Status | None, unless_empty(Status)] = None,
    agent: Annotated[Agent | None, unless_empty(Agent)] = None,
    project_id: Annotated[UUID | None, unless_empty(UUID)] = None,
    since: Annotated[
        Since | None,
        unless_empty(Since),
        Query(description="Created after this time; for final statuses, ended after it."),
    ] = None,
    limit: Limit = WORK_PAGE,
    cursor: Cursor = None,
) -> Response:
    """List work items.

    They are sorted by priority, then age; with `since` by age. The body is an array, in pages. A
    page with more than 64 MiB of payloads ends before its limit.
    """
    rows = await access.db.work.list(
        status=status,
        agent=access.own_agent(agent),
        project_id=access.own_project(project_id),
        since=since,
        after=cursor,
        limit=limit,
    )
    more = bool(rows) and rows[-1]["more"]
    return work_page(request, [_shown(row) for row in rows], limit, more=more)


@router.post(
    "/work",
    status_code=201,
    response_model=WorkItem,
    responses=answers(404, 409),
)
async def add_work(item: NewWork, access: Add, once: Once) -> Response:
    """Create a work item.

    It is queued, even with an `assigned_agent`, until it is dispatched.
    """
    access.caller.check_author(item.created_by)
    project_id = access.own_project(item.project_id)

    async def effect(db: Database) -> Response:
        made = await db.work.add(
            item.type,
            item.description,
            payload=item.payload or {},
            priority=3 if item.priority is None else item.priority,
            agent=item.assigned_agent,
            project_id=project_id,
            created_by=item.created_by,
            actor=access.caller.name,
        )
        row = await db.work.get(made)
        return json_response(json_row(_shown(row)), 201, {"Location": f"/work/{made}"})

    return await once(effect)


@router.get(
    "/work/{item_id}",
    response_model=WorkHistory,
    responses=answers(404),
)
async def get_work(item_id: UUID, access: Read) -> Response:
    """Get a work item.

    The response has its dispatch history and its newest 200 changes.
    """
    item = await access.db.work.get(item_id)
    history = {
        "dispatch_history": json_rows(await access.db.work.dispatches(item_id)),
        "changes": json_rows(await access.db.work.changes(item_id)),
    }
    return json_response({**json_row(_shown(item)), **history})


@router.patch(
    "/work/{item_id}",
    response_model=WorkItem,
    responses=answers(404, 409),
)
async def update_work(
    item_id: UUID, change: WorkChange, access: Work, config: Config, once: Once
) -> Response:
    """Change a work item.

    A change that its state does not allow is 409, which lists what is allowed.
    """
    changes = change.model_dump(mode="json", exclude_none=True)
    if not changes.keys() - {"unless_updated_since"}:
        raise InvalidArgument(
            "the request changes nothing",
            hint="Send status, outcome, notes or assigned_agent; other fields cannot be changed.",
            argument="body",
        )
    if change.status in DISPATCHERS:
        access.caller.check_scope("enqueue")
    if change.assigned_agent is not None:
        access.caller.check_agent(change.assigned_agent)
    if access.caller.agent is not None:
        access.caller.check_agent((await access.db.work.get(item_id))["assigned_agent"])

    async def effect(db: Database) -> Response:
        row = await db.work.update(
            item_id,
            changes,
            actor=access.caller.name,
            as_agent=access.caller.agent,
            stale_s=config.work_stale_s,
        )
        return json_response(json_row(_shown(row)))

    return await once(effect)


@router.delete(
    "/work/{item_id}",
    status_code=204,
    response_class=Response,
    responses=answers(404, 409),
)
async def cancel_work(item_id: UUID, access: Cancel, config: Config) -> Response:
    """Cancel a work item.

    The item is queued or dispatched. Repeating the request changes nothing.
    """
    access.caller.check_agent((await access.db.work.get(item_id))["assigned_agent"])
    await access.db.work.update(
        item_id,
        {"status": "cancelled"},
        actor=access.caller.name,
        as_agent=access.caller.agent,
        stale_s=config.work_stale_s,
    )
    return Response(status_code=204)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the work API."""
    return {name: value for name, value in row.items() if name in WorkItem.model_fields}
