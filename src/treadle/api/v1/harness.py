"""`/v1/harness`: what became of the decisions of agents, and which agents are nudged."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import (
    Caller,
    Db,
    check_everywhere,
    check_touched,
    check_whole_queues,
    requires,
)
from treadle.api.bodies import Body, Note, Text
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.responses import json_response, json_row
from treadle.db.database import Database
from treadle.errors import NotFound
from treadle.services.outbound import check_public_url

router = APIRouter(prefix="/v1/harness", tags=["harness"])
OPERATE = requires("operate")
# Where the harness connects to.
ADMIN = requires("admin")
Status = Literal["executing", "waiting", "done", "failed", "interrupted", "skipped"]
Url = Annotated[Text, Field(min_length=1, max_length=2000)]


class Action(BaseModel):
    """What the harness did with the decision about a task."""

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
    """An action that was decided about, and how it stands now."""

    task_id: UUID
    action: Status


class Nudging(BaseModel):
    """An agent that is told when a task is stored for it, and how that went last."""

    agent_url: str
    allow_private: bool
    nudged_at: datetime | None
    nudge_error: str | None
    last_seen_at: datetime | None
    created_at: datetime
    created_by: str


class Nudge(Body):
    """Which agent; `allow_private`: also at an address of this host or of a private network."""

    agent_url: Url
    allow_private: bool = False


@router.get("/actions", response_model=Listed[Action], dependencies=[requires("read")])
async def list_actions(db: Db, page: Page, who: Caller, status: Status | None = None) -> Response:
    """What the harness did with decisions, by task, the newest first."""
    check_whole_queues(who)
    who.check_queue("harness")
    rows = await db.harness.actions(status, page.more, after=page.after(UUID))
    return page.answer(rows, "task_id")


@router.post(
    "/actions/{task_id}/again",
    response_model=Decided,
    responses=answers(404, 409),
    dependencies=[OPERATE],
)
async def again(
    task_id: UUID, db: Db, who: Caller, once: Once, why: Note | None = None
) -> Response:
    """Have an action executed again that failed or was interrupted; look first what it did."""
    await check_touched(who, db, task_id)

    async def effect(db: Database) -> Response:
        action = await db.harness.rerun_action(task_id, who.name, why.note if why else None)
        return json_response({"task_id": task_id, "action": action})

    return await once(effect)


@router.post(
    "/actions/{task_id}/skip",
    response_model=Decided,
    responses=answers(404, 409),
    dependencies=[OPERATE],
)
async def skip(task_id: UUID, db: Db, who: Caller, once: Once, why: Note | None = None) -> Response:
    """Leave an action that failed or was interrupted as it is: its task is done."""
    await check_touched(who, db, task_id)

    async def effect(db: Database) -> Response:
        action = await db.harness.skip_action(task_id, who.name, why.note if why else None)
        return json_response({"task_id": task_id, "action": action})

    return await once(effect)


@router.get("/nudging", response_model=Listed[Nudging], dependencies=[requires("read")])
async def list_nudging(db: Db, page: Page, who: Caller) -> Response:
    """Agents that are nudged, by address."""
    check_everywhere(who)
    rows = await db.calls.page(
        "harness_nudging", key="agent_url", after=page.after(str), limit=page.more
    )
    return page.answer(rows, "agent_url")


@router.put("/nudging", response_model=Nudging, responses=answers(404), dependencies=[ADMIN])
async def allow(asked: Nudge, db: Db, who: Caller) -> Response:
    """Let the harness nudge an agent at its address when a task is stored for it."""
    check_everywhere(who)
    if not asked.allow_private:
        check_public_url(asked.agent_url)
    agent_url = await db.harness.allow_nudges(
        asked.agent_url, private=asked.allow_private, actor=who.name
    )
    rows = await db.calls.page(
        "harness_nudging",
        key="agent_url",
        limit=1,
        where={"agent_url = {}": agent_url},
    )
    if not rows:
        # Somebody forbade it since.
        raise NotFound(f"agent {agent_url} is not nudged", agent_url=agent_url)
    return json_response(json_row(rows[0]))


@router.delete("/nudging", status_code=204, dependencies=[ADMIN])
async def forbid(
    agent_url: Annotated[str, Query(min_length=1, max_length=2000)], db: Db, who: Caller
) -> Response:
    """Nudge an agent no longer; it finds its tasks by itself."""
    check_everywhere(who)
    await db.harness.allow_nudges(agent_url, allow=False, actor=who.name)
    return Response(status_code=204)
