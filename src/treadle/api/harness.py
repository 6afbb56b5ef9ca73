"""The harness protocol: agents fetch their tasks and return decisions.

The state of a task is in the database. A nudge, in either direction, is only a hint to poll now.
"""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import structlog
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import HARNESS, HARNESS_TASK, Access, Config, requires
from treadle.api.bodies import Text
from treadle.api.problems import answers
from treadle.errors import Forbidden
from treadle.json import clean_text
from treadle.services.outbound import is_loopback_url

Status = Literal["pending", "claimed", "completed", "done", "failed"]
log = structlog.get_logger(__name__)
router = APIRouter(prefix="/harness", tags=["harness protocol"])
Add = Annotated[Access, requires("enqueue", on=HARNESS)]
Claim = Annotated[Access, requires("work", on=HARNESS)]
Read = Annotated[Access, requires("read", on=HARNESS_TASK)]
Work = Annotated[Access, requires("work", on=HARNESS_TASK)]


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
    UUID,
    Field(
        description="Random, made by the caller for each task, and sent with each request about it."
    ),
]


class NewHarnessTask(BaseModel):
    """A task for an agent."""

    agent_url: AgentUrl
    payload: dict[str, Any] = Field(description="The input of the agent, without credentials.")
    task_id: UUID | None = Field(
        None, description="Generated if absent. With an id the request can be repeated safely."
    )


class StoredTask(BaseModel):
    """A stored task."""

    task_id: UUID
    status: Status
    created: bool = Field(description="False if the task was stored before.")


class NextTask(BaseModel):
    """A request of an agent for its next task."""

    agent_url: AgentUrl
    claim_token: ClaimToken


class ClaimedHarnessTask(BaseModel):
    """A claimed task; the claim ends at `claim_until` unless a heartbeat extends it."""

    task_id: UUID
    agent_url: str
    payload: dict[str, Any]
    retry_count: int = Field(description="How many claims of it have expired or failed.")
    max_retries: int
    created_at: datetime
    claim_until: datetime


class HarnessHeartbeat(BaseModel):
    """The agent is still working on its task."""

    claim_token: ClaimToken


class ExtendedClaim(BaseModel):
    """The new end of the claim."""

    task_id: UUID
    claim_until: datetime


class Decided(BaseModel):
    """The decision of an agent."""

    claim_token: ClaimToken
    decision: dict[str, Any]


class Failure(BaseModel):
    """Why an agent failed."""

    claim_token: ClaimToken
    error: Text = Field(description="Cut in the middle to 20,000 characters.")
    retry: bool = Field(True, description="Whether the task may be retried.")


class EndedHarnessTask(BaseModel):
    """The status of a task after the report of its agent."""

    task_id: UUID
    status: Status


class Hint(BaseModel):
    """A nudge about a task; the harness reads all results."""

    task_id: Text | None = Field(None, max_length=200)


class Task(BaseModel):
    """A task of the harness."""

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
    responses={200: {"model": StoredTask, "description": "Stored before"}, **answers(503)},
)
async def enqueue(
    task: NewHarnessTask, request: Request, access: Add, config: Config, response: Response
) -> StoredTask:
    """Store a task for an agent.

    The agent is nudged if that is allowed.
    """
    await _allow_local_nudges(request, access, task.agent_url)
    task_id, created = await access.db.harness.enqueue(
        task.agent_url, task.payload, task_id=task.task_id, secrets=config.harness_secrets
    )
    if created:
        log.info(
            "harness.enqueued",
            task_id=str(task_id),
            agent_url=task.agent_url,
            by=access.caller.name,
        )
        return StoredTask(task_id=task_id, status="pending", created=True)
    response.status_code = 200
    found = await access.db.harness.get(task_id)
    return StoredTask(task_id=task_id, status=found["status"], created=False)


@router.get("/tasks/{task_id}", responses=answers(404))
async def show(task_id: UUID, access: Read) -> Task:
    """Get the status of a task.

    The response has the decision once there is one.
    """
    return Task(**await access.db.harness.get(task_id))


@router.post(
    "/next",
    response_model=ClaimedHarnessTask,
    responses={204: {"description": "No task waits for this agent"}, **answers(409)},
)
async def claim(asked: NextTask, access: Claim, config: Config) -> ClaimedHarnessTask | Response:
    """Claim the oldest task of an agent.

    Repeating the request with the same token gets the same task. The response is 409 `claim-lost`
    if the claim of this token has expired; send a new token then.
    """
    access.check_agent_url(asked.agent_url)
    found = await access.db.harness.claim(
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
    return ClaimedHarnessTask(**vars(found))


@router.post("/tasks/{task_id}/heartbeat", responses=answers(404, 409))
async def heartbeat(task_id: UUID, beat: HarnessHeartbeat, access: Work) -> ExtendedClaim:
    """Extend a claim.

    The response is 409 `claim-lost` if the task no longer belongs to this agent.
    """
    until = await access.db.harness.heartbeat(task_id, beat.claim_token)
    log.debug("harness.heartbeat_received", task_id=str(task_id))
    return ExtendedClaim(task_id=task_id, claim_until=until)


@router.post("/tasks/{task_id}/complete", responses=answers(404, 409))
async def complete(
    task_id: UUID, decided: Decided, access: Work, config: Config
) -> EndedHarnessTask:
    """Complete a task with a decision.

    Repeating the request changes nothing. The response is 409 `claim-lost` if the task no longer
    belongs to this agent; discard the decision then.
    """
    agent_url = await access.db.harness.agent(task_id)
    verdict = await access.db.harness.complete(
        task_id, decided.claim_token, decided.decision, secrets=config.harness_secrets
    )
    if verdict == "completed":
        log.info("harness.completed", task_id=str(task_id), agent_url=agent_url)
    return EndedHarnessTask(task_id=task_id, status="completed")


@router.post("/tasks/{task_id}/fail", responses=answers(404, 409))
async def fail(task_id: UUID, failure: Failure, access: Work) -> EndedHarnessTask:
    """Fail an attempt.

    The task is pending again, or failed after its last retry.
    """
    agent_url = await access.db.harness.agent(task_id)
    verdict = await access.db.harness.fail(
        task_id, failure.claim_token, clean_text(failure.error), retry=failure.retry
    )
    status = (await access.db.harness.get(task_id))["status"]
    if verdict != "already":
        event = "harness.failed" if status == "failed" else "harness.requeued"
        log.warning(event, task_id=str(task_id), agent_url=agent_url, reason="agent")
    return EndedHarnessTask(task_id=task_id, status=status)


@router.post("/result", status_code=202, responses=answers(503))
async def result(hint: Hint, access: Claim) -> Hint:
    """Announce a result.

    The harness then reads results at once. The id is a hint and is not looked up.
    """
    await access.db.harness.wake()
    return hint


async def _allow_local_nudges(request: Request, access: Access, agent_url: str) -> None:
    """Allow nudges to an agent on the host of a loopback server, unless an operator forbids them.

    The caller must have the scope admin, which may allow nudges anyway.
    """
    state = request.app.state
    if (
        not state.local
        or agent_url in state.nudged_agents
        or not access.caller.may("admin")
        or not is_loopback_url(agent_url)
    ):
        return
    try:
        await access.db.harness.allow_nudges(
            agent_url, private=True, actor=access.caller.name, only_new=True
        )
    except Forbidden as error:
        # The login of the server is not an operator.
        log.info("harness.nudges_not_allowed", agent_url=agent_url, error=str(error))
    state.nudged_agents.add(agent_url)
