"""The bodies of `/v1/tasks`."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from treadle.api.v1.fields import INT64, Body, Id, Moment, Name, Object, Seconds, Text, Usd

BATCH = 1000
Status = Literal[
    "created",
    "pending",
    "ready",
    "claimed",
    "running",
    "validating",
    "blocked",
    "retrying",
    "completed",
    "dead_lettered",
    "cancelled",
]
Tier = Literal["critical", "high", "normal", "low", "background"]
Names = Annotated[list[Name], Field(max_length=50)]
Queues = Annotated[list[Name], Field(min_length=1, max_length=100)]
Documents = Annotated[list[Object], Field(max_length=50)]


class NewTask(Body):
    """A task to put on a queue; what is left out comes from its type, then its queue."""

    queue: Name = "default"
    type: Name
    spec: Object = Field(default_factory=dict, description="What the handler gets.")
    idempotency_key: Name | None = Field(
        None, description="One task for a key; a repeat gets that task and `created` is false."
    )
    dedupe: bool | None = Field(None, description="Make the key from the content.")
    priority: int | None = Field(None, ge=0, le=100, description="0 is the most urgent.")
    urgency: int | None = Field(None, ge=0, le=100)
    tier: Tier | None = None
    run_at: Moment | None = None
    delay_s: Seconds | None = None
    hold: bool | None = Field(None, description="Wait until it is released.")
    deadline_at: Moment | None = None
    timeout_s: Seconds | None = None
    max_attempts: int | None = Field(None, ge=1, le=1000)
    ageing_rate: float | None = Field(None, ge=0, le=1000)
    retry: Object | None = None
    capabilities: Names | None = None
    assigned_agent: Name | None = None
    consumer: Name | None = None
    title: Text | None = Field(None, max_length=1000)
    tags: Names | None = None
    created_by: Name | None = None
    source: Name | None = None
    source_job: Name | None = None
    external_ref: Text | None = Field(None, max_length=2000)
    notes: Text | None = Field(None, max_length=20_000)
    parent_id: Id | None = None
    project_id: Id | None = None
    project: Name | None = None
    max_cost_usd: Usd | None = None
    max_tokens: int | None = Field(None, ge=0, le=INT64)
    on_budget: Literal["ask", "fail"] | None = None
    validation: Documents | None = None
    report: Literal["required", "optional"] | None = None
    models: Names | None = None
    fallback_models: Names | None = None
    concurrency_key: Name | None = None
    concurrency_limit: int | None = Field(None, ge=1, le=1_000_000)
    gates: Names | None = None

    def options(self, by: str) -> dict[str, Any]:
        """What was said besides queue, type, spec and key; `by` made it unless it says who."""
        given = self.model_dump(exclude_unset=True, exclude_none=True, exclude=_APART)
        given.setdefault("created_by", by)
        return given


_APART = {"queue", "type", "spec", "idempotency_key"}


class NewTasks(Body):
    """Tasks that are stored together, or not at all."""

    tasks: list[NewTask] = Field(min_length=1, max_length=BATCH)


class Made(BaseModel):
    """The task; `created` is false when one with its key was there."""

    id: UUID
    created: bool


class MadeMany(BaseModel):
    """One for each task of the request, in its order."""

    items: list[Made]


class TaskRow(BaseModel):
    """A task as lists show it."""

    id: UUID
    queue: str
    type: str
    name: str | None
    title: str | None
    status: Status
    priority: int
    effective_priority: float
    attempt: int
    max_attempts: int
    agent_id: str | None
    assigned_agent: str | None
    progress: Any
    failure_class: str | None
    failure_reason: str | None
    tags: list[str] | None
    dag_id: UUID | None
    project_id: UUID | None
    parent_id: UUID | None
    idempotency_key: str | None
    run_at: datetime | None
    retry_at: datetime | None
    deadline_at: datetime | None
    created_at: datetime
    created_by: str | None
    started_at: datetime | None
    completed_at: datetime | None
    cost_usd: float


class WholeTask(TaskRow):
    """A task with everything about it."""

    ageing_rate: float
    critical_path: int | None
    spec: Object
    inputs: Object | None
    output: Any
    output_ref: str | None
    artifacts: Any
    validation: list[Object] | None
    report: Literal["required", "optional"]
    decision_report: Any
    outcome: str | None
    poison_pill: bool
    models: list[str] | None
    fallback_models: list[str] | None
    attempt_notes: list[Object] | None
    rate_limits: int
    retry: Object
    timeout_s: float | None
    claimed_at: datetime | None
    heartbeat_at: datetime | None
    lease_until: datetime | None
    capabilities: list[str]
    gates: list[str]
    concurrency_key: str | None
    slot: str | None
    depends_on: list[UUID]
    blocked_by: list[UUID]
    forked_from: UUID | None
    consumer: str | None
    consumed_at: datetime | None
    external_ref: str | None
    source: str | None
    source_job: str | None
    notes: str | None
    completed_by: str | None
    max_cost_usd: float | None
    reserved_usd: float
    max_tokens: int | None
    on_budget: str | None
    budget_id: int | None
    input_tokens: int
    output_tokens: int


class Because(BaseModel):
    """A reason why a task is not running now."""

    sentence: str
    reason: str
    until: datetime | None
    detail: Any


class Reasons(BaseModel):
    """Every reason that holds, the weightiest first."""

    items: list[Because]


class Attempt(BaseModel):
    """One try at a task: who had it, and how it ended."""

    task_id: UUID
    attempt: int
    agent_id: str | None
    claimed_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    outcome: str | None
    failure_class: str | None = Field(alias="class")
    reason: str | None
    error: str | None
    cost_usd: float | None
    model: str | None
    feedback: Any


class Attempts(BaseModel):
    """The oldest first."""

    items: list[Attempt]


class StepRow(BaseModel):
    """What a task has done and need not do again."""

    seq: int
    name: str
    kind: str
    input: str | None
    output: Any
    attempt: int
    agent_id: str | None
    saved_at: datetime
    run_s: float | None
    cost_usd: float


class Steps(BaseModel):
    """In the order in which they were saved."""

    items: list[StepRow]


class ArtifactRow(BaseModel):
    """A file of a task; its content is at `uri`, or comes from GET /v1/artifacts/{id}/content."""

    id: UUID
    name: str
    uri: str
    media_type: str | None
    bytes: int | None
    sha256: str | None
    attempt: int | None


class Artifacts(BaseModel):
    """The oldest first."""

    items: list[ArtifactRow]


class EventRow(BaseModel):
    """Something that happened to a task."""

    id: int
    at: datetime
    kind: str
    task_id: UUID | None
    dag_id: UUID | None
    queue: str | None
    actor: str | None
    key: str | None
    data: Any


class Result(BaseModel):
    """How a task ended; with 202 it has not, and the rest is null."""

    id: UUID
    status: Status
    output: Any = None
    failure_class: str | None = None
    failure_reason: str | None = None
