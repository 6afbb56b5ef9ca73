"""`/v1/agents`: who works here; an agent registers before it claims."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from treadle.api.access import Who, need
from treadle.api.deps import Calls, Views
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.v1 import models_agents as models
from treadle.api.v1.fields import Text
from treadle.api.v1.reach import queues_of
from treadle.api.wire import answer, record
from treadle.errors import UnknownAgent
from treadle.models import AgentProfile

router = APIRouter(prefix="/v1/agents", tags=["agents"])
AgentId = Annotated[Text, Path(min_length=1, max_length=200)]


@router.get("", response_model=Listed[models.AgentRow], dependencies=[need("read")])
async def list_agents(views: Views, page: Page, who: Who) -> Response:
    """Agents by id: sign of life, tasks in hand, failures of the last hour."""
    rows = await views.page(
        "agent_load",
        key="agent_id",
        after=page.after(str),
        limit=page.more,
        where={"queues && {}": queues_of(who)},
    )
    return page.answer(rows, "agent_id")


@router.get(
    "/{agent_id}",
    response_model=models.AgentRow,
    responses=answers(404),
    dependencies=[need("read")],
)
async def show(agent_id: AgentId, views: Views, who: Who) -> Response:
    """One agent."""
    asked = {"agent_id = {}": agent_id, "queues && {}": queues_of(who)}
    rows = await views.page("agent_load", key="agent_id", limit=1, where=asked)
    if not rows:
        raise UnknownAgent(
            f"agent {agent_id} is not registered", hint="First: PUT /v1/agents/{id}", agent=agent_id
        )
    return answer(record(rows[0]))


@router.put("/{agent_id}", response_model=models.AgentState, dependencies=[need("work")])
async def register(agent_id: AgentId, asked: models.Agent, calls: Calls, who: Who) -> Response:
    """Make an agent known, or known again after a restart."""
    who.check_agent(agent_id)
    for queue in asked.queues:
        who.check_queue(queue)
    await calls.register_agent(AgentProfile(id=agent_id, **asked.model_dump()))
    return answer({"id": agent_id, "status": "active"})


@router.post(
    "/{agent_id}/heartbeat",
    response_model=models.AgentState,
    responses=answers(404),
    dependencies=[need("work")],
)
async def heartbeat(agent_id: AgentId, calls: Calls, who: Who) -> Response:
    """An agent lives; it learns whether it should go on claiming. Leases are renewed per claim."""
    who.check_agent(agent_id)
    return answer({"id": agent_id, "status": await calls.agent_heartbeat(agent_id)})


@router.put(
    "/{agent_id}/status",
    response_model=models.AgentState,
    responses=answers(404),
    dependencies=[need("operate")],
)
async def set_status(
    agent_id: AgentId, asked: models.AgentStatus, calls: Calls, who: Who
) -> Response:
    """Let an agent work, drain it, or take it offline."""
    who.check_agent(agent_id)
    await calls.set_agent_status(agent_id, asked.status)
    return answer({"id": agent_id, "status": asked.status})


@router.post(
    "/{agent_id}/leave",
    response_model=models.AgentState,
    responses=answers(404),
    dependencies=[need("work")],
)
async def leave(agent_id: AgentId, calls: Calls, who: Who) -> Response:
    """An agent stops: it is offline at once, not when its signs of life are missed."""
    who.check_agent(agent_id)
    await calls.set_agent_status(agent_id, "offline")
    return answer({"id": agent_id, "status": "offline"})
