"""The harness protocol: agents fetch their tasks, and bring decisions back.

The database is the truth about a task. A nudge, in either direction, says only that it is worth
looking now.
"""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import structlog
from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, Field
from starlette.responses import Response

from treadle.api.access import Caller, Config, Db, Principal, check_places, requires
from treadle.api.problems import answers
from treadle.db.access import TaskLocation
from treadle.db.database import Database
from treadle.json import clean_text

Status = Literal["pending", "claimed", "completed", "done", "failed"]
log = structlog.get_logger(__name__)
router = APIRouter(prefix="/harness", tags=["harness"])

QUEUE = "harness"


def _plain(text: str) -> str:
    if "\x00" in text:
        raise ValueError("a text has no NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a text is such that UTF-8 can write it") from None
    return text


Text = Annotated[str, AfterValidator(_plain)]
AgentUrl = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=200,
        description="The agent's own base URL.",
        examples=["http://localhost:9000"],
    ),
]
ClaimToken = Annotated[
    UUID, Field(description="Fresh and random for each task; the caller makes it and keeps it.")
]


class NewTask(BaseModel):
    """A task for an agent."""

    agent_url: AgentUrl
    payload: dict[str, Any] = Field(description="What the agent is to know; no credentials.")
    task_id: UUID | None = Field(
        None, description="Made when absent. With one, the request may be repeated."
    )


class StoredTask(BaseModel):
    """A task that is stored."""

    task_id: UUID
    status: Status
    created: bool = Field(description="Whether it is new; else it was stored before.")


class Next(BaseModel):
    """An agent asks for its next task."""

    agent_url: AgentUrl
    claim_token: ClaimToken


class Claimed(BaseModel):
    """A task that the agent has now, until `claim_until` or its next heartbeat."""

    task_id: UUID
    agent_url: str
    payload: dict[str, Any]
    retry_count: int = Field(description="How often a claim of it ran out or failed before.")
    max_retries: int
    created_at: datetime
    claim_until: datetime


class HarnessHeartbeat(BaseModel):
    """An agent still works on its task."""

    claim_token: ClaimToken


class ExtendedClaim(BaseModel):
    """Until when the claim holds now."""

    task_id: UUID
    claim_until: datetime


class Decided(BaseModel):
    """What an agent decided."""

    claim_token: ClaimToken
    decision: dict[str, Any]


class Failure(BaseModel):
    """Why an agent could not do it."""

    claim_token: ClaimToken
    error: Text = Field(description="Of more than 20,000 characters the middle is left out.")
    retry: bool = Field(True, description="Whether it is worth another try.")


class Ended(BaseModel):
    """How a task stands after what its agent said."""

    task_id: UUID
    status: Status


class Hint(BaseModel):
    """A nudge: which task it is about; the harness looks for all of them."""

    task_id: Text | None = Field(None, max_length=200)


class Task(BaseModel):
    """A task of the harness, from its storing to its end."""

    task_id: UUID
    agent_url: str
    status: Status
    payload: dict[str, Any]
    created_at: datetime
    claimed_at: datetime | None
    completed_at: datetime | None
    result: dict[str, Any] | None = Field(description="The decision of the agent.")
    retry_count: int
    max_retries: int
    last_heartbeat: datetime | None
    last_error: str | None
    action: str | None = Field(
        description="What the harness did: executing, waiting, done, failed, interrupted, skipped."
    )
    action_tries: int | None
    action_error: str | None


@router.post(
    "/tasks",
    status_code=201,
    dependencies=[requires("enqueue")],
    responses={200: {"model": StoredTask, "description": "Stored before"}, **answers(503)},
)
async def enqueue(
    task: NewTask, who: Caller, db: Db, config: Config, response: Response
) -> StoredTask:
    """Store a task for an agent; then the agent is nudged, where that is allowed."""
    _check(who)
    task_id, created = await db.harness.enqueue(
        task.agent_url, task.payload, task_id=task.task_id, secrets=config.harness_secrets
    )
    if created:
        log.info("harness.enqueued", task_id=str(task_id), agent_url=task.agent_url, by=who.name)
        return StoredTask(task_id=task_id, status="pending", created=True)
    response.status_code = 200
    found = await db.harness.get(task_id)
    return StoredTask(task_id=task_id, status=found["status"], created=False)


