"""`/v1/agents`: who works here; an agent registers before it claims."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from treadle.api.access import Principal, Who, need
from treadle.api.deps import Calls, Views
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.v1 import models_agents as models
from treadle.api.v1.fields import Text
from treadle.api.v1.reach import check_everywhere, queues_of
from treadle.api.wire import answer, record
from treadle.db.reader import Reader
from treadle.errors import Forbidden, UnknownAgent
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
        where=_within(who),
    )
    return page.answer(rows, "agent_id")


@router.get(
    "/{agent_id:path}",
    response_model=models.AgentRow,
    responses=answers(404),
    dependencies=[need("read")],
)
async def show(agent_id: AgentId, views: Views, who: Who) -> Response:
    """One agent."""
    asked = {"agent_id = {}": agent_id, **_within(who)}
    rows = await views.page("agent_load", key="agent_id", limit=1, where=asked)
    if not rows:
        raise UnknownAgent(
            f"agent {agent_id} is not registered", hint="First: PUT /v1/agents/{id}", agent=agent_id
        )
    return answer(record(rows[0]))


# Before the agent itself: an id may have slashes.
@router.put(
    "/{agent_id:path}/status",
    response_model=models.AgentState,
    responses=answers(404),
    dependencies=[need("operate")],
)
async def set_status(
    agent_id: AgentId, asked: models.AgentStatus, calls: Calls, views: Views, who: Who
) -> Response:
    """Let an agent work, drain it, or take it offline."""
    await _check(views, agent_id, who)
    await calls.set_agent_status(agent_id, asked.status, who.name)
    return answer({"id": agent_id, "status": asked.status})


@router.put("/{agent_id:path}", response_model=models.AgentState, dependencies=[need("work")])
async def register(
    agent_id: AgentId, asked: models.Agent, calls: Calls, views: Views, who: Who
) -> Response:
    """Make an agent known, or known again after a restart."""
    await _check(views, agent_id, who)
    for queue in asked.queues:
        who.check_queue(queue)
    await calls.register_agent(AgentProfile(id=agent_id, **asked.model_dump()))
    return answer({"id": agent_id, "status": "active"})


@router.post(
    "/{agent_id:path}/heartbeat",
    response_model=models.AgentState,
    responses=answers(404),
    dependencies=[need("work")],
)
async def heartbeat(agent_id: AgentId, calls: Calls, views: Views, who: Who) -> Response:
    """An agent lives; it learns whether it should go on claiming. Leases are renewed per claim."""
    await _check(views, agent_id, who)
    return answer({"id": agent_id, "status": await calls.agent_heartbeat(agent_id)})


@router.post(
    "/{agent_id:path}/leave",
    response_model=models.AgentState,
    responses=answers(404),
    dependencies=[need("work")],
)
async def leave(agent_id: AgentId, calls: Calls, views: Views, who: Who) -> Response:
    """An agent stops: it is offline at once, not when its signs of life are missed."""
    await _check(views, agent_id, who)
    await calls.set_agent_status(agent_id, "offline", who.name)
    return answer({"id": agent_id, "status": "offline"})


def _within(who: Principal) -> dict[str, object]:
    """The agents that a token sees: of its queues, itself, or with tasks of its project."""
    return {
        "queues && {}": queues_of(who),
        # Not "agent_id = {}", which `show` asks for as well.
        "agent_id in ({})": who.agent,
        "agent_id in (select places.agent from treadle.task_places as places"
        " where project_id = {})": who.project_id,
    }


async def _check(views: Reader, agent_id: str, who: Principal) -> None:
    """Refuse an agent that is not the token's, or that works where the token does not reach."""
    who.check_agent(agent_id)
    if who.project_id is not None:
        check_everywhere(who)
    if who.queues is not None:
        queues = await views.agent_queues(agent_id)
        # Without any it has nothing to do with those of the token either.
        if queues is not None and not (queues and who.queues.issuperset(queues)):
            raise Forbidden(f"{who.name} may not act for {agent_id}, which has other queues")
