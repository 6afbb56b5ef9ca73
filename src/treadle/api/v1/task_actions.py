"""`/v1/tasks/{id}/…`: what people decide about tasks, one by one or many at once."""

from dataclasses import asdict
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import (
    Caller,
    Db,
    check_move,
    check_touched,
    check_whole_queues,
    requires,
)
from treadle.api.bodies import Body, Id, Name, Object, Text
from treadle.api.idempotency import Once
from treadle.api.problems import answers
from treadle.api.responses import json_response
from treadle.api.v1.tasks import CreatedTask, Status
from treadle.db.database import Database
from treadle.errors import Forbidden, IllegalTransition, TaskNotFound

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])
OPERATE = requires("operate")


class CancelTask(Body):
    """Why it is not wanted any more."""

    reason: Text | None = Field(None, max_length=2000)


class Cancelled(BaseModel):
    """cancelled, or already; and what fell with it: dependents and subtasks."""

    id: UUID
    verdict: Literal["cancelled", "already"]
    cascaded: list[UUID]


class RetryTask(Body):
    """Another round for a task that gave up or was cancelled, or a retry now."""

    changes: Object | None = Field(
        None, description="spec, set, unset, queue, type, priority, max_attempts and more."
    )
    note: Text | None = Field(None, max_length=2000)


class TaskStatus(BaseModel):
    """The state that the task is in now."""

    id: UUID
    status: Status


class ForkTask(Body):
    """A new task that has the steps before `from_step`, at no cost."""

    from_step: Name
    changes: Object | None = Field(
        None, description="spec, queue, type, priority, max_attempts, timeout_s and more."
    )


class Filter(Body):
    """Which tasks: all that is named must fit, and something must be."""

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
    """Cancel or retry what a filter finds; a dry run only counts it."""

    action: Literal["cancel", "retry"]
    filter: Filter
    dry_run: bool = False
    limit: int = Field(10_000, ge=1, le=100_000)
    reason: Text | None = Field(None, max_length=2000)


class BulkCount(BaseModel):
    """So many tasks of one kind, and what became of them."""

    queue: str
    type: str
    status: str
    verdict: str
    why: str | None
    tasks: int


class BulkResult(BaseModel):
    """What was done, or with `dry_run` what would be."""

    dry_run: bool
    items: list[BulkCount]


@router.post("/bulk", response_model=BulkResult, responses=answers(404), dependencies=[OPERATE])
async def bulk(asked: Bulk, who: Caller, once: Once) -> Response:
    """Cancel or retry all tasks that a filter finds, or with `dry_run` count them."""
    if who.queues is not None and asked.filter.queue is None:
        raise Forbidden(f"{who.name} needs a queue in the filter")
    if asked.filter.queue is not None:
        who.check_queue(asked.filter.queue)
    # A filter knows projects by id only.
    check_whole_queues(who)
    filters = asked.filter.model_dump(exclude_none=True)

    async def effect(db: Database) -> Response:
        act = db.tasks.cancel_where if asked.action == "cancel" else db.tasks.retry_where
        counts = await act(
            filters, asked.reason, who.name, dry_run=asked.dry_run, limit=asked.limit
        )
        return json_response({"dry_run": asked.dry_run, "items": [asdict(each) for each in counts]})

    return await once(effect)


@router.post(
    "/{task_id}/cancel",
    response_model=Cancelled,
    responses=answers(404, 409),
    dependencies=[OPERATE],
)
async def cancel(
    task_id: UUID, who: Caller, db: Db, once: Once, asked: CancelTask | None = None
) -> Response:
    """End a task that is not wanted any more, and what depends on it."""
    await check_touched(who, db, task_id)
    reason = None if asked is None else asked.reason

    async def effect(db: Database) -> Response:
        verdicts = await db.tasks.cancel([task_id], reason, who.name)
        verdict = verdicts.pop(task_id)
        if verdict not in ("cancelled", "already"):
            # Says why not.
            verdict = await db.tasks.cancel_one(task_id, reason, who.name)
        return json_response({"id": task_id, "verdict": verdict, "cascaded": list(verdicts)})

    return await once(effect)


@router.post(
    "/{task_id}/retry",
    response_model=TaskStatus,
    responses=answers(404, 409),
    dependencies=[OPERATE],
)
async def retry(
    task_id: UUID, who: Caller, db: Db, once: Once, asked: RetryTask | None = None
) -> Response:
    """Give a task that gave up or was cancelled another round, with changes if need be."""
    await check_touched(who, db, task_id)
    note = None if asked is None else asked.note
    changes = (None if asked is None else asked.changes) or {}
    check_move(who, changes)

    async def effect(db: Database) -> Response:
        status = await db.tasks.retry(
            task_id,
            "modify_and_retry" if changes else "retry",
            changes=changes,
            reviewer=who.name,
            note=note,
        )
        return json_response({"id": task_id, "status": status})

    return await once(effect)


@router.post(
    "/{task_id}/release",
    response_model=TaskStatus,
    responses=answers(404, 409),
    dependencies=[OPERATE],
)
async def release(task_id: UUID, who: Caller, db: Db, once: Once) -> Response:
    """Let a task go that was enqueued with `hold`; one that goes already stays as it is."""
    await check_touched(who, db, task_id)

    async def effect(db: Database) -> Response:
        status = (await db.tasks.unhold([task_id], who.name))[task_id]
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
    dependencies=[requires("enqueue")],
)
async def fork(task_id: UUID, asked: ForkTask, who: Caller, db: Db, once: Once) -> Response:
    """Start over from a step: a new task that has the steps before it, at no cost."""
    await check_touched(who, db, task_id)
    changes = asked.changes or {}
    check_move(who, changes)

    async def effect(db: Database) -> Response:
        made = await db.tasks.fork(task_id, asked.from_step, changes, who.name)
        headers = {"Location": f"/v1/tasks/{made}"}
        return json_response({"id": made, "created": True}, 201, headers)

    return await once(effect)
