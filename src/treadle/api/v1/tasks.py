"""`/v1/tasks`: enqueue and read tasks; cancel, retry, prioritise, release and fork them."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

import anyio
from fastapi import APIRouter, Header, Query, Request
from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.responses import Response

from treadle.api.access import (
    FILTER,
    LIST,
    NEW,
    TASK,
    Access,
    access_of,
    check_token_valid,
    requires,
)
from treadle.api.batch import BatchedTask, BatchKey, batcher_of, enqueue_all
from treadle.api.bodies import (
    MEDIA_TYPE,
    Body,
    DirectRoute,
    Id,
    Name,
    Object,
    Text,
    body_schema,
    json_response,
    json_row,
    json_rows,
    read_body,
    with_columns,
    with_fields,
)
from treadle.api.idempotency import KEY_PARAMETER, Once, read_key
from treadle.api.long_poll import LONGEST_S, cancel_on_disconnect
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.v1.events import EventDetails
from treadle.db.database import Database
from treadle.db.reach import Reach
from treadle.errors import IllegalTransition, InvalidArgument, TaskNotFound
from treadle.fields import (
    Status,
    detail_fields,
    editable_fields,
    list_fields,
    priority_fields,
    settable_fields,
)
from treadle.json import encode
from treadle.models import BulkCount as Counted

BATCH = 1000
router = APIRouter(prefix="/v1/tasks", tags=["tasks"])
busy = APIRouter(prefix="/v1/tasks", tags=["tasks"], route_class=DirectRoute)
ENQUEUE = requires("enqueue", on=NEW)
New = Annotated[Access, ENQUEUE]
List = Annotated[Access, requires("read", on=LIST)]
Read = Annotated[Access, requires("read", on=TASK)]
Operate = Annotated[Access, requires("operate", on=TASK)]
OperateMany = Annotated[Access, requires("operate", on=FILTER)]
Fork = Annotated[Access, requires("enqueue", on=TASK)]
_SCALES = {field.wire for field in priority_fields()}
_NOT_MODIFIED: dict[int | str, dict[str, Any]] = {
    304: {"description": "The task still has this ETag."}
}


@with_fields(settable_fields())
class NewTask(Body):
    """A task to put on a queue; what is left out comes from its type, then its queue."""

    queue: str = "default"
    type: str
    spec: Object = Field(default_factory=dict)
    idempotency_key: str | None = None

    def options(self, by: str) -> dict[str, Any]:
        """The options besides queue, type, spec and key; `by` is the default of created_by."""
        sent = self.model_dump(exclude_unset=True, exclude=_APART)
        # A field that is null counts as absent. Inside a field null is kept: retry_on may be null.
        given = {name: value for name, value in sent.items() if value is not None}
        given.setdefault("created_by", by)
        return given


_APART = {"queue", "type", "spec", "idempotency_key"}


class NewTasks(Body):
    """Tasks that are stored together or not at all."""

    tasks: list[NewTask] = Field(min_length=1, max_length=BATCH)


class CreatedTask(BaseModel):
    """The task; `created` is false when a task with its key existed."""

    id: UUID
    created: bool


class CreatedTasks(BaseModel):
    """The tasks in the order of the request."""

    items: list[CreatedTask]


@with_columns(list_fields())
class TaskRow(BaseModel):
    """A task as lists show it."""


@with_columns(detail_fields())
class TaskDetails(TaskRow):
    """A task with everything about it."""


class TaskReason(BaseModel):
    """A reason why a task is not running now."""

    sentence: str
    reason: str
    until: datetime | None
    detail: Any


class Reasons(BaseModel):
    """All current reasons, the most important first."""

    items: list[TaskReason]


class Attempt(BaseModel):
    """An attempt at a task: its agent and its outcome."""

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
    """Attempts, oldest first."""

    items: list[Attempt]


class StepRow(BaseModel):
    """A saved step of a task."""

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
    """The steps in the order in which they were saved."""

    items: list[StepRow]


class ArtifactRow(BaseModel):
    """A file of a task; its content is at `uri`, or at GET /v1/artifacts/{id}/content."""

    id: UUID
    name: str
    uri: str
    media_type: str | None
    bytes: int | None
    sha256: str | None
    attempt: int | None


class Artifacts(BaseModel):
    """Files, oldest first."""

    items: list[ArtifactRow]


class Result(BaseModel):
    """The result of a task; with 202 it has not ended, and the rest is null."""

    id: UUID
    status: Status
    output: Any = None
    failure_class: str | None = None
    failure_reason: str | None = None


class CancelTask(Body):
    """Why the task is cancelled."""

    reason: Text | None = Field(None, max_length=2000)


class CancelledTask(BaseModel):
    """The verdict, and the dependents and subtasks that were cancelled too."""

    id: UUID
    verdict: Literal["cancelled", "already"]
    cascaded: list[UUID]


@with_fields(editable_fields())
class TaskChanges(Body):
    """Fields to change; absent fields keep their values."""

    spec: Object | None = Field(
        None, description="Arguments to change; the others keep their values."
    )


class RetryChanges(TaskChanges):
    """Fields and single arguments to change before a task runs again."""

    set: Object | None = Field(None, description='Single values: {"options.retries": 0}.')
    unset: list[Name] | None = Field(None, max_length=100)


class RetryTask(Body):
    """A retry of a task that was dead-lettered or cancelled, or that waits for a retry."""

    changes: RetryChanges | None = None
    note: Text | None = Field(None, max_length=2000)


class TaskStatus(BaseModel):
    """The current status of the task."""

    id: UUID
    status: Status


@with_fields(priority_fields())
class SetPriority(Body):
    """One of `priority`, `tier` and `urgency`, and why it changes."""

    reason: Text | None = Field(None, max_length=2000)


class PrioritisedTask(BaseModel):
    """The priority that the task has now; `already` when it had it before."""

    id: UUID
    verdict: Literal["prioritised", "already"]
    priority: int


class ForkTask(Body):
    """A new task that reuses the steps before `from_step`."""

    from_step: Name
    changes: TaskChanges | None = None


class Filter(Body):
    """Tasks that match all fields; at least one field is required."""

    queue: Name | None = None
    type: Name | None = None
    status: Status | Annotated[list[Status], Field(min_length=1, max_length=20)] | None = None
    tag: Name | None = None
    dag_id: Id | None = None
    project_id: Id | None = None
    agent: Name | None = None
    failure_class: Name | None = None
    reason: Name | None = None
    created_before: Name | None = Field(None, description="A time, or an age such as 2h.")
    created_after: Name | None = None
    created_by: Name | None = None
    source: Name | None = None


@with_fields(priority_fields())
class Bulk(Body):
    """Cancel, retry or prioritise the tasks of a filter; a dry run only counts them.

    With the action `prioritise`, give one of `priority`, `tier` and `urgency`.
    """

    action: Literal["cancel", "retry", "prioritise"]
    filter: Filter
    dry_run: bool = False
    limit: int = Field(10_000, ge=1, le=100_000)
    reason: Text | None = Field(None, max_length=2000)


class BulkCount(BaseModel):
    """The number of tasks with the same queue, type, status and verdict."""

    queue: str
    type: str
    status: str
    verdict: str
    why: str | None
    tasks: int


class BulkResult(BaseModel):
    """What was done, or with `dry_run` what would be done."""

    dry_run: bool
    items: list[BulkCount]


@busy.post(
    "",
    status_code=201,
    response_model=CreatedTask,
    responses={
        200: {"model": CreatedTask, "description": "A task with this key existed."},
        **answers(404, 409),
    },
    dependencies=[ENQUEUE],
    openapi_extra={**body_schema(NewTask), "parameters": [KEY_PARAMETER]},
)
async def enqueue(request: Request) -> Response:
    """Enqueue a task.

    The response is 201 with `Location`, or 200 with `created: false` if a task with its
    `idempotency_key` exists. What the body leaves out comes from the type, then from the queue.
    """
    access, once = access_of(request), read_key(request)
    task = await read_body(request, NewTask)
    [options] = await access.new([{**task.options(access.caller.name), "queue": task.queue}])
    del options["queue"]
    new = BatchedTask(encode(task.spec), task.idempotency_key)
    place = BatchKey(task.queue, task.type, encode(options, name="task"))

    async def effect(db: Database) -> Response:
        if once.keyed:
            [made] = await enqueue_all(db, place, [new])
        else:
            made = await batcher_of(request).enqueue(place, new)
        await access.check_found(db, [made])
        headers = {"Location": f"/v1/tasks/{made.id}"}
        body = {"id": made.id, "created": made.created}
        return json_response(body, 201 if made.created else 200, headers)

    return await once(effect)


@router.post(
    "/batch",
    status_code=201,
    response_model=CreatedTasks,
    responses=answers(404, 409),
)
async def enqueue_many(batch: NewTasks, access: New, once: Once) -> Response:
    """Enqueue up to 1000 tasks.

    Either all of them are stored, or none when one is rejected.
    """
    given = [
        {
            **task.options(access.caller.name),
            "queue": task.queue,
            "type": task.type,
            "spec": task.spec,
            "idempotency_key": task.idempotency_key,
        }
        for task in batch.tasks
    ]
    document = encode(await access.new(given), name="tasks")

    async def effect(db: Database) -> Response:
        if not access.view.is_restricted:
            return json_response({"items": await db.tasks.enqueue(document)}, 201)
        # A key of a task that is not visible undoes what was created before it.
        async with db.transaction() as held:
            made = await held.tasks.enqueue(document)
            await access.check_found(held, made)
        return json_response({"items": made}, 201)

    return await once(effect)


@router.get("", response_model=Listed[TaskRow])
async def list_tasks(
    access: List,
    page: Page,
    *,
    queue: Name | None = None,
    status: Status | None = None,
    type: Name | None = None,
    project_id: UUID | None = None,
    dag_id: UUID | None = None,
    parent_id: UUID | None = None,
    agent: Annotated[Name | None, Query(description="The agent that has the task now.")] = None,
    tag: Name | None = None,
) -> Response:
    """List tasks.

    The newest come first. Each parameter is a filter; a task must match all of them.
    """
    rows = await access.db.tasks.page(
        access.view,
        {
            "queue": queue,
            "status": status,
            "type": type,
            "project_id": project_id,
            "dag_id": dag_id,
            "parent_id": parent_id,
            "agent_id": agent,
        },
        tag=tag,
        after=page.after(UUID),
        limit=page.more,
    )
    return page.answer(rows, "id")


@router.get(
    "/{task_id}/why",
    response_model=Reasons,
    responses=answers(404),
)
async def why(task_id: UUID, access: Read) -> Response:
    """Explain why a task is not running.

    The response has every reason that applies now, the most important first.
    """
    reasons = await access.db.tasks.why(task_id)
    return json_response({"items": json_rows(await access.redact_reasons(reasons))})


@router.get(
    "/{task_id}/attempts",
    response_model=Attempts,
    responses=answers(404),
)
async def attempts(task_id: UUID, access: Read) -> Response:
    """List the attempts of a task.

    Each has its agent, times, outcome and cost; the oldest come first.
    """
    await access.db.tasks.check_exists(task_id)
    return json_response({"items": json_rows(await access.db.tasks.history(task_id))})


@router.get(
    "/{task_id}/steps",
    response_model=Steps,
    responses=answers(404),
)
async def steps(task_id: UUID, access: Read) -> Response:
    """List the saved steps of a task.

    They are in the order in which they were saved.
    """
    await access.db.tasks.check_exists(task_id)
    return json_response({"items": json_rows(await access.db.steps.list(task_id))})


@router.get(
    "/{task_id}/events",
    response_model=Listed[EventDetails],
    responses=answers(404),
)
async def events(task_id: UUID, access: Read, page: Page) -> Response:
    """List the events of a task.

    The newest come first.
    """
    await access.db.tasks.check_exists(task_id)
    rows = await access.db.events.page(
        Reach.ALL, task_id=task_id, after=page.after(int), limit=page.more
    )
    return page.answer(rows, "id")


@router.get(
    "/{task_id}",
    response_model=TaskDetails,
    responses={**_NOT_MODIFIED, **answers(404)},
)
async def show(
    task_id: UUID,
    access: Read,
    known: Annotated[str | None, Header(alias="If-None-Match", max_length=2000)] = None,
) -> Response:
    """Get a task.

    The response has all its fields and an `ETag`. It is 304 if it still has the `ETag` of
    `If-None-Match`.
    """
    task = json_row(await access.db.tasks.get(task_id))
    # These change with time, without a change of the task.
    passing = ("effective_priority", "wait_s", "run_s")
    lasting = {name: value for name, value in task.items() if name not in passing}
    etag = f'W/"{hashlib.sha256(to_json(lasting)).hexdigest()[:32]}"'
    if known is not None and etag in (each.strip() for each in known.split(",")):
        return Response(status_code=304, headers={"ETag": etag})
    return Response(to_json(task), headers={"ETag": etag}, media_type=MEDIA_TYPE)


@router.get(
    "/{task_id}/artifacts",
    response_model=Artifacts,
    responses=answers(404),
)
async def artifacts(task_id: UUID, access: Read) -> Response:
    """List the files of a task.

    The list has the name, location, size and hash of the files of all attempts.
    """
    await access.db.tasks.check_exists(task_id)
    return json_response({"items": await access.db.artifacts.of_task(task_id)})


@router.get(
    "/{task_id}/result",
    response_model=Result,
    responses={
        202: {"model": Result, "description": "The task has not ended yet."},
        **answers(404),
    },
)
async def result(
    task_id: UUID,
    request: Request,
    access: Read,
    wait_seconds: Annotated[float, Query(ge=0, le=LONGEST_S, allow_inf_nan=False)] = 0,
) -> Response:
    """Get the result of a task.

    With `wait_seconds` (up to 30) the request waits for the task to end. The response is 202 if the
    task has not ended by then, or if the server stops.
    """
    if wait_seconds > 0:
        stopping = request.app.state.stopping
        async with cancel_on_disconnect(request):
            with anyio.move_on_after(wait_seconds) as waiting, _until(stopping, waiting):
                await access.app.results.wait(task_id)
        await check_token_valid(request)
    task = await access.db.tasks.get(task_id)
    shown = {name: task[name] for name in Result.model_fields}
    return json_response(shown, 202 if task["completed_at"] is None else 200)


@contextmanager
def _until(event: anyio.Event, scope: anyio.CancelScope) -> Iterator[None]:
    """Cancel a scope when the event is set."""

    async def watch() -> None:
        await event.wait()
        scope.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
    finally:
        watcher.cancel()


@router.post("/bulk", response_model=BulkResult, responses=answers(404))
async def bulk(asked: Bulk, access: OperateMany, once: Once) -> Response:
    """Cancel, retry or prioritise all tasks of a filter.

    `action` is `cancel`, `retry` or `prioritise`, with one of `priority`, `tier` and `urgency`.
    `dry_run` only counts the tasks.
    """
    access.check_filter(asked.filter.queue)
    filters = asked.filter.model_dump(exclude_none=True)
    scale = asked.model_dump(include=_SCALES, exclude_none=True)
    if scale and asked.action != "prioritise":
        raise InvalidArgument(
            f"{min(scale)} is for the action prioritise only", argument=min(scale)
        )

    async def effect(db: Database) -> Response:
        acts: dict[str, Callable[..., Awaitable[list[Counted]]]] = {
            "cancel": db.tasks.cancel_where,
            "retry": db.tasks.retry_where,
            "prioritise": partial(db.tasks.set_priority_where, **scale),
        }
        counts = await acts[asked.action](
            filters, asked.reason, access.caller.name, dry_run=asked.dry_run, limit=asked.limit
        )
        return json_response({"dry_run": asked.dry_run, "items": [asdict(each) for each in counts]})

    return await once(effect)


@router.post(
    "/{task_id}/cancel",
    response_model=CancelledTask,
    responses=answers(404, 409),
)
async def cancel(
    task_id: UUID, access: Operate, once: Once, asked: CancelTask | None = None
) -> Response:
    """Cancel a task.

    The tasks that depend on it are cancelled too.
    """
    reason = None if asked is None else asked.reason

    async def effect(db: Database) -> Response:
        verdicts = await db.tasks.cancel([task_id], reason, access.caller.name)
        verdict = verdicts.pop(task_id)
        if verdict not in ("cancelled", "already"):
            # Raises the reason.
            verdict = await db.tasks.cancel_one(task_id, reason, access.caller.name)
        return json_response({"id": task_id, "verdict": verdict, "cascaded": list(verdicts)})

    return await once(effect)


@router.post(
    "/{task_id}/retry",
    response_model=TaskStatus,
    responses=answers(404, 409),
)
async def retry(
    task_id: UUID, access: Operate, once: Once, asked: RetryTask | None = None
) -> Response:
    """Retry a task.

    A task that was dead-lettered or cancelled gets another round of attempts. `changes` takes the
    fields marked edit.
    """
    note = None if asked is None else asked.note
    changes = asked.changes.named() if asked and asked.changes else {}
    access.check_move(changes)

    async def effect(db: Database) -> Response:
        status = await db.tasks.retry(
            task_id,
            "modify_and_retry" if changes else "retry",
            changes=changes,
            reviewer=access.caller.name,
            note=note,
        )
        return json_response({"id": task_id, "status": status})

    return await once(effect)


@router.post(
    "/{task_id}/priority",
    response_model=PrioritisedTask,
    responses=answers(404, 409),
)
async def set_priority(task_id: UUID, asked: SetPriority, access: Operate, once: Once) -> Response:
    """Change the priority of a task.

    The task waits. Give one of `priority`, `tier` and `urgency`; age and deadline count as before.
    """
    scale = asked.model_dump(include=_SCALES, exclude_none=True)

    async def effect(db: Database) -> Response:
        [done] = await db.tasks.set_priority(
            [task_id], reason=asked.reason, actor=access.caller.name, **scale
        )
        if done.verdict == "unknown":
            raise TaskNotFound(f"there is no task {task_id}", task_id=str(task_id))
        if done.verdict in ("running", "ended"):
            raise IllegalTransition(
                f"task {task_id} does not wait: "
                + ("an agent has it" if done.verdict == "running" else "it has ended"),
                hint="A priority matters only until a task is claimed.",
                task_id=str(task_id),
            )
        return json_response(asdict(done))

    return await once(effect)


@router.post(
    "/{task_id}/release",
    response_model=TaskStatus,
    responses=answers(404, 409),
)
async def release(task_id: UUID, access: Operate, once: Once) -> Response:
    """Release a held task.

    The task was enqueued with `hold`; other tasks do not change. Work items are dispatched instead.
    """

    async def effect(db: Database) -> Response:
        status = (await db.tasks.unhold([task_id], access.caller.name))[task_id]
        if status == "unknown":
            raise TaskNotFound(f"there is no task {task_id}", task_id=str(task_id))
        if status == "created":
            raise IllegalTransition(
                f"task {task_id} waits for its DAG to be started",
                hint="Start the DAG: POST /v1/dags/{id}/start",
                task_id=str(task_id),
            )
        return json_response({"id": task_id, "status": status})

    return await once(effect)


@router.post(
    "/{task_id}/fork",
    status_code=201,
    response_model=CreatedTask,
    responses=answers(404),
)
async def fork(task_id: UUID, asked: ForkTask, access: Fork, once: Once) -> Response:
    """Fork a task from a step.

    The new task reuses the saved steps before `from_step`. `changes` takes the fields marked edit.
    """
    changes = asked.changes.named() if asked.changes else {}
    access.check_move(changes)

    async def effect(db: Database) -> Response:
        made = await db.tasks.fork(task_id, asked.from_step, changes, access.caller.name)
        headers = {"Location": f"/v1/tasks/{made}"}
        return json_response({"id": made, "created": True}, 201, headers)

    return await once(effect)
