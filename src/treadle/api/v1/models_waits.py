"""The bodies of `/v1/waits` and `/v1/events`."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from treadle.api.v1.fields import Body, Id, Name, Text


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
