"""The bodies of `/v1/claims`."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from treadle.api.v1.fields import Body, Id, Name, Object, Seconds, Text
from treadle.api.v1.models_tasks import BATCH, Queues
from treadle.api.v1.waiting import LONGEST_S

Json = Any
Remark = Annotated[Text, Field(max_length=2000)]


class ClaimTasks(Body):
    """What an agent would work on."""

    agent: Name = Field(description="Registered with PUT /v1/agents/{id}.")
    queues: Queues = Field(default_factory=lambda: ["default"])
    types: Annotated[list[Name], Field(max_length=1000)] | None = None
    limit: int = Field(1, ge=1, le=BATCH)
    wait_seconds: float = Field(
        0, ge=0, le=LONGEST_S, allow_inf_nan=False, description="Wait so long for a task."
    )
    start: bool = Field(
        True, description="Running at once; else claimed, to be started within the claim's time."
    )
    token: Id | None = Field(
        None, description="Your own: a repeat with it gets the same tasks, if the answer was lost."
    )


class Claimed(BaseModel):
    """A task for the agent, and the token that everything about it needs."""

    id: UUID
    token: UUID
    queue: str
    type: str
    spec: Object
    attempt: int
    max_attempts: int
    timeout_s: float | None
    priority: int
    lease_expires_at: datetime
    created_at: datetime
    deadline_at: datetime | None
    title: str | None
    tags: list[str] | None
    parent_id: UUID | None
    dag_id: UUID | None
    project_id: UUID | None
    idempotency_key: str | None
    previous: list[Object] | None = Field(description="What earlier attempts came to.")
    name: str | None
    steps: list[Object] | None = Field(description="What was done already.")
    problem: str | None = Field(description="Why inputs could not be filled in.")
    max_cost_usd: float | None
    cost_usd: float
    gates: list[str]
    models: list[str]
    validation: list[Object] | None
    report: bool = Field(description="Whether a decision report is required.")


class Claims(BaseModel):
    """The best first."""

    claims: list[Claimed]


class Token(Body):
    """The token that came with the claim."""

    token: Id


class Heartbeat(Token):
    """The agent lives, and how far it has come."""

    progress: Json = None


class Beat(BaseModel):
    """Whether to go on: `cancel_requested` says to stop and drop the result."""

    id: UUID
    verdict: Literal["ok", "cancelled"]
    cancel_requested: bool


class BeatOfMany(BaseModel):
    """`lost`: another claim took over, or it ran out."""

    id: UUID
    verdict: Literal["ok", "cancelled", "lost"]
    cancel_requested: bool


class Named(Token):
    """A claim, among many."""

    id: Id


class HeartbeatNamed(Named):
    """A claim that goes on."""

    progress: Json = None


class HeartbeatMany(Body):
    """Claims that go on."""

    claims: list[HeartbeatNamed] = Field(min_length=1, max_length=BATCH)


class Beats(BaseModel):
    """One for each claim of the request, in its order."""

    items: list[BeatOfMany]


class Complete(Token):
    """The result."""

    output: Json = None
    report: Object | None = Field(None, description="The decision report.")


class CompleteNamed(Named):
    """The result of one task among many."""

    output: Json = None
    report: Object | None = None


class CompleteMany(Body):
    """Results of many tasks, each judged by itself."""

    claims: list[CompleteNamed] = Field(min_length=1, max_length=BATCH)


class Ended(BaseModel):
    """`already` is a repeat."""

    id: UUID
    verdict: str


class EndedMany(BaseModel):
    """completed, already, stale (superseded), or report_required; in the order of the request."""

    items: list[Ended]


class Fail(Token):
    """Why the attempt ends without a result."""

    error: Text = Field("", max_length=20_000)
    failure_class: Name | None = Field(None, description="Found in the error where it is not said.")
    action: Literal["retry", "fail", "cancel"] | None = Field(
        None, description="Instead of what the retry policy says."
    )
    retry_after_s: Seconds | None = None
    key: Name | None = Field(None, description="The gate that a rate limit closes.")
    feedback: Annotated[list[Remark], Field(max_length=100)] = Field(default_factory=list)


class FailedNow(BaseModel):
    """retrying, ready, dead_lettered, cancelled, or already."""

    id: UUID
    verdict: str
    retry_at: datetime | None
    failure_class: str | None
