"""`/v1/harness`: the actions after decisions of agents, and the agents that are nudged."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import SHARED, TASK, WHOLE_HARNESS, Access, requires
from treadle.api.bodies import Body, Note, Text, json_response, json_row
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.db.database import Database
from treadle.services.outbound import check_public_url

router = APIRouter(prefix="/v1/harness", tags=["harness"])
Actions = Annotated[Access, requires("read", on=WHOLE_HARNESS)]
Operate = Annotated[Access, requires("operate", on=TASK)]
Read = Annotated[Access, requires("read", on=SHARED)]
# An admin decides where the harness connects to.
Admin = Annotated[Access, requires("admin", on=SHARED)]
Status = Literal["executing", "waiting", "done", "failed", "interrupted", "skipped"]
Url = Annotated[Text, Field(min_length=1, max_length=2000)]


class Action(BaseModel):
    """The action that the harness took after the decision about a task."""

    task_id: UUID
    agent_url: str
    status: Literal["pending", "claimed", "completed", "done", "failed"]
    action: Status
    action_tries: int
    action_started_at: datetime
    action_ended_at: datetime | None
    action_next_try_at: datetime | None
    action_error: str | None


class Decided(BaseModel):
    """An action and its new status."""

    task_id: UUID
    action: Status


class NudgedAgent(BaseModel):
    """An agent that is nudged when a task is stored for it, and the last result."""

    agent_url: str
    allow_private: bool
    nudged_at: datetime | None
    nudge_error: str | None
    last_seen_at: datetime | None
    created_at: datetime
    created_by: str


class Nudge(Body):
    """The agent to nudge; `allow_private` allows loopback and private addresses."""

    agent_url: Url
    allow_private: bool = False


@router.get("/actions", response_model=Listed[Action])
async def list_actions(access: Actions, page: Page, status: Status | None = None) -> Response:
    """List actions of the harness.

    The newest task comes first.
    """
    rows = await access.db.harness.actions(status, page.more, after=page.after(UUID))
    return page.answer(rows, "task_id")


@router.post(
    "/actions/{task_id}/again",
    response_model=Decided,
    responses=answers(404, 409),
)
async def retry(task_id: UUID, access: Operate, once: Once, why: Note | None = None) -> Response:
    """Run an action again.

    The action failed or was interrupted: check first what it did.
    """

    async def effect(db: Database) -> Response:
        action = await db.harness.rerun_action(
            task_id, access.caller.name, why.note if why else None
        )
        return json_response({"task_id": task_id, "action": action})

    return await once(effect)


@router.post(
    "/actions/{task_id}/skip",
    response_model=Decided,
    responses=answers(404, 409),
)
async def skip(task_id: UUID, access: Operate, once: Once, why: Note | None = None) -> Response:
    """Skip an action.

    The action failed or was interrupted; its task is done then.
    """

    async def effect(db: Database) -> Response:
        action = await db.harness.skip_action(
            task_id, access.caller.name, why.note if why else None
        )
        return json_response({"task_id": task_id, "action": action})

    return await once(effect)


@router.get("/nudging", response_model=Listed[NudgedAgent])
async def list_nudging(access: Read, page: Page) -> Response:
    """List nudged agents.

    They are sorted by address; each has the last result.
    """
    rows = await access.db.harness.nudging_page(after=page.after(str), limit=page.more)
    return page.answer(rows, "agent_url")


@router.put("/nudging", response_model=NudgedAgent, responses=answers(404))
async def allow(asked: Nudge, access: Admin) -> Response:
    """Allow nudging of an agent.

    The harness then notifies it when a task is stored for it.
    """
    if not asked.allow_private:
        check_public_url(asked.agent_url)
    agent_url = await access.db.harness.allow_nudges(
        asked.agent_url, private=asked.allow_private, actor=access.caller.name
    )
    return json_response(json_row(await access.db.harness.nudged(agent_url)))


@router.delete("/nudging", status_code=204)
async def forbid(
    agent_url: Annotated[str, Query(min_length=1, max_length=2000)], access: Admin
) -> Response:
    """Stop nudging of an agent.

    It polls for its tasks.
    """
    await access.db.harness.allow_nudges(agent_url, allow=False, actor=access.caller.name)
    return Response(status_code=204)
