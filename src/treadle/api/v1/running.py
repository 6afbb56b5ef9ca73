"""`/v1/claims/{task_id}/…`: what a running task asks for: steps, money, answers, subtasks."""

from dataclasses import asdict
from decimal import Decimal
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from treadle.api.problems import answers
from treadle.api.v1 import models_running as models
from treadle.api.v1.hand import Hand
from treadle.api.v1.plans import check_options, check_references, own_name, own_project
from treadle.api.wire import answer, record
from treadle.db.reader import Reader
from treadle.json import encode

router = APIRouter(
    prefix="/v1/claims/{task_id}",
    tags=["claims"],
    responses=answers(409),
)


@router.post("/steps", response_model=models.Saved)
async def save_step(task_id: UUID, asked: models.SaveStep, hand: Hand) -> Response:
    """Remember the result of a step; the first one under a name stays."""
    calls = await hand.on(task_id, asked.token)
    output, verdict = await calls.save_step(
        task_id,
        asked.token,
        asked.name,
        encode(asked.output, name="output"),
        input_hash=asked.input_hash,
        shown=asked.input,
        took_s=float(asked.took_s),
        calls=_paid(asked.calls),
    )
    return answer({"output": output, "verdict": verdict})


@router.post("/spend", response_model=models.Money)
async def spend(task_id: UUID, asked: models.Spend, hand: Hand) -> Response:
    """Count what the task has paid for; learn whether it may go on."""
    calls = await hand.on(task_id, asked.token)
    money = await calls.record_spend(task_id, asked.token, _paid(asked.calls))
    return answer(record(asdict(money)))


@router.post("/reserve", response_model=models.Money)
async def reserve(task_id: UUID, asked: models.Reserve, hand: Hand) -> Response:
    """Reserve money before it is spent; where there is not so much, a person is asked."""
    calls = await hand.on(task_id, asked.token)
    money = await calls.reserve_spend(task_id, asked.token, Decimal(str(asked.usd)), ask=asked.ask)
    return answer(record(asdict(money)))


@router.post("/ask", response_model=models.Asked)
async def ask(task_id: UUID, asked: models.Ask, hand: Hand) -> Response:
    """Ask a question, ask for approval, or wait for an event; the same name is the same wait."""
    calls = await hand.on(task_id, asked.token)
    wait = asked.model_dump(exclude_unset=True, by_alias=True, exclude={"token", "name"})
    opened = await calls.open_wait(task_id, asked.token, asked.name, encode(wait, name="wait"))
    return answer({"wait_id": opened.id, "status": opened.status, "answer": opened.answer})


@router.post("/suspend", response_model=models.Suspended, responses=answers(404))
async def suspend(task_id: UUID, asked: models.Suspend, hand: Hand) -> Response:
    """Give up the claim until subtasks, answers or a moment have come."""
    calls = await hand.on(task_id, asked.token)
    children = [{"after": asked.children}]
    await check_references(hand.who, Reader(calls), children, by=task_id)
    status = await calls.suspend_task(
        task_id,
        asked.token,
        children=asked.children,
        waits=asked.waits,
        run_at=asked.run_at,
        optional=asked.optional,
    )
    return answer({"id": task_id, "status": status})


@router.post("/spawn", response_model=models.Spawned, responses=answers(404))
async def spawn(task_id: UUID, asked: models.Spawn, hand: Hand) -> Response:
    """Start subtasks; a repeat under the same name gets the same ones."""
    calls = await hand.on(task_id, asked.token)
    tasks = [task.named() for task in asked.tasks]
    for task in tasks:
        check_options(hand.who, {**own_name(hand.who), **task})
    await check_references(hand.who, Reader(calls), tasks, by=task_id)
    document = encode([own_project(hand.who, task) for task in tasks], name="tasks")
    made = await calls.spawn_tasks(task_id, asked.token, asked.name, document)
    return answer({"items": made})


@router.post("/artifacts", response_model=models.Linked)
async def link_artifact(task_id: UUID, asked: models.LinkArtifact, hand: Hand) -> Response:
    """Note a file of the task that lies elsewhere."""
    calls = await hand.on(task_id, asked.token)
    made = await calls.record_artifact(
        task_id,
        asked.token,
        asked.name,
        asked.uri,
        media_type=asked.media_type,
        size=asked.bytes,
        sha256=asked.sha256,
    )
    return answer({"id": made})


def _paid(calls: list[models.PaidCall]) -> list[dict[str, Any]]:
    return [each.model_dump(exclude_none=True) for each in calls]
