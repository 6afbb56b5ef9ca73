"""`/v1/tasks`: put tasks on queues, and see what became of them."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from treadle.api.access import Principal, Who, need
from treadle.api.deps import Views
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.quick import Quick
from treadle.api.v1 import models_tasks as models
from treadle.api.v1.crowd import New, Place, crowd_of, enqueue_all
from treadle.api.v1.fields import Name
from treadle.api.v1.plans import (
    check_found,
    check_options,
    check_references,
    own_name,
    own_project,
)
from treadle.api.v1.reach import is_bound, queues_of
from treadle.api.v1.rows import check_seen, reasons_seen
from treadle.api.wire import answer, records
from treadle.db.gateway import Gateway
from treadle.db.reader import Reader
from treadle.json import encode

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])
busy = APIRouter(prefix="/v1/tasks", tags=["tasks"], route_class=Quick)


@busy.post(
    "",
    status_code=201,
    response_model=models.Made,
    responses={
        200: {"model": models.Made, "description": "A task with this key was there."},
        **answers(404, 409),
    },
    dependencies=[need("enqueue")],
)
async def enqueue(task: models.NewTask, request: Request, once: Once) -> Response:
    """Put one task on a queue."""
    options = _checked(task, once.who)
    new = New(encode(task.spec), task.idempotency_key)
    place = Place(task.queue, task.type, encode(options, name="task"))

    async def effect(calls: Gateway) -> Response:
        await check_references(once.who, Reader(calls), [options])
        if once.keyed:
            [made] = await enqueue_all(calls, place, [new])
        else:
            made = await crowd_of(request).enqueue(place, new)
        await check_found(once.who, Reader(calls), [made])
        headers = {"Location": f"/v1/tasks/{made.id}"}
        body = {"id": made.id, "created": made.created}
        return answer(body, 201 if made.created else 200, headers)

    return await once(effect)


@router.post(
    "/batch",
    status_code=201,
    response_model=models.MadeMany,
    responses=answers(404, 409),
    dependencies=[need("enqueue")],
)
async def enqueue_many(batch: models.NewTasks, who: Who, once: Once) -> Response:
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

    async def effect(calls: Gateway) -> Response:
        if not is_bound(who):
            return answer({"items": await calls.enqueue_tasks(document)}, 201)
        await check_references(who, Reader(calls), tasks)
        # What is found under a key may undo what was made before it.
        async with calls.transaction() as held:
            made = await held.enqueue_tasks(document)
            await check_found(who, Reader(held), made)
        return answer({"items": made}, 201)

    return await once(effect)


@router.get("", response_model=Listed[models.TaskRow], dependencies=[need("read")])
async def list_tasks(
    views: Views,
    page: Page,
    who: Who,
    *,
    queue: Name | None = None,
    status: models.Status | None = None,
    type: Name | None = None,
    project_id: UUID | None = None,
    dag_id: UUID | None = None,
    parent_id: UUID | None = None,
    agent: Annotated[Name | None, Query(description="Who has it now.")] = None,
    tag: Name | None = None,
) -> Response:
    """Tasks that fit, the newest first."""
    rows = await views.task_page(
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
    response_model=models.Reasons,
    responses=answers(404),
    dependencies=[need("read")],
)
async def why(task_id: UUID, views: Views, who: Who) -> Response:
    """Why a task is not running now; there is always a reason."""
    await check_seen(who, views, task_id)
    reasons = await views.why(task_id)
    return answer({"items": records(await reasons_seen(who, views, reasons))})


@router.get(
    "/{task_id}/attempts",
    response_model=models.Attempts,
    responses=answers(404),
    dependencies=[need("read")],
)
async def attempts(task_id: UUID, views: Views, who: Who) -> Response:
    """Every attempt at a task: who had it, when, how it ended, what it cost."""
    await check_seen(who, views, task_id)
    return answer({"items": records(await views.history(task_id))})


@router.get(
    "/{task_id}/steps",
    response_model=models.Steps,
    responses=answers(404),
    dependencies=[need("read")],
)
async def steps(task_id: UUID, views: Views, who: Who) -> Response:
    """What a task has done and remembers."""
    await check_seen(who, views, task_id)
    return answer({"items": records(await views.steps(task_id))})


@router.get(
    "/{task_id}/events",
    response_model=Listed[models.EventRow],
    responses=answers(404),
    dependencies=[need("read")],
)
async def events(task_id: UUID, views: Views, page: Page, who: Who) -> Response:
    """What happened to a task, the newest first."""
    await check_seen(who, views, task_id)
    rows = await views.page(
        "event_log",
        key="id",
        after=page.after(int),
        limit=page.more,
        newest=True,
        where={"task_id = {}": task_id},
    )
    return page.answer(rows, "id")


def _checked(task: models.NewTask, who: Principal) -> dict[str, Any]:
    """The options of a task that this caller may enqueue; a token's project is the default."""
    options = task.options(who.name)
    check_options(who, {**own_name(who), **options, "queue": task.queue})
    return own_project(who, options)
