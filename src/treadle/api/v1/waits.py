"""`/v1/waits`: waits of tasks, and their answers."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import LIST, WAIT, Access, requires
from treadle.api.bodies import Body, Name, Text, json_response, json_row
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.db.database import Database
from treadle.json import encode

router = APIRouter(prefix="/v1/waits", tags=["waits"])
List = Annotated[Access, requires("read", on=LIST)]
Read = Annotated[Access, requires("read", on=WAIT)]
Operate = Annotated[Access, requires("operate", on=WAIT)]


class Wait(BaseModel):
    """A wait of a task: for an answer, an approval or an event."""

    id: UUID
    task_id: UUID
    name: str
    kind: str
    status: str
    awaited: bool = Field(description="Whether the task is suspended for it.")
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
    """The answer of the caller."""

    value: Any
    note: Text | None = Field(None, max_length=2000)
    by: Name | None = Field(None, description="The person who answers; only with the scope admin.")


class Answered(BaseModel):
    """answered: decided. recorded: more approvers have to agree. already: a repeated answer."""

    id: UUID
    verdict: Literal["answered", "recorded", "already"]


@router.get("", response_model=Listed[Wait])
async def list_waits(
    access: List,
    page: Page,
    *,
    status: Annotated[
        Literal["open", "ended"],
        Query(description="Open waits, oldest first; or ended waits, newest first."),
    ] = "open",
    task_id: UUID | None = None,
) -> Response:
    """List waits.

    Tasks wait for answers, approvals and events. Open waits are listed, oldest first;
    `status=ended` lists the ended ones.
    """
    rows = await access.db.waits.page(
        access.view,
        ended=status == "ended",
        task_id=task_id,
        after=page.after(UUID),
        limit=page.more,
    )
    return page.answer(rows, "id")


@router.get(
    "/{wait_id}",
    response_model=Wait,
    responses=answers(404),
)
async def show(wait_id: UUID, access: Read) -> Response:
    """Get a wait.

    The response has the answers so far.
    """
    wait = await access.db.waits.get(wait_id)
    return json_response(json_row(wait))


@router.post(
    "/{wait_id}/answer",
    response_model=Answered,
    responses=answers(404, 409),
)
async def answer_wait(wait_id: UUID, asked: Answer, access: Operate, once: Once) -> Response:
    """Answer a question, or vote on an approval.

    The answer is in the name of the caller. Each person has one vote.
    """
    if asked.by is not None:
        # A caller must not vote for several people.
        access.caller.check_scope("admin")
    wait = await access.db.waits.get(wait_id)
    if asked.value is not False and _is_shared(wait):
        access.caller.check_shared()
    value = encode(asked.value, name="value")

    async def effect(db: Database) -> Response:
        verdict = await db.waits.answer(wait_id, value, asked.by or access.caller.name, asked.note)
        return json_response({"id": wait_id, "verdict": verdict})

    return await once(effect)


def _is_shared(wait: Mapping[str, Any]) -> bool:
    """Whether a number as the answer changes a budget, and not only the limit of the task."""
    return wait["kind"] == "budget" and bool(wait["context"]["limit"] == "budget")
