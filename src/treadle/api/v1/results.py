"""`/v1/tasks/{id}`: one task as it is now, and its result as soon as there is one."""

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any
from uuid import UUID

import anyio
from fastapi import APIRouter, Header, Query, Request
from pydantic_core import to_json
from starlette.responses import Response

from treadle.api.access import Who, check_stay, need
from treadle.api.deps import App, Calls, Views
from treadle.api.problems import answers
from treadle.api.v1 import models_tasks as models
from treadle.api.v1.rows import check_seen, check_touched
from treadle.api.v1.waiting import LONGEST_S, while_there
from treadle.api.wire import MEDIA_TYPE, answer, record

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])
_NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "It is as the ETag says."}}


@router.get(
    "/{task_id}",
    response_model=models.WholeTask,
    responses={**_NOT_MODIFIED, **answers(404)},
    dependencies=[need("read")],
)
async def show(
    task_id: UUID,
    views: Views,
    who: Who,
    known: Annotated[str | None, Header(alias="If-None-Match", max_length=2000)] = None,
) -> Response:
    """One task with everything about it; 304 when it is still as `If-None-Match` says."""
    await check_touched(who, views, task_id)
    task = record(await views.task(task_id))
    # Waiting alone changes its place, not the task.
    lasting = {name: value for name, value in task.items() if name != "effective_priority"}
    etag = f'W/"{hashlib.sha256(to_json(lasting)).hexdigest()[:32]}"'
    if known is not None and etag in (each.strip() for each in known.split(",")):
        return Response(status_code=304, headers={"ETag": etag})
    return Response(to_json(task), headers={"ETag": etag}, media_type=MEDIA_TYPE)


@router.get(
    "/{task_id}/artifacts",
    response_model=models.Artifacts,
    responses=answers(404),
    dependencies=[need("read")],
)
async def artifacts(task_id: UUID, calls: Calls, views: Views, who: Who) -> Response:
    """The files of a task, of all its attempts."""
    await check_seen(who, views, task_id)
    return answer({"items": await calls.list_artifacts(task_id)})


@router.get(
    "/{task_id}/result",
    response_model=models.Result,
    responses={
        202: {"model": models.Result, "description": "It has not ended in this time."},
        **answers(404),
    },
    dependencies=[need("read")],
)
async def result(
    task_id: UUID,
    request: Request,
    app: App,
    views: Views,
    who: Who,
    wait_seconds: Annotated[float, Query(ge=0, le=LONGEST_S, allow_inf_nan=False)] = 0,
) -> Response:
    """How a task ended; waits for the end so many seconds, or until the server stops."""
    await check_seen(who, views, task_id)
    if wait_seconds > 0:
        results = await app.results()
        stopping = request.app.state.stopping
        async with while_there(request):
            with anyio.move_on_after(wait_seconds) as waiting, _until(stopping, waiting):
                await results.wait(task_id)
        await check_stay(request)
    task = await views.task(task_id)
    shown = {name: task[name] for name in models.Result.model_fields}
    return answer(shown, 202 if task["completed_at"] is None else 200)


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
