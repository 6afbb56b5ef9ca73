"""The bodies of `/v1/agents`."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from treadle.api.v1.fields import Body, Name, Object
from treadle.api.v1.models_tasks import Names, Queues


class Agent(Body):
    """How an agent registers: what it can do, and how often it gives a sign of life."""

    type: Name = "worker"
    capabilities: Names = Field(default_factory=list)
    models: Names = Field(default_factory=list)
    queues: Queues = Field(default_factory=lambda: ["default"])
    task_types: Annotated[list[Name], Field(max_length=1000)] | None = None
    max_concurrent_tasks: int | None = Field(None, ge=0, le=10_000)
    heartbeat_s: float = Field(30.0, gt=0, le=86_400, allow_inf_nan=False)
    claim_ttl_s: float = Field(60.0, gt=0, le=86_400, allow_inf_nan=False)
    meta: Object = Field(default_factory=dict)


class AgentStatus(Body):
    """draining: it claims nothing more, finishes what it has and stops."""

    status: Literal["active", "draining", "offline"]


class AgentState(BaseModel):
    """An agent, and whether it should go on claiming."""

    id: str
    status: str


class AgentRow(BaseModel):
    """An agent: whether it lives, and what it has in hand."""

    agent_id: str
    type: str
    status: str
    alive: bool
    queues: list[str]
    task_types: list[str] | None
    capabilities: list[str]
    models: list[str]
    max_concurrent_tasks: int | None
    current_tasks: int
    running: int
    oldest_claim_at: datetime | None
    failed_1h: int
    budget_usd: float | None
    heartbeat_at: datetime
    heartbeat_age: float = Field(description="In seconds.")
    heartbeat_s: float
    claim_ttl_s: float
    url: str | None
    registered_at: datetime
    meta: Object
