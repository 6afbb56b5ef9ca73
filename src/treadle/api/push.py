"""The queue API: prompts wait in queue `push` until an agent is idle."""

from datetime import datetime
from typing import Annotated, Any, Literal

import structlog
from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field, StrictBool, StrictInt
from starlette.responses import Response

from treadle import __version__
from treadle.api.access import PUSH, Access, Config, Public, requires
from treadle.api.bodies import Visible, json_response, json_row
from treadle.api.idempotency import Once
from treadle.api.problems import answers
from treadle.db.database import Database
from treadle.db.push import Submitted
from treadle.errors import QueueFull
from treadle.settings import Settings

State = Literal["pending", "dispatching", "working", "completed", "failed", "cancelled"]
MAX_TIMEOUT_S = 31_536_000
log = structlog.get_logger(__name__)
router = APIRouter(tags=["queue API"])
Add = Annotated[Access, requires("enqueue", on=PUSH)]
Read = Annotated[Access, requires("read", on=PUSH)]

# The default source.
OTHERS = "api"
QueueId = Annotated[
    str, Path(max_length=200, examples=["queue-0198f3c2-7d1e-7b2a-9c3d-4e5f60718293"])
]


class Prompt(BaseModel):
    """A prompt for an agent. Unknown fields are ignored."""

    prompt: Visible = Field(min_length=1, max_length=1_000_000)
    model: str | None = Field(None, max_length=200)
    timeout_seconds: StrictInt | None = Field(
        None, ge=0, le=MAX_TIMEOUT_S, description="0 means the default."
    )
    session_id: str | None = Field(None, max_length=500)
    project: dict[str, Any] | None = Field(
        None, description="What the agent should know about the project."
    )
    env: dict[str, str] | None = Field(
        None, description="Environment variables for the process of the agent."
    )
    thinking: StrictBool | None = None


class Submission(Prompt):
    """A prompt for an agent, and its source."""

    source: str | None = Field(
        None, max_length=100, description="web, scheduler, cli or another word; api by default."
    )
    source_job: str | None = Field(None, max_length=200, description="The job of a scheduler.")


class Queued(BaseModel):
    """The position of a new entry."""

    queue_id: str
    position: int = Field(description="1 is next.")
    state: State


class QueuedTask(BaseModel):
    """An entry of the queue; empty fields are left out."""

    queue_id: str
    state: State
    position: int | None = Field(None, description="Only for pending entries; 1 is next.")
    created_at: datetime
    prompt: str
    model: str | None = None
    timeout_seconds: int | None = None
    session_id: str | None = None
    project: dict[str, Any] | None = None
    env: dict[str, str] | None = None
    thinking: bool | None = None
    dispatched_at: datetime | None = Field(None, description="When it was sent to its agent.")
    task_id: str | None = Field(None, description="The id that the agent gave the task.")
    agent_url: str | None = None
    attempts: int
    last_error: str | None = None
    source: str
    source_job: str | None = None


class PushQueue(BaseModel):
    """The active entries: those with agents, then the pending ones in order."""

    depth: int = Field(description="The number of pending entries.")
    max_size: int
    tasks: list[QueuedTask]


class CancelledEntry(BaseModel):
    """A cancelled entry."""

    queue_id: str
    state: State


class QueueStatus(BaseModel):
    """Counts of the queue."""

    depth: int
    max_size: int
    oldest_age_seconds: int = Field(description="Age of the oldest pending entry; 0 without one.")
    dispatched_count: int = Field(
        description="The number of entries that are dispatching or working."
    )


class Job(BaseModel):
    """A schedule that submits to the queue."""

    name: str
    last_status: str | None = Field(description="queued, skipped_queue_full, and so on.")
    last_queue_id: str | None
    last_run: datetime | None
    next_run: datetime | None


class Status(BaseModel):
    """The server and its queue."""

    type: str = "view"
    interfaces: list[str] = ["statusable", "observable", "taskable"]
    version: str
    queue: QueueStatus
    jobs: list[Job] = Field(
        [], description="Schedules, for callers with the scope read; left out if empty."
    )


@router.post(
    "/api/queue/task",
    status_code=201,
    response_model=Queued,
    responses=answers(409, 503),
)
async def submit(task: Submission, access: Add, config: Config, once: Once) -> Response:
    """Submit a prompt.

    It is appended to the queue. The response is 503 when the queue is full, and nothing is stored.
    """
    return await _submit(
        task, config, once, source=task.source or OTHERS, source_job=task.source_job
    )


@router.post(
    "/api/task",
    status_code=201,
    response_model=Queued,
    responses=answers(409, 503),
)
async def submit_from_web(task: Prompt, access: Add, config: Config, once: Once) -> Response:
    """Submit a prompt from a web page.

    Its source is `web`.
    """
    return await _submit(task, config, once, source="web")


@router.get(
    "/api/queue",
    response_model_exclude_none=True,
)
async def listing(
    access: Read, config: Config, limit: Annotated[int, Query(ge=1, le=10_000)] = 1000
) -> PushQueue:
    """List active entries.

    Entries with agents come first, then the pending ones with their positions.
    """
    rows = await access.db.push.list(limit)
    return PushQueue(
        depth=rows[0]["depth"] if rows else 0,
        max_size=config.queue_max_size,
        tasks=[QueuedTask(**json_row(row)) for row in rows],
    )


@router.get(
    "/api/queue/{queue_id}",
    response_model_exclude_none=True,
    responses=answers(404),
)
async def entry(queue_id: QueueId, access: Read) -> QueuedTask:
    """Get an entry.

    The entry may be in any state.
    """
    return QueuedTask(**json_row(await access.db.push.get(queue_id)))


@router.post(
    "/api/queue/{queue_id}/cancel",
    responses=answers(404, 409),
)
async def cancel(queue_id: QueueId, access: Add) -> CancelledEntry:
    """Cancel an entry.

    The entry is active. If an agent has it, it is also cancelled at the agent.
    """
    state = await access.db.push.cancel(
        queue_id, "cancelled through the queue API", access.caller.name
    )
    return CancelledEntry.model_validate({"queue_id": queue_id, "state": state})


@router.get("/status", response_model=Status, responses=answers(503))
async def status(access: Public, config: Config) -> Response:
    """Get the status of the server.

    The response has the status of the server and of its queue. It needs no token; with the scope
    `read` it shows more.
    """
    found = await access.db.push.summary()
    queue = QueueStatus(max_size=config.queue_max_size, **found)
    told = (
        access.caller.may("read")
        and access.caller.sees("push")
        and access.caller.project_id is None
    )
    jobs = [Job(**row) for row in await access.db.push.jobs()] if told else []
    shown = Status(version=__version__, queue=queue, jobs=jobs)
    return json_response(shown.model_dump(exclude=None if jobs else {"jobs"}))


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
            job=source_job or None,
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
    # Logged after the commit; a repeat has added nothing.
    if made is not None:
        log.info("queue.task_added", queue_id=made.queue_id, depth=made.depth, source=source)
    return given
