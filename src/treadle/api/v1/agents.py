"""`/v1/agents`: agents, which register before they claim tasks."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import AGENT, LIST, Access, requires
from treadle.api.bodies import Body, Name, Names, Object, Queues, Text, json_response, json_row
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.errors import UnknownAgent
from treadle.models import AgentProfile
from treadle.settings import CLAIM_TTL_S, HEARTBEAT_S

router = APIRouter(prefix="/v1/agents", tags=["agents"])
List = Annotated[Access, requires("read", on=LIST)]
Act = Annotated[Access, requires("work", on=AGENT)]
Operate = Annotated[Access, requires("operate", on=AGENT)]
AgentId = Annotated[Text, Path(min_length=1, max_length=200)]


class Agent(Body):
    """The registration of an agent: what it can do, and how often it sends a heartbeat."""

    type: Name = "worker"
    capabilities: Names = Field(default_factory=list)
    models: Names = Field(default_factory=list)
    queues: Queues = Field(default_factory=lambda: ["default"])
    task_types: Annotated[list[Name], Field(max_length=1000)] | None = None
    max_concurrent_tasks: int | None = Field(None, ge=0, le=10_000)
    heartbeat_s: float = Field(HEARTBEAT_S, gt=0, le=86_400, allow_inf_nan=False)
    claim_ttl_s: float = Field(CLAIM_TTL_S, gt=0, le=86_400, allow_inf_nan=False)
    meta: Object = Field(default_factory=dict)


class AgentStatus(Body):
    """A draining agent claims no more tasks, finishes those that it has, and stops."""

    status: Literal["active", "draining", "offline"]


class AgentState(BaseModel):
    """An agent and its status, which says whether it may claim more tasks."""

    id: str
    status: str


class AgentRow(BaseModel):
    """An agent with its last heartbeat and its current tasks."""

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


@router.get("", response_model=Listed[AgentRow])
async def list_agents(access: List, page: Page) -> Response:
    """List agents.

    They are sorted by id and have heartbeats, current tasks and failures of the last hour. A token
    for an agent sees that agent; a token for a project sees the agents that have its tasks.
    """
    rows = await access.db.agents.page(access.view, after=page.after(str), limit=page.more)
    return page.answer(rows, "agent_id")


@router.get(
    "/{agent_id:path}",
    response_model=AgentRow,
    responses=answers(404),
)
async def show(agent_id: AgentId, access: List) -> Response:
    """Get an agent.

    The response has its last heartbeat and its current tasks.
    """
    rows = await access.db.agents.page(access.view, only=agent_id, limit=1)
    if not rows:
        raise UnknownAgent(
            f"agent {agent_id} is not registered", hint="First: PUT /v1/agents/{id}", agent=agent_id
        )
    return json_response(json_row(rows[0]))


# Declared before the routes of an agent: an id may have slashes.
@router.put(
    "/{agent_id:path}/status",
    response_model=AgentState,
    responses=answers(404),
)
async def set_status(agent_id: AgentId, asked: AgentStatus, access: Operate) -> Response:
    """Activate, drain or deactivate an agent.

    A draining agent finishes its tasks and claims no new ones.
    """
    await access.db.agents.set_status(agent_id, asked.status, access.caller.name)
    return json_response({"id": agent_id, "status": asked.status})


@router.put("/{agent_id:path}", response_model=AgentState)
async def register(agent_id: AgentId, asked: Agent, access: Act) -> Response:
    """Register an agent.

    An agent registers again after each restart; the new settings replace the old ones.
    """
    for queue in asked.queues:
        access.caller.check_queue(queue)
    await access.db.agents.register(AgentProfile(id=agent_id, **asked.model_dump()))
    return json_response({"id": agent_id, "status": "active"})


@router.post(
    "/{agent_id:path}/heartbeat",
    response_model=AgentState,
    responses=answers(404),
)
async def heartbeat(agent_id: AgentId, access: Act) -> Response:
    """Record a heartbeat of an agent.

    The response tells whether it should keep claiming. Leases are renewed per claim.
    """
    return json_response({"id": agent_id, "status": await access.db.agents.heartbeat(agent_id)})


@router.post(
    "/{agent_id:path}/leave",
    response_model=AgentState,
    responses=answers(404),
)
async def leave(agent_id: AgentId, access: Act) -> Response:
    """Sign an agent off.

    It is offline at once, not only after it has missed heartbeats.
    """
    await access.db.agents.set_status(agent_id, "offline", access.caller.name)
    return json_response({"id": agent_id, "status": "offline"})
