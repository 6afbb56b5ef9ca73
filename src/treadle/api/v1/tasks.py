"""`/v1/tasks`: put tasks on queues, see how they are now, and get their results."""

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import anyio
from fastapi import APIRouter, Header, Query, Request
from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.responses import Response

from treadle.api.access import (
    App,
    Caller,
    Db,
    Principal,
    check_found,
    check_options,
    check_references,
    check_seen,
    check_token_valid,
    check_touched,
    is_restricted,
    own_name,
    own_project,
    queues_of,
    redact_reasons,
    requires,
)
from treadle.api.batch import BatchedTask, BatchKey, batcher_of, enqueue_all
from treadle.api.bodies import INT64, Body, Id, Moment, Name, Object, Seconds, Text, Usd
from treadle.api.idempotency import Once
from treadle.api.long_poll import LONGEST_S, cancel_on_disconnect
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.quick import Quick
from treadle.api.responses import MEDIA_TYPE, json_response, json_row, json_rows
from treadle.db.database import Database
from treadle.json import encode

BATCH = 1000
Status = Literal[
    "created",
    "pending",
    "ready",
    "claimed",
    "running",
    "validating",
    "blocked",
    "retrying",
    "completed",
    "dead_lettered",
    "cancelled",
]
Tier = Literal["critical", "high", "normal", "low", "background"]
Names = Annotated[list[Name], Field(max_length=50)]
Queues = Annotated[list[Name], Field(min_length=1, max_length=100)]
Documents = Annotated[list[Object], Field(max_length=50)]
router = APIRouter(prefix="/v1/tasks", tags=["tasks"])
busy = APIRouter(prefix="/v1/tasks", tags=["tasks"], route_class=Quick)
_NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "It is as the ETag says."}}


class NewTask(Body):
    """A task to put on a queue; what is left out comes from its type, then its queue."""

    queue: Name = "default"
    type: Name
    spec: Object = Field(default_factory=dict, description="What the handler gets.")
    idempotency_key: Name | None = Field(
        None, description="One task for a key; a repeat gets that task and `created` is false."
    )
    dedupe: bool | None = Field(None, description="Make the key from the content.")
    priority: int | None = Field(None, ge=0, le=100, description="0 is the most urgent.")
    urgency: int | None = Field(None, ge=0, le=100)
    tier: Tier | None = None
    run_at: Moment | None = None
    delay_s: Seconds | None = None
    hold: bool | None = Field(None, description="Wait until it is released.")
    deadline_at: Moment | None = None
    timeout_s: Seconds | None = None
    max_attempts: int | None = Field(None, ge=1, le=1000)
    ageing_rate: float | None = Field(None, ge=0, le=1000)
    retry: Object | None = None
    capabilities: Names | None = None
    assigned_agent: Name | None = None
    consumer: Name | None = None
    title: Text | None = Field(None, max_length=1000)
    tags: Names | None = None
    created_by: Name | None = None
    source: Name | None = None
    source_job: Name | None = None
    external_ref: Text | None = Field(None, max_length=2000)
    notes: Text | None = Field(None, max_length=20_000)
    parent_id: Id | None = None
    project_id: Id | None = None
    project: Name | None = None
    max_cost_usd: Usd | None = None
    max_tokens: int | None = Field(None, ge=0, le=INT64)
    on_budget: Literal["ask", "fail"] | None = None
    validation: Documents | None = None
    report: Literal["required", "optional"] | None = None
    models: Names | None = None
    fallback_models: Names | None = None
    concurrency_key: Name | None = None
    concurrency_limit: int | None = Field(None, ge=1, le=1_000_000)
    gates: Names | None = None

    def options(self, by: str) -> dict[str, Any]:
        """What was said besides queue, type, spec and key; `by` made it unless it says who."""
        given = self.model_dump(exclude_unset=True, exclude_none=True, exclude=_APART)
        given.setdefault("created_by", by)
        return given


