"""The work API: a dispatcher hands out work items, agents report how they get on."""

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from treadle.api import work_models as models
from treadle.api.access import Principal, Who, need
from treadle.api.deps import Calls, Config, Views
from treadle.api.idempotency import Once
from treadle.api.problems import answers
from treadle.api.wire import answer, record, records
from treadle.api.work_pages import PAGE, PAGED, Cursor, Limit, page
from treadle.db.gateway import Gateway
from treadle.db.reader import Reader
from treadle.errors import InvalidArgument

router = APIRouter(tags=["work"])

QUEUE = "work"
# The changes that a dispatcher makes; the others are for the agent that has the item.
DISPATCHERS = ("dispatched", "cancelled")


@router.get(
    "/work",
    response_model=list[models.WorkItem],
    responses={**PAGED, **answers(404)},
    dependencies=[need("read")],
)
async def list_work(
    request: Request,
    who: Who,
    views: Views,
    status: Annotated[models.Status | None, models.unless_empty(models.Status)] = None,
    agent: Annotated[models.Agent | None, models.unless_empty(models.Agent)] = None,
    project_id: Annotated[UUID | None, models.unless_empty(UUID)] = None,
    since: Annotated[
        models.Since | None,
        models.unless_empty(models.Since),
        Query(description="Created after this moment; ended after it, for states that are ends."),
    ] = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> Response:
    """Work items by priority, then age; with `since` by age. The body is an array, in pages.

    A page with more than 64 MiB of payloads ends before its limit.
    """
    who.check_queue(QUEUE)
    if who.project_id is not None:
        project_id = _own_project(who, project_id)
    rows = await views.work_items(
        status=status,
        agent=agent,
        project_id=project_id,
        since=since,
        after=cursor,
        limit=limit,
    )
    more = bool(rows) and rows[-1]["more"]
    return page(request, [_shown(row) for row in rows], limit, more=more)


@router.post(
    "/work",
    status_code=201,
    response_model=models.WorkItem,
    responses=answers(404, 409),
    dependencies=[need("enqueue")],
)
async def add_work(item: models.NewWork, who: Who, views: Views, once: Once) -> Response:
    """Make a work item. It is queued, also with an assigned_agent, until it is dispatched."""
    who.check_queue(QUEUE)
    who.check_author(item.created_by)
    project_id = item.project_id
    if who.project_id is not None:
        project_id = _own_project(who, project_id)

    async def effect(calls: Gateway) -> Response:
        made = await calls.add_work(
            item.type,
            item.description,
            payload=item.payload or {},
            priority=3 if item.priority is None else item.priority,
            agent=item.assigned_agent,
            project_id=project_id,
            created_by=item.created_by,
            actor=who.name,
        )
        row = await Reader(calls).work_item(made)
        return answer(record(_shown(row)), 201, {"Location": f"/work/{made}"})

    return await once(effect)


@router.get(
    "/work/{item_id}",
    response_model=models.WorkHistory,
    responses=answers(404),
    dependencies=[need("read")],
)
async def get_work(item_id: UUID, who: Who, views: Views) -> Response:
    """One work item, who got it and how that ended, and its changes, the newest 200 of them."""
    item = await _seen(who, views, item_id)
    history = {
        "dispatch_history": records(await views.work_dispatches(item_id)),
        "changes": records(await views.work_changes(item_id)),
    }
    return answer({**record(_shown(item)), **history})


@router.patch(
    "/work/{item_id}",
    response_model=models.WorkItem,
    responses=answers(404, 409),
    dependencies=[need("work")],
)
async def update_work(
    item_id: UUID, change: models.WorkChange, who: Who, views: Views, config: Config, once: Once
) -> Response:
    """Change a work item as far as its state allows; 409 says what it does allow."""
    changes = change.model_dump(mode="json", exclude_none=True)
    if not changes.keys() - {"unless_updated_since"}:
        raise InvalidArgument(
            "nothing is to be changed that can be",
            hint="Send status, outcome, notes or assigned_agent; the rest stays as it was made.",
            argument="body",
        )
    if change.status in DISPATCHERS:
        who.check_scope("enqueue")
    if change.assigned_agent is not None:
        who.check_agent(change.assigned_agent)
    if who.agent is not None or who.queues is not None or who.project_id is not None:
        who.check_agent((await _seen(who, views, item_id))["assigned_agent"])

    async def effect(calls: Gateway) -> Response:
        await calls.update_work(
            item_id, changes, actor=who.name, as_agent=who.agent, stale_s=config.work_stale_s
        )
        return answer(record(_shown(await Reader(calls).work_item(item_id))))

    return await once(effect)


@router.delete(
    "/work/{item_id}",
    status_code=204,
    response_class=Response,
    responses=answers(404, 409),
    dependencies=[need("enqueue")],
)
async def cancel_work(
    item_id: UUID, who: Who, views: Views, calls: Calls, config: Config
) -> Response:
    """Cancel a work item that is queued or dispatched; one that is cancelled already stays so."""
    who.check_agent((await _seen(who, views, item_id))["assigned_agent"])
    await calls.update_work(
        item_id,
        {"status": "cancelled"},
        actor=who.name,
        as_agent=who.agent,
        stale_s=config.work_stale_s,
    )
    return Response(status_code=204)


async def _seen(who: Principal, views: Reader, item_id: UUID) -> dict[str, Any]:
    """A work item that the caller may look at."""
    who.check_queue(QUEUE)
    item = await views.work_item(item_id)
    who.check_project(item["project_id"])
    return item


def _own_project(who: Principal, asked: UUID | None) -> UUID | None:
    """The one project that a token is for; it may be given, and no other."""
    if asked is not None:
        who.check_project(asked)
    return who.project_id


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that the work API has."""
    return {name: value for name, value in row.items() if name in models.WorkItem.model_fields}
