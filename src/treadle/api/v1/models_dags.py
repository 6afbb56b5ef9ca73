"""DAGs as they are sent and shown."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from treadle.api.v1.fields import Body, Id, Moment, Name, Object, Seconds, Text, Usd

MOST_TASKS = 10_000
Status = Literal["open", "running", "failed", "completed", "cancelled"]


class Edge(Body):
    """A task that must have ended before; an optional one may also have failed."""

    task: Name
    optional: bool = False


class NodeOptions(Body):
    """What can be said of a task of a DAG besides its name and its edges."""

    type: Name | None = None
    queue: Name | None = None
    spec: Object | None = None
    title: Text | None = Field(None, max_length=1000)
    priority: int | None = Field(None, ge=0, le=100)
    urgency: int | None = Field(None, ge=0, le=100)
    tier: Literal["critical", "high", "normal", "low", "background"] | None = None
    delay_s: Seconds | None = None
    run_at: Moment | None = None
    deadline_at: Moment | None = None
    timeout_s: Seconds | None = None
    max_attempts: int | None = Field(None, ge=1, le=1000)
    ageing_rate: float | None = Field(None, ge=0, le=1000)
    retry: Object | None = None
    capabilities: list[Name] | None = Field(None, max_length=100)
    assigned_agent: Name | None = None
    consumer: Name | None = None
    tags: list[Name] | None = Field(None, max_length=100)
    source: Text | None = Field(None, max_length=200)
    source_job: Text | None = Field(None, max_length=200)
    external_ref: Text | None = Field(None, max_length=1000)
    notes: Text | None = Field(None, max_length=10_000)
    project: Name | None = None
    project_id: Id | None = None
    max_cost_usd: Usd | None = None
    max_tokens: int | None = Field(None, ge=0, le=2**53)
    on_budget: Literal["ask", "fail"] | None = None
    validation: list[Object] | None = Field(None, max_length=20)
    report: Literal["required", "optional"] | None = None
    models: list[Name] | None = Field(None, max_length=20)
    fallback_models: list[Name] | None = Field(None, max_length=20)
    gates: list[Name] | None = Field(None, max_length=20)
    concurrency_key: Name | None = None
    concurrency_limit: int | None = Field(None, ge=1, le=1_000_000)


class Node(NodeOptions):
    """A task of a DAG; without a name it has that of its type."""

    name: Text | None = Field(None, min_length=1, max_length=100)
    after: list[Name | Edge] | None = Field(
        None, max_length=1000, description="Tasks that come before: names, or ids of any task."
    )
    inputs: dict[str, Any] | None = Field(
        None, description='Arguments from other tasks: {"brief": "task:research:output"}.'
    )


class Plan(Body):
    """A whole DAG; all of it is stored, or nothing."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "Build landing page",
                    "tasks": [
                        {"name": "research", "type": "research", "spec": {"topic": "rivals"}},
                        {"name": "build", "type": "code", "after": ["research"]},
                    ],
                }
            ]
        }
    )

    name: Text = Field(min_length=1, max_length=1000)
    tasks: list[Node] = Field(min_length=1, max_length=MOST_TASKS)
    defaults: NodeOptions | None = Field(None, description="For tasks that do not say.")
    key: Name | None = Field(None, description="A second DAG with this key is the first one.")
    hold: bool = Field(False, description="Let it wait until it is started.")
    on_dead_letter: Literal["wait", "cancel", "continue"] | None = None
    budget_usd: Usd | None = None
    project_id: Id | None = None
    meta: Object | None = None


class MadeDag(BaseModel):
    """A DAG that was made, or the one that has the key already; tasks in the order given."""

    id: UUID
    created: bool
    tasks: list[UUID]


class Dag(BaseModel):
    """A DAG and how far it is."""

    id: UUID
    name: str
    status: Status
    on_dead_letter: str
    tasks: int
    completed: int
    cancelled: int
    dead_lettered: int
    running: int
    ready: int
    pending: int
    blocked: int
    roots: list[UUID] | None
    leaves: list[UUID] | None
    budget_usd: float | None
    cost_usd: float
    project_id: UUID | None
    created_by: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    duration_s: float | None
    open_waits: int
    meta: dict[str, Any]


class Dependency(BaseModel):
    """A task that another one waits for or waited for."""

    id: UUID
    name: str | None
    optional: bool
    met: bool


class DagTask(BaseModel):
    """A task of a DAG."""

    dag_id: UUID
    id: UUID
    name: str | None
    title: str | None
    type: str
    queue: str
    status: str
    attempt: int
    max_attempts: int
    blocked_count: int
    is_root: bool
    is_leaf: bool
    depends_on: list[Dependency]
    agent_id: str | None
    created_at: datetime
    claimed_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    run_at: datetime | None
    retry_at: datetime | None
    wait_s: float
    run_s: float | None
    cost_usd: float
    failure_class: str | None
    failure_reason: str | None
    parent_id: UUID | None


class Started(BaseModel):
    """A DAG that runs, with so many tasks."""

    id: UUID
    tasks: int


class Cancelled(BaseModel):
    """So many tasks were cancelled."""

    id: UUID
    cancelled: int


class Retried(BaseModel):
    """So many tasks run again."""

    id: UUID
    retried: int