_APART = {"queue", "type", "spec", "idempotency_key"}


class NewTasks(Body):
    """Tasks that are stored together, or not at all."""

    tasks: list[NewTask] = Field(min_length=1, max_length=BATCH)


class CreatedTask(BaseModel):
    """The task; `created` is false when one with its key was there."""

    id: UUID
    created: bool


class CreatedTasks(BaseModel):
    """One for each task of the request, in its order."""

    items: list[CreatedTask]


class TaskRow(BaseModel):
    """A task as lists show it."""

    id: UUID
    queue: str
    type: str
    name: str | None
    title: str | None
    status: Status
    priority: int
    effective_priority: float
    attempt: int
    max_attempts: int
    agent_id: str | None
    assigned_agent: str | None
    progress: Any
    failure_class: str | None
    failure_reason: str | None
    tags: list[str] | None
    dag_id: UUID | None
    project_id: UUID | None
    parent_id: UUID | None
    idempotency_key: str | None
    run_at: datetime | None
    retry_at: datetime | None
    deadline_at: datetime | None
    created_at: datetime
    created_by: str | None
    started_at: datetime | None
    completed_at: datetime | None
    cost_usd: float


class TaskDetails(TaskRow):
    """A task with everything about it."""

    ageing_rate: float
    critical_path: int | None
    spec: Object
    inputs: Object | None
    output: Any
    output_ref: str | None
    artifacts: Any
    validation: list[Object] | None
    report: Literal["required", "optional"]
    decision_report: Any
    outcome: str | None
    poison_pill: bool
    models: list[str] | None
    fallback_models: list[str] | None
    attempt_notes: list[Object] | None
    rate_limits: int
    retry: Object
    timeout_s: float | None
    claimed_at: datetime | None
    heartbeat_at: datetime | None
    lease_until: datetime | None
    capabilities: list[str]
    gates: list[str]
    concurrency_key: str | None
    slot: str | None
    depends_on: list[UUID]
    blocked_by: list[UUID]
    forked_from: UUID | None
    consumer: str | None
    consumed_at: datetime | None
    external_ref: str | None
    source: str | None
    source_job: str | None
    notes: str | None
    completed_by: str | None
    max_cost_usd: float | None
    reserved_usd: float
    max_tokens: int | None
    on_budget: str | None
    budget_id: int | None
    input_tokens: int
    output_tokens: int


class TaskReason(BaseModel):
    """A reason why a task is not running now."""

    sentence: str
    reason: str
    until: datetime | None
    detail: Any


class Reasons(BaseModel):
    """Every reason that holds, the weightiest first."""

    items: list[TaskReason]


class Attempt(BaseModel):
    """One try at a task: who had it, and how it ended."""

    task_id: UUID
    attempt: int
    agent_id: str | None
    claimed_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    outcome: str | None
    failure_class: str | None = Field(alias="class")
    reason: str | None
    error: str | None
    cost_usd: float | None
    model: str | None
    feedback: Any


class Attempts(BaseModel):
    """The oldest first."""

    items: list[Attempt]


class StepRow(BaseModel):
    """What a task has done and need not do again."""

    seq: int
    name: str
    kind: str
    input: str | None
    output: Any
    attempt: int
    agent_id: str | None
    saved_at: datetime
    run_s: float | None
    cost_usd: float


class Steps(BaseModel):
    """In the order in which they were saved."""

    items: list[StepRow]


class ArtifactRow(BaseModel):
    """A file of a task; its content is at `uri`, or comes from GET /v1/artifacts/{id}/content."""

    id: UUID
    name: str
    uri: str
    media_type: str | None
    bytes: int | None
    sha256: str | None
    attempt: int | None


class Artifacts(BaseModel):
    """The oldest first."""

    items: list[ArtifactRow]


class EventRow(BaseModel):
    """Something that happened to a task."""

    id: int
    at: datetime
    kind: str
    task_id: UUID | None
    dag_id: UUID | None
    queue: str | None
    actor: str | None
    key: str | None
    data: Any


