"""`/v1/agents`: who works here; an agent registers before it claims."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import (
    Caller,
    Db,
    Principal,
    check_everywhere,
    queues_of,
    requires,
)
from treadle.api.bodies import Body, Name, Object, Text
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.responses import json_response, json_row
from treadle.api.v1.tasks import Names, Queues
from treadle.db.database import Database
from treadle.errors import Forbidden, UnknownAgent
from treadle.models import AgentProfile

router = APIRouter(prefix="/v1/agents", tags=["agents"])
AgentId = Annotated[Text, Path(min_length=1, max_length=200)]


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


@router.get("", response_model=Listed[AgentRow], dependencies=[requires("read")])
async def list_agents(db: Db, page: Page, who: Caller) -> Response:
    """Agents by id: sign of life, tasks in hand, failures of the last hour."""
    rows = await db.agents.page(
        queues=queues_of(who),
        agent=who.agent,
        project_id=who.project_id,
        after=page.after(str),
        limit=page.more,
    )
    return page.answer(rows, "agent_id")


@router.get(
    "/{agent_id:path}",
    response_model=AgentRow,
    responses=answers(404),
    dependencies=[requires("read")],
)
async def show(agent_id: AgentId, db: Db, who: Caller) -> Response:
    """One agent."""
    rows = await db.agents.page(
        only=agent_id,
        queues=queues_of(who),
        agent=who.agent,
        project_id=who.project_id,
        limit=1,
    )
    if not rows:
        raise UnknownAgent(
            f"agent {agent_id} is not registered", hint="First: PUT /v1/agents/{id}", agent=agent_id
        )
    return json_response(json_row(rows[0]))


# Before the agent itself: an id may have slashes.
@router.put(
    "/{agent_id:path}/status",
    response_model=AgentState,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def set_status(agent_id: AgentId, asked: AgentStatus, db: Db, who: Caller) -> Response:
    """Let an agent work, drain it, or take it offline."""
    await _check(db, agent_id, who)
    await db.agents.set_status(agent_id, asked.status, who.name)
    return json_response({"id": agent_id, "status": asked.status})


@router.put("/{agent_id:path}", response_model=AgentState, dependencies=[requires("work")])
async def register(agent_id: AgentId, asked: Agent, db: Db, who: Caller) -> Response:
    """Make an agent known, or known again after a restart."""
    await _check(db, agent_id, who)
    for queue in asked.queues:
        who.check_queue(queue)
    await db.agents.register(AgentProfile(id=agent_id, **asked.model_dump()))
    return json_response({"id": agent_id, "status": "active"})


@router.post(
    "/{agent_id:path}/heartbeat",
    response_model=AgentState,
    responses=answers(404),
    dependencies=[requires("work")],
)
async def heartbeat(agent_id: AgentId, db: Db, who: Caller) -> Response:
    """An agent lives; it learns whether it should go on claiming. Leases are renewed per claim."""
    await _check(db, agent_id, who)
    return json_response({"id": agent_id, "status": await db.agents.heartbeat(agent_id)})


@router.post(
    "/{agent_id:path}/leave",
    response_model=AgentState,
    responses=answers(404),
    dependencies=[requires("work")],
)
async def leave(agent_id: AgentId, db: Db, who: Caller) -> Response:
    """An agent stops: it is offline at once, not when its signs of life are missed."""
    await _check(db, agent_id, who)
    await db.agents.set_status(agent_id, "offline", who.name)
    return json_response({"id": agent_id, "status": "offline"})


async def _check(db: Database, agent_id: str, who: Principal) -> None:
    """Refuse an agent that is not the token's, or that works where the token does not reach."""
    who.check_agent(agent_id)
    if who.project_id is not None:
        check_everywhere(who)
    if who.queues is not None:
        queues = await db.agents.queues(agent_id)
        # Without any it has nothing to do with those of the token either.
        if queues is not None and not (queues and who.queues.issuperset(queues)):
            raise Forbidden(f"{who.name} may not act for {agent_id}, which has other queues")
