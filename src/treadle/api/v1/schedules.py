"""`/v1/schedules`: work that starts by the calendar."""

from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import Response

from treadle.api.access import Principal, Who, need
from treadle.api.deps import Calls, Views
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.v1 import models_schedules as models
from treadle.api.v1.fields import Reason
from treadle.api.v1.plans import check_options, check_references, check_template, tasks_of
from treadle.api.v1.reach import is_bound, queues_of
from treadle.api.wire import answer, record
from treadle.cron import Cron, zone_named
from treadle.db.gateway import Gateway
from treadle.db.reader import Reader
from treadle.errors import MissingExtra, QueueFull, UnknownSchedule

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])
Name = Annotated[str, Path(min_length=1, max_length=150)]


@router.get("", response_model=Listed[models.Schedule], dependencies=[need("read")])
async def list_schedules(views: Views, page: Page, who: Who) -> Response:
    """Schedules by name: the next time, and what became of the last."""
    who.check_project(None)
    rows = await views.page(
        "schedule_status",
        key="name",
        after=page.after(str),
        limit=page.more,
        where={"queue = any({})": queues_of(who)},
    )
    return page.answer(rows, "name")


@router.get(
    "/{name:path}/runs",
    response_model=Listed[models.ScheduleRun],
    responses=answers(404),
    dependencies=[need("read")],
)
async def runs(name: Name, views: Views, page: Page, who: Who) -> Response:
    """What a schedule made, skipped or missed, the newest first; also after it was removed."""
    after = page.after(int)
    rows = await views.page(
        "schedule_history",
        key="id",
        after=after,
        limit=page.more,
        newest=True,
        where={"schedule = {}": name},
    )
    if is_bound(who) or (not rows and after is None):
        await _found(views, name, who)
    return page.answer(rows, "id")


@router.post(
    "/{name:path}/run",
    status_code=201,
    response_model=models.MadeBySchedule,
    responses=answers(404, 409, 503),
    dependencies=[need("operate")],
)
async def run(name: Name, calls: Calls, views: Views, who: Who, once: Once) -> Response:
    """Make its task or DAG now, besides its times; also while it is paused. 503: queue full."""
    await _found(views, name, who)

    async def effect(calls: Gateway) -> Response:
        task_id, dag_id, created = await calls.run_schedule(name, who.name)
        return answer({"task_id": task_id, "dag_id": dag_id, "created": created}, 201)

    try:
        return await once(effect)
    except QueueFull as error:
        await calls.skip_schedule(name, str(error), who.name)
        raise


@router.post(
    "/{name:path}/pause",
    response_model=models.Schedule,
    responses=answers(404),
    dependencies=[need("operate")],
)
async def pause(
    name: Name, calls: Calls, views: Views, who: Who, why: Reason | None = None
) -> Response:
    """Let a schedule make nothing until it is resumed."""
    await _found(views, name, who)
    await calls.pause_schedule(name, why.reason if why else None, who.name)
    return await _shown(views, name)


@router.post(
    "/{name:path}/resume",
    response_model=models.Schedule,
    responses=answers(404),
    dependencies=[need("operate")],
)
async def resume(name: Name, calls: Calls, views: Views, who: Who) -> Response:
    """Let a paused schedule go on; its catch-up policy says what is made up for."""
    await _found(views, name, who)
    await calls.resume_schedule(name, who.name)
    return await _shown(views, name)


@router.get(
    "/{name:path}",
    response_model=models.Schedule,
    responses=answers(404),
    dependencies=[need("read")],
)
async def show(name: Name, views: Views, who: Who) -> Response:
    """One schedule."""
    return answer(record(await _found(views, name, who)))


@router.put(
    "/{name:path}",
    response_model=models.Schedule,
    responses=answers(404, 409),
    dependencies=[need("operate")],
)
async def define(
    name: Name, settings: models.ScheduleSettings, calls: Calls, views: Views, who: Who
) -> Response:
    """Make a schedule, or change one; what is not named stays as it is."""
    given = settings.model_dump(exclude_none=True)
    # A template may say its project in more than one way.
    who.check_project(None)
    tasks = tasks_of(given)
    for task in tasks:
        check_options(who, task)
    await check_references(who, views, tasks)
    if is_bound(who):
        with suppress(UnknownSchedule):
            await _found(views, name, who)
    # Without the reader of cron lines the scheduler finds out, and says so.
    with suppress(MissingExtra):
        if "cron" in given:
            Cron(given["cron"], given.get("timezone", "UTC"))
        elif "timezone" in given:
            zone_named(given["timezone"])
    await calls.define_schedule(name, given, who.name)
    return await _shown(views, name)


@router.delete(
    "/{name:path}", status_code=204, responses=answers(404), dependencies=[need("operate")]
)
async def remove(name: Name, calls: Calls, views: Views, who: Who) -> Response:
    """Remove a schedule; what it made stays, and the record of its runs."""
    await _found(views, name, who)
    await calls.remove_schedule(name, who.name)
    return Response(status_code=204)


async def _found(views: Reader, name: str, who: Principal) -> dict[str, Any]:
    """The schedule, if what it makes is in reach of the token."""
    row = await views.schedule(name)
    check_template(who, row["template"])
    return row


async def _shown(views: Reader, name: str) -> Response:
    return answer(record(await views.schedule(name)))
