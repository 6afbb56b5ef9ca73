"""`/v1/waits` and `/v1/events`: what tasks wait for, and how people and programs answer."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import (
    Caller,
    Db,
    check_everywhere,
    check_seen,
    check_touched,
    requires,
    within,
)
from treadle.api.bodies import Body, Id, Name, Text
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.responses import json_response, json_row
from treadle.db.database import Database
from treadle.json import encode

router = APIRouter(prefix="/v1", tags=["waits"])


class Wait(BaseModel):
    """What a task waits for, or waited for: an answer, an approval, or an event."""

    id: UUID
    task_id: UUID
    name: str
    kind: str
    status: str
    awaited: bool = Field(description="Whether the task gave up its claim for it.")
    question: str | None
    context: Any
    options: list[Any] | None
    answer_schema: Any = Field(alias="schema")
    approvers: int
    answers: list[Any]
    event: str | None
    event_key: str | None
    event_id: int | None
    expires_at: datetime | None
    on_expiry: str | None
    default_answer: Any
    escalated_at: datetime | None
    answer: Any
    answered_by: str | None
    note: str | None
    opened_at: datetime
    ended_at: datetime | None
    type: str
    title: str | None
    queue: str
    task_status: str
    task_name: str | None
    dag_id: UUID | None
    dag_name: str | None
    project_id: UUID | None


class Answer(Body):
    """The answer of a person, who is the caller."""

    value: Any
    note: Text | None = Field(None, max_length=2000)
    by: Name | None = Field(None, description="Who says so; only with the scope admin.")


class Answered(BaseModel):
    """answered: it is decided. recorded: more people have to say the same. already: a repeat."""

    id: UUID
    verdict: Literal["answered", "recorded", "already"]


class NewEvent(Body):
    """Something that happened; tasks that wait for it go on."""

    event: Name
    payload: Any = Field(default_factory=dict)
    key: Annotated[Text, Field(max_length=200)] = ""
    dedup_key: Name | None = Field(None, description="A repeat gets the id of the first.")
    task_id: Id | None = Field(None, description="The task that says so.")


class Emitted(BaseModel):
    """The event."""

    id: int


@router.get("/waits", response_model=Listed[Wait], dependencies=[requires("read")])
async def list_waits(
    db: Db,
    page: Page,
    who: Caller,
    *,
    status: Annotated[
        Literal["open", "ended"], Query(description="Open, oldest first; or ended, newest first.")
    ] = "open",
    task_id: UUID | None = None,
) -> Response:
    """Questions, approvals and events that tasks wait for."""
    ended = status == "ended"
    rows = await db.calls.page(
        "wait_details",
        key="id",
        after=page.after(UUID),
        limit=page.more,
        newest=ended,
        where={
            "(status <> 'open') = {}": ended,
            "task_id = {}": task_id,
            **within(who),
        },
    )
    return page.answer(rows, "id")


@router.get(
    "/waits/{wait_id}",
    response_model=Wait,
    responses=answers(404),
    dependencies=[requires("read")],
)
async def show(wait_id: UUID, db: Db, who: Caller) -> Response:
    """One wait with the answers so far."""
    wait = await db.waits.get(wait_id)
    await check_touched(who, db, wait["task_id"])
    return json_response(json_row(wait))


@router.post(
    "/waits/{wait_id}/answer",
    response_model=Answered,
    responses=answers(404, 409),
    dependencies=[requires("operate")],
)
async def answer_wait(wait_id: UUID, asked: Answer, db: Db, who: Caller, once: Once) -> Response:
    """Answer a question, or vote on an approval; a person has one vote."""
    if asked.by is not None:
        # One caller must not vote as many.
        who.check_scope("admin")
    wait = await db.waits.get(wait_id)
    await check_touched(who, db, wait["task_id"])
    if asked.value is not False and _is_shared(wait):
        check_everywhere(who)
    value = encode(asked.value, name="value")

    async def effect(db: Database) -> Response:
        verdict = await db.waits.answer(wait_id, value, asked.by or who.name, asked.note)
        return json_response({"id": wait_id, "verdict": verdict})

    return await once(effect)


@router.post(
    "/events",
    status_code=201,
    response_model=Emitted,
    responses=answers(404),
    dependencies=[requires("enqueue")],
)
async def emit(asked: NewEvent, db: Db, who: Caller, once: Once) -> Response:
    """Say that something happened; every task that waits for it goes on."""
    # Whoever waits for it hears of it, in every queue; `task_id` says only who says so.
    check_everywhere(who)
    if asked.task_id is not None:
        await check_seen(who, db, asked.task_id)
    payload = encode(asked.payload, name="payload")

    async def effect(db: Database) -> Response:
        made = await db.events.emit(
            asked.event,
            payload,
            key=asked.key,
            dedup_key=asked.dedup_key,
            actor=who.name,
            task_id=asked.task_id,
        )
        return json_response({"id": made}, 201)

    return await once(effect)


def _is_shared(wait: Mapping[str, Any]) -> bool:
    """Whether a number as the answer changes a budget, not just the limit of the task that asks."""
    return wait["kind"] == "budget" and bool(wait["context"]["limit"] == "budget")