@router.get("/tasks/{task_id}", dependencies=[requires("read")], responses=answers(404))
async def show(task_id: UUID, who: Caller, db: Db) -> Task:
    """How a task stands."""
    await _check_task(task_id, who, db)
    return Task(**await db.harness.get(task_id))


@router.post(
    "/next",
    dependencies=[requires("work")],
    response_model=Claimed,
    responses={204: {"description": "No task waits for this agent"}, **answers(409)},
)
async def claim(asked: Next, who: Caller, db: Db, config: Config) -> Claimed | Response:
    """Claim the oldest task of an agent. A repeat with the same token gets the same task.

    409 `claim-lost`: what this token claimed was taken back; ask with a fresh one.
    """
    _check(who)
    _check_agent(who, asked.agent_url)
    found = await db.harness.claim(
        asked.agent_url, asked.claim_token, config.harness_claim_timeout_s
    )
    if found is None:
        return Response(status_code=204)
    if not found.already:
        log.info(
            "harness.claimed",
            task_id=str(found.task_id),
            agent_url=found.agent_url,
            retry_count=found.retry_count,
        )
    return Claimed(**vars(found))


@router.post(
    "/tasks/{task_id}/heartbeat", dependencies=[requires("work")], responses=answers(404, 409)
)
async def heartbeat(task_id: UUID, beat: HarnessHeartbeat, who: Caller, db: Db) -> ExtendedClaim:
    """Begin the claim timeout anew. 409 `claim-lost`: the task is no longer this agent's."""
    await _check_task(task_id, who, db)
    until = await db.harness.heartbeat(task_id, beat.claim_token)
    log.debug("harness.heartbeat", task_id=str(task_id))
    return ExtendedClaim(task_id=task_id, claim_until=until)


@router.post(
    "/tasks/{task_id}/complete", dependencies=[requires("work")], responses=answers(404, 409)
)
async def complete(task_id: UUID, decided: Decided, who: Caller, db: Db, config: Config) -> Ended:
    """Store the decision. A repeat changes nothing. 409 `claim-lost`: drop the decision."""
    agent_url = await _check_task(task_id, who, db)
    verdict = await db.harness.complete(
        task_id, decided.claim_token, decided.decision, secrets=config.harness_secrets
    )
    if verdict == "completed":
        log.info("harness.completed", task_id=str(task_id), agent_url=agent_url)
    return Ended(task_id=task_id, status="completed")


@router.post("/tasks/{task_id}/fail", dependencies=[requires("work")], responses=answers(404, 409))
async def fail(task_id: UUID, failure: Failure, who: Caller, db: Db) -> Ended:
    """Give the task back: pending with one retry more, or failed after the last of them."""
    agent_url = await _check_task(task_id, who, db)
    verdict = await db.harness.fail(
        task_id, failure.claim_token, clean_text(failure.error), retry=failure.retry
    )
    status = (await db.harness.get(task_id))["status"]
    if verdict != "already":
        event = "harness.failed" if status == "failed" else "harness.requeued"
        log.warning(event, task_id=str(task_id), agent_url=agent_url, reason="agent")
    return Ended(task_id=task_id, status=status)


@router.post("/result", status_code=202, dependencies=[requires("work")], responses=answers(503))
async def result(hint: Hint, who: Caller, db: Db) -> Hint:
    """Nudge the harness: it looks for results at once. The id is a hint and is not looked up."""
    _check(who)
    await db.harness.wake()
    return hint


def _check(who: Principal) -> None:
    """A token for other queues, or for one project, is not for the harness."""
    who.check_queue(QUEUE)
    who.check_project(None)


def _check_agent(who: Principal, agent_url: str) -> None:
    """A caller that belongs to another agent is refused; a slash at the end does not count."""
    _bare(who).check_agent(agent_url.rstrip("/"))


def _bare(who: Principal) -> Principal:
    return replace(who, agent=who.agent and who.agent.rstrip("/"))


async def _check_task(task_id: UUID, who: Principal, db: Database) -> str:
    """Whose task it is, for those who may touch it."""
    _check(who)
    agent_url = await db.harness.agent(task_id)
    check_places(_bare(who), [TaskLocation(QUEUE, None, agent_url.rstrip("/"))])
    return agent_url
