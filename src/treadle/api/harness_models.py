"""The bodies of the harness protocol. Fields that are not known are ignored."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field

Status = Literal["pending", "claimed", "completed", "done", "failed"]


def _plain(text: str) -> str:
    if "\x00" in text:
        raise ValueError("a text has no NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a text is such that UTF-8 can write it") from None
    return text


Text = Annotated[str, AfterValidator(_plain)]
AgentUrl = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=200,
        description="The agent's own base URL.",
        examples=["http://localhost:9000"],
    ),
]
ClaimToken = Annotated[
    UUID, Field(description="Fresh and random for each task; the caller makes it and keeps it.")
]


class NewTask(BaseModel):
    """A task for an agent."""

    agent_url: AgentUrl
    payload: dict[str, Any] = Field(description="What the agent is to know; no credentials.")
    task_id: UUID | None = Field(
        None, description="Made when absent. With one, the request may be repeated."
    )


class StoredTask(BaseModel):
    """A task that is stored."""

    task_id: UUID
    status: Status
    created: bool = Field(description="Whether it is new; else it was stored before.")


class Next(BaseModel):
    """An agent asks for its next task."""

    agent_url: AgentUrl
    claim_token: ClaimToken


class Claimed(BaseModel):
    """A task that the agent has now, until `claim_until` or its next heartbeat."""

    task_id: UUID
    agent_url: str
    payload: dict[str, Any]
    retry_count: int = Field(description="How often a claim of it ran out or failed before.")
    max_retries: int
    created_at: datetime
    claim_until: datetime


class Beat(BaseModel):
    """An agent still works on its task."""

    claim_token: ClaimToken


class Beaten(BaseModel):
    """Until when the claim holds now."""

    task_id: UUID
    claim_until: datetime


class Decided(BaseModel):
    """What an agent decided."""

    claim_token: ClaimToken
    decision: dict[str, Any]


class Failure(BaseModel):
    """Why an agent could not do it."""

    claim_token: ClaimToken
    error: Text = Field(description="Of more than 20,000 characters the middle is left out.")
    retry: bool = Field(True, description="Whether it is worth another try.")


class Ended(BaseModel):
    """How a task stands after what its agent said."""

    task_id: UUID
    status: Status


class Hint(BaseModel):
    """A nudge: which task it is about; the harness looks for all of them."""

    task_id: Text | None = Field(None, max_length=200)


class Task(BaseModel):
    """A task of the harness, from its storing to its end."""

    task_id: UUID
    agent_url: str
    status: Status
    payload: dict[str, Any]
    created_at: datetime
    claimed_at: datetime | None
    completed_at: datetime | None
    result: dict[str, Any] | None = Field(description="The decision of the agent.")
    retry_count: int
    max_retries: int
    last_heartbeat: datetime | None
    last_error: str | None
    action: str | None = Field(
        description="What the harness did: executing, waiting, done, failed, interrupted, skipped."
    )
    action_tries: int | None
    action_error: str | None