class Result(BaseModel):
    """How a task ended; with 202 it has not, and the rest is null."""

    id: UUID
    status: Status
    output: Any = None
    failure_class: str | None = None
    failure_reason: str | None = None


@busy.post(
    "",
    status_code=201,
    response_model=CreatedTask,
    responses={
        200: {"model": CreatedTask, "description": "A task with this key was there."},
        **answers(404, 409),
    },
    dependencies=[requires("enqueue")],
)
async def enqueue(task: NewTask, request: Request, once: Once) -> Response:
    """Put one task on a queue."""
    options = _checked(task, once.who)
    new = BatchedTask(encode(task.spec), task.idempotency_key)
    place = BatchKey(task.queue, task.type, encode(options, name="task"))

    async def effect(db: Database) -> Response:
        await check_references(once.who, db, [options])
        if once.keyed:
            [made] = await enqueue_all(db, place, [new])
        else:
            made = await batcher_of(request).enqueue(place, new)
        await check_found(once.who, db, [made])
        headers = {"Location": f"/v1/tasks/{made.id}"}
        body = {"id": made.id, "created": made.created}
        return json_response(body, 201 if made.created else 200, headers)

    return await once(effect)


@router.post(
    "/batch",
    status_code=201,
    response_model=CreatedTasks,
    responses=answers(404, 409),
    dependencies=[requires("enqueue")],
)
async def enqueue_many(batch: NewTasks, who: Caller, once: Once) -> Response:
    """Put up to 1000 tasks on queues: all of them, or none when one is refused."""
    tasks = [
        {
            **_checked(task, who),
            "queue": task.queue,
            "type": task.type,
            "spec": task.spec,
            "idempotency_key": task.idempotency_key,
        }
        for task in batch.tasks
    ]
    document = encode(tasks, name="tasks")

    async def effect(db: Database) -> Response:
        if not is_restricted(who):
            return json_response({"items": await db.tasks.enqueue(document)}, 201)
        await check_references(who, db, tasks)
        # What is found under a key may undo what was made before it.
        async with db.transaction() as held:
            made = await held.tasks.enqueue(document)
            await check_found(who, held, made)
        return json_response({"items": made}, 201)

    return await once(effect)


@router.get("", response_model=Listed[TaskRow], dependencies=[requires("read")])
async def list_tasks(
    db: Db,
    page: Page,
    who: Caller,
    *,
    queue: Name | None = None,
    status: Status | None = None,
    type: Name | None = None,
    project_id: UUID | None = None,
    dag_id: UUID | None = None,
    parent_id: UUID | None = None,
    agent: Annotated[Name | None, Query(description="Who has it now.")] = None,
    tag: Name | None = None,
) -> Response:
    """Tasks that fit, the newest first."""
    rows = await db.tasks.page(
        {
            "queue": queue,
            "status": status,
            "type": type,
            "project_id": project_id,
            "dag_id": dag_id,
            "parent_id": parent_id,
            "agent_id": agent,
        },
        queues=queues_of(who),
        project_id=who.project_id,
        agent=who.agent,
        tag=tag,
        after=page.after(UUID),
        limit=page.more,
    )
    return page.answer(rows, "id")


@router.get(
    "/{task_id}/why",
    response_model=Reasons,
    responses=answers(404),
    dependencies=[requires("read")],
)
async def why(task_id: UUID, db: Db, who: Caller) -> Response:
    """Why a task is not running now; there is always a reason."""
    await check_seen(who, db, task_id)
    reasons = await db.tasks.why(task_id)
    return json_response({"items": json_rows(await redact_reasons(who, db, reasons))})


@router.get(
    "/{task_id}/attempts",
    response_model=Attempts,
    responses=answers(404),
    dependencies=[requires("read")],
)
async def attempts(task_id: UUID, db: Db, who: Caller) -> Response:
    """Every attempt at a task: who had it, when, how it ended, what it cost."""
    await check_seen(who, db, task_id)
    return json_response({"items": json_rows(await db.tasks.history(task_id))})


