"""`/v1/queues` and `/v1/stuck`: depth, order, settings, and what does not move."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from treadle.api.access import Who, need
from treadle.api.deps import Calls, Views
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.v1 import models_queues as models
from treadle.api.v1.fields import Reason
from treadle.api.v1.reach import check_whole_queues, queues_of
from treadle.api.wire import answer, record, records
from treadle.db.reader import Reader

router = APIRouter(prefix="/v1", tags=["queues"])
Name = Annotated[str, Path(min_length=1, max_length=48)]


@router.get("/queues", response_model=Listed[models.Queue], dependencies=[need("read")])
async def list_queues(views: Views, page: Page, who: Who) -> Response:
    """Queues with their depth, oldest task and speed."""
    rows = await views.page(
        "queue_health",
        key="queue",
        after=page.after(str),
        limit=page.more,
        where={"queue = any({})": queues_of(who)},
    )
    return page.answer(rows, "queue")


@router.get(
    "/queues/{queue}",
    response_model=models.WholeQueue,
    responses=answers(404),
    dependencies=[need("read")],
)
async def show(queue: Name, views: Views, who: Who) -> Response:
    """One queue with its settings."""
    who.check_queue(queue)
    return await _shown(views, queue)


@router.get(
    "/queues/{queue}/order",
    response_model=models.Order,
    responses=answers(404),
    dependencies=[need("read")],
)
async def order(
    queue: Name, views: Views, who: Who, limit: Annotated[int, Query(ge=1, le=1000)] = 20
) -> Response:
    """Its ready tasks in the order in which they would be claimed, and what shuts them out."""
    who.check_queue(queue)
    check_whole_queues(who)
    return answer({"queue": queue, "items": records(await views.claim_order(queue, limit))})


@router.put(
    "/queues/{queue}",
    response_model=models.WholeQueue,
    dependencies=[need("operate")],
)
async def define(
    queue: Name, settings: models.QueueSettings, calls: Calls, views: Views, who: Who
) -> Response:
    """Make a queue, or change one; what is not named stays as it is."""
    who.check_queue(queue)
    check_whole_queues(who)
    await calls.define_queue(queue, settings.named(), who.name)
    return await _shown(views, queue)


@router.post(
    "/queues/{queue}/pause",
    response_model=models.WholeQueue,
    responses=answers(404),
    dependencies=[need("operate")],
)
async def pause(
    queue: Name, calls: Calls, views: Views, who: Who, why: Reason | None = None
) -> Response:
    """Let nothing more be claimed from a queue; what runs, runs on."""
    who.check_queue(queue)
    check_whole_queues(who)
    await calls.pause_queue(queue, why.reason if why else None, who.name)
    return await _shown(views, queue)


@router.post(
    "/queues/{queue}/resume",
    response_model=models.WholeQueue,
    responses=answers(404),
    dependencies=[need("operate")],
)
async def resume(queue: Name, calls: Calls, views: Views, who: Who) -> Response:
    """Let a paused queue go on."""
    who.check_queue(queue)
    check_whole_queues(who)
    await calls.resume_queue(queue, who.name)
    return await _shown(views, queue)


@router.get("/stuck", response_model=models.StuckList, dependencies=[need("read")])
async def stuck(views: Views, who: Who) -> Response:
    """What should move and does not, and why."""
    check_whole_queues(who)
    rows = await views.stuck()
    shown = [row for row in rows if who.sees(row["queue"])]
    return answer({"items": records(shown)})


async def _shown(views: Reader, queue: str) -> Response:
    settings = await views.queue(queue)
    [health] = await views.page("queue_health", key="queue", limit=1, where={"queue = {}": queue})
    ages = await views.queue_ages(queue)
    return answer({**record(health), **record(settings), **ages})
