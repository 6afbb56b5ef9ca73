"""The queue interface: prompts wait in queue `push` until an agent is free for them."""

from datetime import datetime
from typing import Annotated, Any, Literal

import structlog
from fastapi import APIRouter, Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt
from starlette.responses import Response

from treadle import __version__
from treadle.api.access import Caller, Config, Db, Principal, requires
from treadle.api.idempotency import Once
from treadle.api.problems import answers
from treadle.api.responses import json_response, json_row
from treadle.db.database import Database
from treadle.db.push import Submitted
from treadle.errors import QueueFull
from treadle.settings import Settings

State = Literal["pending", "dispatching", "working", "completed", "failed", "cancelled"]
MAX_TIMEOUT_S = 31_536_000
log = structlog.get_logger(__name__)
router = APIRouter(tags=["queue"])

QUEUE = "push"
# The source of what does not say where it comes from.
OTHERS = "api"
QueueId = Annotated[
    str, Path(max_length=200, examples=["queue-0198f3c2-7d1e-7b2a-9c3d-4e5f60718293"])
]


def _visible(text: str) -> str:
    if not text.strip():
        raise ValueError("it must have something in it")
    return text


class Prompt(BaseModel):
    """What an agent is asked. Fields that are not known are ignored."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"prompt": "Fix the tests", "model": "sonnet", "timeout_seconds": 1800}]
        }
    )

    prompt: Annotated[str, AfterValidator(_visible)] = Field(min_length=1, max_length=1_000_000)
    model: str | None = Field(None, max_length=200)
    timeout_seconds: StrictInt | None = Field(
        None, ge=0, le=MAX_TIMEOUT_S, description="0 is as if it were not given."
    )
    session_id: str | None = Field(None, max_length=500)
    project: dict[str, Any] | None = Field(
        None, description="What the agent should know of the project."
    )
    env: dict[str, str] | None = Field(None, description="Variables for the agent's process.")
    thinking: StrictBool | None = None


class Submission(Prompt):
    """What an agent is asked, and who asks."""

    source: str | None = Field(
        None, max_length=100, description="web, scheduler, cli or another word; api by default."
    )
    source_job: str | None = Field(None, max_length=200, description="The job of a scheduler.")


class Queued(BaseModel):
    """Where a new entry stands."""

    queue_id: str
    position: int = Field(description="1 is next.")
    state: State


class QueuedTask(BaseModel):
    """An entry of the queue; what is empty is left out."""

    queue_id: str
    state: State
    position: int | None = Field(None, description="Only of what is pending; 1 is next.")
    created_at: datetime
    prompt: str
    model: str | None = None
    timeout_seconds: int | None = None
    session_id: str | None = None
    project: dict[str, Any] | None = None
    env: dict[str, str] | None = None
    thinking: bool | None = None
    dispatched_at: datetime | None = Field(None, description="When it was sent to its agent.")
    task_id: str | None = Field(None, description="The agent's own id of the task.")
    agent_url: str | None = None
    attempts: int
    last_error: str | None = None
    source: str
    source_job: str | None = None


class Queue(BaseModel):
    """What has not ended: what agents have, then what waits, in order."""

    depth: int = Field(description="How many are pending.")
    max_size: int
    tasks: list[QueuedTask]


class Cancelled(BaseModel):
    """An entry that was cancelled."""

    queue_id: str
    state: State


class QueueStatus(BaseModel):
    """The queue in four numbers."""

    depth: int
    max_size: int
    oldest_age_seconds: int = Field(description="Of the oldest that is pending; 0 without one.")
    dispatched_count: int = Field(description="How many are dispatching or working.")


class Job(BaseModel):
    """A schedule that submits to the queue."""

    name: str
    last_status: str | None = Field(description="queued, skipped_queue_full, and so on.")
    last_queue_id: str | None
    last_run: datetime | None
    next_run: datetime | None


class Status(BaseModel):
    """What this server is, and how its queue stands."""

    type: str = "view"
    interfaces: list[str] = ["statusable", "observable", "taskable"]
    version: str
    queue: QueueStatus
    jobs: list[Job] = Field([], description="Where there are any, for callers that may read.")


@router.post(
    "/api/queue/task",
    status_code=201,
    response_model=Queued,
    dependencies=[requires("enqueue")],
    responses=answers(409, 503),
)
async def submit(task: Submission, who: Caller, config: Config, once: Once) -> Response:
    """Put a prompt at the end of the queue. 503 when the queue is full: nothing is stored."""
    _check(who)
    return await _submit(
        task, config, once, source=task.source or OTHERS, source_job=task.source_job
    )


@router.post(
    "/api/task",
    status_code=201,
    response_model=Queued,
    dependencies=[requires("enqueue")],
    responses=answers(409, 503),
)
async def submit_from_web(task: Prompt, who: Caller, config: Config, once: Once) -> Response:
    """The same for a web page: the source is `web`."""
    _check(who)
    return await _submit(task, config, once, source="web")


@router.get(
    "/api/queue",
    response_model_exclude_none=True,
    dependencies=[requires("read")],
)
async def listing(
    who: Caller,
    db: Db,
    config: Config,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Queue:
    """What has not ended: what agents have, then what waits with its positions."""
    _check(who)
    rows = await db.push.list(limit)
    return Queue(
        depth=rows[0]["depth"] if rows else 0,
        max_size=config.queue_max_size,
        tasks=[QueuedTask(**json_row(row)) for row in rows],
    )


@router.get(
    "/api/queue/{queue_id}",
    response_model_exclude_none=True,
    dependencies=[requires("read")],
    responses=answers(404),
)
async def entry(queue_id: QueueId, who: Caller, db: Db) -> QueuedTask:
    """One entry, whether it waits, is with an agent or has ended."""
    _check(who)
    return QueuedTask(**json_row(await db.push.get(queue_id)))


@router.post(
    "/api/queue/{queue_id}/cancel",
    dependencies=[requires("enqueue")],
    responses=answers(404, 409),
)
async def cancel(queue_id: QueueId, who: Caller, db: Db) -> Cancelled:
    """Cancel what has not ended. What an agent has is cancelled at once; the agent is told."""
    _check(who)
    state = await db.push.cancel(queue_id, "cancelled by the queue interface", who.name)
    return Cancelled.model_validate({"queue_id": queue_id, "state": state})


@router.get("/status", response_model=Status, responses=answers(503))
async def status(who: Caller, db: Db, config: Config) -> Response:
    """What this server is and how its queue stands; answered without a token."""
    found = await db.push.summary()
    queue = QueueStatus(max_size=config.queue_max_size, **found)
    told = who.may("read") and who.sees(QUEUE) and who.project_id is None
    jobs = [Job(**row) for row in await db.push.jobs()] if told else []
    shown = Status(version=__version__, queue=queue, jobs=jobs)
    return json_response(shown.model_dump(exclude=None if jobs else {"jobs"}))


def _check(who: Principal) -> None:
    """A token for other queues, or for one project, is not for this queue."""
    who.check_queue(QUEUE)
    who.check_project(None)


async def _submit(
    task: Prompt, config: Settings, once: Once, *, source: str, source_job: str | None = None
) -> Response:
    request = task.model_dump(include=set(Prompt.model_fields), exclude_none=True)
    made: Submitted | None = None

    async def effect(db: Database) -> Response:
        nonlocal made
        made = await db.push.submit(
            request,
            source=source,
            source_job=source_job or None,
            max_depth=config.queue_max_size,
            max_attempts=config.queue_max_attempts,
        )
        return json_response(
            {"queue_id": made.queue_id, "position": made.position, "state": made.state}, 201
        )

    try:
        given = await once(effect)
    except QueueFull as error:
        log.warning("queue.submit_rejected", reason="queue_full", depth=error.detail.get("depth"))
        raise
    # Now it is there; a repeat has added nothing.
    if made is not None:
        log.info("queue.task_added", queue_id=made.queue_id, depth=made.depth, source=source)
    return given