@router.get(
    "/{task_id}/steps",
    response_model=Steps,
    responses=answers(404),
    dependencies=[requires("read")],
)
async def steps(task_id: UUID, db: Db, who: Caller) -> Response:
    """What a task has done and remembers."""
    await check_seen(who, db, task_id)
    return json_response({"items": json_rows(await db.steps.list(task_id))})


@router.get(
    "/{task_id}/events",
    response_model=Listed[EventRow],
    responses=answers(404),
    dependencies=[requires("read")],
)
async def events(task_id: UUID, db: Db, page: Page, who: Caller) -> Response:
    """What happened to a task, the newest first."""
    await check_seen(who, db, task_id)
    rows = await db.calls.page(
        "event_log",
        key="id",
        after=page.after(int),
        limit=page.more,
        newest=True,
        where={"task_id = {}": task_id},
    )
    return page.answer(rows, "id")


def _checked(task: NewTask, who: Principal) -> dict[str, Any]:
    """The options of a task that this caller may enqueue; a token's project is the default."""
    options = task.options(who.name)
    check_options(who, {**own_name(who), **options, "queue": task.queue})
    return own_project(who, options)


@router.get(
    "/{task_id}",
    response_model=TaskDetails,
    responses={**_NOT_MODIFIED, **answers(404)},
    dependencies=[requires("read")],
)
async def show(
    task_id: UUID,
    db: Db,
    who: Caller,
    known: Annotated[str | None, Header(alias="If-None-Match", max_length=2000)] = None,
) -> Response:
    """One task with everything about it; 304 when it is still as `If-None-Match` says."""
    await check_touched(who, db, task_id)
    task = json_row(await db.tasks.get(task_id))
    # Waiting alone changes its place, not the task.
    lasting = {name: value for name, value in task.items() if name != "effective_priority"}
    etag = f'W/"{hashlib.sha256(to_json(lasting)).hexdigest()[:32]}"'
    if known is not None and etag in (each.strip() for each in known.split(",")):
        return Response(status_code=304, headers={"ETag": etag})
    return Response(to_json(task), headers={"ETag": etag}, media_type=MEDIA_TYPE)


@router.get(
    "/{task_id}/artifacts",
    response_model=Artifacts,
    responses=answers(404),
    dependencies=[requires("read")],
)
async def artifacts(task_id: UUID, db: Db, who: Caller) -> Response:
    """The files of a task, of all its attempts."""
    await check_seen(who, db, task_id)
    return json_response({"items": await db.artifacts.of_task(task_id)})


@router.get(
    "/{task_id}/result",
    response_model=Result,
    responses={
        202: {"model": Result, "description": "It has not ended in this time."},
        **answers(404),
    },
    dependencies=[requires("read")],
)
async def result(
    task_id: UUID,
    request: Request,
    app: App,
    db: Db,
    who: Caller,
    wait_seconds: Annotated[float, Query(ge=0, le=LONGEST_S, allow_inf_nan=False)] = 0,
) -> Response:
    """How a task ended; waits for the end so many seconds, or until the server stops."""
    await check_seen(who, db, task_id)
    if wait_seconds > 0:
        stopping = request.app.state.stopping
        async with cancel_on_disconnect(request):
            with anyio.move_on_after(wait_seconds) as waiting, _until(stopping, waiting):
                await app.results.wait(task_id)
        await check_token_valid(request)
    task = await db.tasks.get(task_id)
    shown = {name: task[name] for name in Result.model_fields}
    return json_response(shown, 202 if task["completed_at"] is None else 200)


@contextmanager
def _until(event: anyio.Event, scope: anyio.CancelScope) -> Iterator[None]:
    """End a scope when the event comes."""

    async def watch() -> None:
        await event.wait()
        scope.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
    finally:
        watcher.cancel()
