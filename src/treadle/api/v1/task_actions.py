"""`/v1/tasks/{id}/…`: cancel, retry, release and fork tasks, one or many."""

from dataclasses import asdict
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import FILTER, TASK, Access, requires
from treadle.api.bodies import Body, Id, Name, Object, Text, json_response, with_fields
from treadle.api.idempotency import Once
from treadle.api.problems import answers
from treadle.api.v1.tasks import CreatedTask
from treadle.db.database import Database
from treadle.errors import IllegalTransition, TaskNotFound
from treadle.fields import Status, editable_fields

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])
Operate = Annotated[Access, requires("operate", on=TASK)]
OperateMany = Annotated[Access, requires("operate", on=FILTER)]
Fork = Annotated[Access, requires("enqueue", on=TASK)]


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
    """Fields to change; what is not named stays."""

    spec: Object | None = Field(None, description="Arguments to change; the others stay.")


class RetryChanges(TaskChanges):
    """Fields and single arguments to change before a task runs again; what is not named stays."""

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
    created_before: Name | None = Field(None, description="A moment, or an age like 2h.")
    created_after: Name | None = None
    created_by: Name | None = None
    source: Name | None = None


class Bulk(Body):
    """Cancel or retry the tasks of a filter; a dry run only counts them."""

    action: Literal["cancel", "retry"]
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


@router.post("/bulk", response_model=BulkResult, responses=answers(404))
async def bulk(asked: Bulk, access: OperateMany, once: Once) -> Response:
    """Cancel or retry all tasks of a filter, or with `dry_run` count them."""
    access.check_filter(asked.filter.queue)
    filters = asked.filter.model_dump(exclude_none=True)

    async def effect(db: Database) -> Response:
        act = db.tasks.cancel_where if asked.action == "cancel" else db.tasks.retry_where
        counts = await act(
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
    """Cancel a task and the tasks that depend on it."""
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
    """Retry a task that was dead-lettered or cancelled, optionally with changes."""
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
    "/{task_id}/release",
    response_model=TaskStatus,
    responses=answers(404, 409),
)
async def release(task_id: UUID, access: Operate, once: Once) -> Response:
    """Release a task that was enqueued with `hold`; other tasks are left as they are."""

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
    """Fork a task from a step: a new task that reuses the steps before it."""
    changes = asked.changes.named() if asked.changes else {}
    access.check_move(changes)

    async def effect(db: Database) -> Response:
        made = await db.tasks.fork(task_id, asked.from_step, changes, access.caller.name)
        headers = {"Location": f"/v1/tasks/{made}"}
        return json_response({"id": made, "created": True}, 201, headers)

    return await once(effect)
