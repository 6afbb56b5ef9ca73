"""The harness protocol: agents fetch their tasks, and bring decisions back.

The database is the truth about a task. A nudge, in either direction, says only that it is worth
looking now.
"""

from dataclasses import replace
from uuid import UUID

import structlog
from fastapi import APIRouter
from starlette.responses import Response

from treadle.api.access import Principal, Who, need
from treadle.api.deps import Calls, Config, Views
from treadle.api.harness_models import (
    Beat,
    Beaten,
    Claimed,
    Decided,
    Ended,
    Failure,
    Hint,
    NewTask,
    Next,
    StoredTask,
    Task,
)
from treadle.api.problems import answers
from treadle.api.v1.reach import check_places
from treadle.db.calls import Place
from treadle.db.reader import Reader
from treadle.json import clean_text

log = structlog.get_logger(__name__)
router = APIRouter(prefix="/harness", tags=["harness"])

QUEUE = "harness"


@router.post(
    "/tasks",
    status_code=201,
    dependencies=[need("enqueue")],
    responses={200: {"model": StoredTask, "description": "Stored before"}, **answers(503)},
)
async def enqueue(
    task: NewTask, who: Who, calls: Calls, views: Views, config: Config, response: Response
) -> StoredTask:
    """Store a task for an agent; then the agent is nudged, where that is allowed."""
    _check(who)
    task_id, created = await calls.enqueue_harness(
        task.agent_url, task.payload, task_id=task.task_id, secrets=config.harness_secrets
    )
    if created:
        log.info("harness.enqueued", task_id=str(task_id), agent_url=task.agent_url, by=who.name)
        return StoredTask(task_id=task_id, status="pending", created=True)
    response.status_code = 200
    found = await views.harness_task(task_id)
    return StoredTask(task_id=task_id, status=found["status"], created=False)


@router.get("/tasks/{task_id}", dependencies=[need("read")], responses=answers(404))
async def show(task_id: UUID, who: Who, views: Views) -> Task:
    """How a task stands."""
    await _check_task(task_id, who, views)
    return Task(**await views.harness_task(task_id))


@router.post(
    "/next",
    dependencies=[need("work")],
    response_model=Claimed,
    responses={204: {"description": "No task waits for this agent"}, **answers(409)},
)
async def claim(asked: Next, who: Who, calls: Calls, config: Config) -> Claimed | Response:
    """Claim the oldest task of an agent. A repeat with the same token gets the same task.

    409 `claim-lost`: what this token claimed was taken back; ask with a fresh one.
    """
    _check(who)
    _check_agent(who, asked.agent_url)
    found = await calls.claim_harness(
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


@router.post("/tasks/{task_id}/heartbeat", dependencies=[need("work")], responses=answers(404, 409))
async def heartbeat(task_id: UUID, beat: Beat, who: Who, calls: Calls, views: Views) -> Beaten:
    """Begin the claim timeout anew. 409 `claim-lost`: the task is no longer this agent's."""
    await _check_task(task_id, who, views)
    until = await calls.heartbeat_harness(task_id, beat.claim_token)
    log.debug("harness.heartbeat", task_id=str(task_id))
    return Beaten(task_id=task_id, claim_until=until)


@router.post("/tasks/{task_id}/complete", dependencies=[need("work")], responses=answers(404, 409))
async def complete(
    task_id: UUID, decided: Decided, who: Who, calls: Calls, views: Views, config: Config
) -> Ended:
    """Store the decision. A repeat changes nothing. 409 `claim-lost`: drop the decision."""
    agent_url = await _check_task(task_id, who, views)
    verdict = await calls.complete_harness(
        task_id, decided.claim_token, decided.decision, secrets=config.harness_secrets
    )
    if verdict == "completed":
        log.info("harness.completed", task_id=str(task_id), agent_url=agent_url)
    return Ended(task_id=task_id, status="completed")


@router.post("/tasks/{task_id}/fail", dependencies=[need("work")], responses=answers(404, 409))
async def fail(task_id: UUID, failure: Failure, who: Who, calls: Calls, views: Views) -> Ended:
    """Give the task back: pending with one retry more, or failed after the last of them."""
    agent_url = await _check_task(task_id, who, views)
    verdict = await calls.fail_harness(
        task_id, failure.claim_token, clean_text(failure.error), retry=failure.retry
    )
    status = (await views.harness_task(task_id))["status"]
    if verdict != "already":
        event = "harness.failed" if status == "failed" else "harness.requeued"
        log.warning(event, task_id=str(task_id), agent_url=agent_url, reason="agent")
    return Ended(task_id=task_id, status=status)


@router.post("/result", status_code=202, dependencies=[need("work")], responses=answers(503))
async def result(hint: Hint, who: Who, calls: Calls) -> Hint:
    """Nudge the harness: it looks for results at once. The id is a hint and is not looked up."""
    _check(who)
    await calls.wake_harness()
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


async def _check_task(task_id: UUID, who: Principal, views: Reader) -> str:
    """Whose task it is, for those who may touch it."""
    _check(who)
    agent_url = await views.harness_agent(task_id)
    check_places(_bare(who), [Place(QUEUE, None, agent_url.rstrip("/"))])
    return agent_url
