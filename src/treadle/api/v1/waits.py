"""`/v1/waits` and `/v1/events`: what tasks wait for, and how people and programs answer."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from treadle.api.access import Who, need
from treadle.api.deps import Views
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.v1 import models_waits as models
from treadle.api.v1.reach import check_everywhere, within
from treadle.api.v1.rows import check_seen, check_touched
from treadle.api.wire import answer, record
from treadle.db.gateway import Gateway
from treadle.json import encode

router = APIRouter(prefix="/v1", tags=["waits"])


@router.get("/waits", response_model=Listed[models.Wait], dependencies=[need("read")])
async def list_waits(
    views: Views,
    page: Page,
    who: Who,
    *,
    status: Annotated[
        Literal["open", "ended"], Query(description="Open, oldest first; or ended, newest first.")
    ] = "open",
    task_id: UUID | None = None,
) -> Response:
    """Questions, approvals and events that tasks wait for."""
    ended = status == "ended"
    rows = await views.page(
        "wait_details",
        key="id",
        after=page.after(UUID),
        limit=page.more,
        newest=ended,
        where={
            "(status <> 'open') = {}": ended,
            "task_id = {}": task_id,
            **within(who),
        },
    )
    return page.answer(rows, "id")


@router.get(
    "/waits/{wait_id}",
    response_model=models.Wait,
    responses=answers(404),
    dependencies=[need("read")],
)
async def show(wait_id: UUID, views: Views, who: Who) -> Response:
    """One wait with the answers so far."""
    wait = await views.wait(wait_id)
    await check_touched(who, views, wait["task_id"])
    return answer(record(wait))


@router.post(
    "/waits/{wait_id}/answer",
    response_model=models.Answered,
    responses=answers(404, 409),
    dependencies=[need("operate")],
)
async def answer_wait(
    wait_id: UUID, asked: models.Answer, views: Views, who: Who, once: Once
) -> Response:
    """Answer a question, or vote on an approval; a person has one vote."""
    if asked.by is not None:
        # One caller must not vote as many.
        who.check_scope("admin")
    wait = await views.wait(wait_id)
    await check_touched(who, views, wait["task_id"])
    if asked.value is not False and _is_shared(wait):
        check_everywhere(who)
    value = encode(asked.value, name="value")

    async def effect(calls: Gateway) -> Response:
        verdict = await calls.answer_wait(wait_id, value, asked.by or who.name, asked.note)
        return answer({"id": wait_id, "verdict": verdict})

    return await once(effect)


@router.post(
    "/events",
    status_code=201,
    response_model=models.Emitted,
    responses=answers(404),
    dependencies=[need("enqueue")],
)
async def emit(asked: models.NewEvent, views: Views, who: Who, once: Once) -> Response:
    """Say that something happened; every task that waits for it goes on."""
    # Whoever waits for it hears of it, in every queue; `task_id` says only who says so.
    check_everywhere(who)
    if asked.task_id is not None:
        await check_seen(who, views, asked.task_id)
    payload = encode(asked.payload, name="payload")

    async def effect(calls: Gateway) -> Response:
        made = await calls.emit_event(
            asked.event,
            payload,
            key=asked.key,
            dedup_key=asked.dedup_key,
            actor=who.name,
            task_id=asked.task_id,
        )
        return answer({"id": made}, 201)

    return await once(effect)


def _is_shared(wait: Mapping[str, Any]) -> bool:
    """Whether a number as the answer changes a budget, not just the limit of the task that asks."""
    return wait["kind"] == "budget" and bool(wait["context"]["limit"] == "budget")
