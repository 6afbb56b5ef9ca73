"""`/v1/claims/{task_id}/…`: steps, spend, questions and subtasks of a running task."""

from dataclasses import asdict
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.bodies import (
    INT64,
    Body,
    Id,
    Moment,
    Name,
    Object,
    Seconds,
    Text,
    Usd,
    json_response,
    json_row,
)
from treadle.api.problems import answers
from treadle.api.v1.claims import Json, Token, Work
from treadle.api.v1.dags import Node
from treadle.api.v1.tasks import BATCH, CreatedTask
from treadle.json import encode

Ids = Annotated[list[Id], Field(max_length=BATCH)]
Spent = Annotated[Usd, Field(le=1_000_000)]
Tokens = Annotated[int, Field(ge=0, le=999_999_999_999)]
router = APIRouter(
    prefix="/v1/claims/{task_id}",
    tags=["claims"],
    responses=answers(409),
)


class PaidCall(Body):
    """A paid call; the same `call_id` is counted once."""

    call_id: Name | None = None
    usd: Spent | None = None
    model: Name | None = None
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None


Calls = Annotated[list[PaidCall], Field(max_length=BATCH)]


class SaveStep(Token):
    """The result of a step, which later attempts reuse."""

    name: Name
    output: Json
    input_hash: Name | None = None
    input: Text | None = Field(None, max_length=2000, description="Shown to people.")
    took_s: Seconds = 0.0
    calls: Calls = Field(default_factory=list)


class Saved(BaseModel):
    """The stored result of the step: the first one wins. `verdict` is ok, ask or fail."""

    output: Any
    verdict: str


class Spend(Token):
    """Paid calls."""

    calls: Calls = Field(min_length=1)


class Reserve(Token):
    """The expected cost of the next call."""

    usd: Spent
    ask: bool = Field(True, description="Ask a person when the budget is not sufficient.")


class SpendState(BaseModel):
    """The cost of the task and what it may still spend; `verdict` is ok, ask or fail."""

    cost_usd: float
    max_cost_usd: float | None
    left_usd: float | None
    verdict: str
    reason: str | None
    wait_id: UUID | None


class Ask(Token):
    """A named wait: a question, an approval (with `approvers`) or an event."""

    name: Name
    question: Text | None = Field(None, max_length=20_000)
    context: Json = None
    options: Annotated[list[Json], Field(max_length=100)] | None = None
    schema_: Object | bool | None = Field(None, alias="schema")
    approvers: int | None = Field(None, ge=1, le=1000)
    event: Name | None = None
    key: Name | None = None
    expires_s: Seconds | None = None
    expires_at: Moment | None = None
    on_expiry: Name | None = None
    default: Json = None


class Asked(BaseModel):
    """The wait; `answer` is set once it has ended."""

    wait_id: UUID | None
    status: str
    answer: Any


class Suspend(Token):
    """What to wait for: subtasks, waits or a time. The claim ends without counting an attempt."""

    children: Ids = Field(default_factory=list)
    waits: Ids = Field(default_factory=list)
    run_at: Moment | None = None
    optional: bool = Field(
        False, description="Also continue when children are cancelled or dead-lettered."
    )


class Suspended(BaseModel):
    """The new status: blocked, pending, ready or already."""

    id: UUID
    status: str


class Spawn(Token):
    """Subtasks, saved as a step of this name: the next attempt gets the same ones."""

    name: Name
    tasks: Annotated[list[Node], Field(min_length=1, max_length=BATCH)] = Field(
        description="As POST /v1/dags takes them; their project is that of the task."
    )


class Spawned(BaseModel):
    """The subtasks in the order of the request."""

    items: list[CreatedTask]


class LinkArtifact(Token):
    """A file of the task that is stored elsewhere."""

    name: Annotated[Text, Field(min_length=1, max_length=1000)]
    uri: Annotated[Text, Field(min_length=1, max_length=4000)]
    media_type: Name | None = None
    bytes: int | None = Field(None, ge=0, le=INT64)
    sha256: Annotated[str, Field(pattern="^[0-9a-fA-F]{64}$")] | None = None


class Linked(BaseModel):
    """The artifact; later tasks refer to it as artifact:<id>."""

    id: UUID


@router.post("/steps", response_model=Saved)
async def save_step(task_id: UUID, asked: SaveStep, access: Work) -> Response:
    """Save a step of a task.

    The first result of a `name` is kept. `calls` are recorded with it.
    """
    db = await access.claim(task_id, asked.token)
    output, verdict = await db.steps.save(
        task_id,
        asked.token,
        asked.name,
        encode(asked.output, name="output"),
        input_hash=asked.input_hash,
        shown=asked.input,
        took_s=float(asked.took_s),
        calls=_paid(asked.calls),
    )
    return json_response({"output": output, "verdict": verdict})


@router.post("/spend", response_model=SpendState)
async def spend(task_id: UUID, asked: Spend, access: Work) -> Response:
    """Record spending of a task.

    Each `call_id` counts once. The response tells whether the task may continue.
    """
    db = await access.claim(task_id, asked.token)
    money = await db.budgets.record(task_id, asked.token, _paid(asked.calls))
    return json_response(json_row(asdict(money)))


@router.post("/reserve", response_model=SpendState)
async def reserve(task_id: UUID, asked: Reserve, access: Work) -> Response:
    """Reserve money for a task.

    If the budget is not sufficient, a person is asked.
    """
    db = await access.claim(task_id, asked.token)
    money = await db.budgets.reserve(task_id, asked.token, Decimal(str(asked.usd)), ask=asked.ask)
    return json_response(json_row(asdict(money)))


@router.post("/ask", response_model=Asked)
async def ask(task_id: UUID, asked: Ask, access: Work) -> Response:
    """Ask a question, or wait for an event.

    This opens a wait for an answer, an approval or an event. A repeated `name` returns the same
    wait.
    """
    db = await access.claim(task_id, asked.token)
    wait = asked.model_dump(exclude_unset=True, by_alias=True, exclude={"token", "name"})
    opened = await db.waits.open(task_id, asked.token, asked.name, encode(wait, name="wait"))
    return json_response({"wait_id": opened.id, "status": opened.status, "answer": opened.answer})


@router.post("/suspend", response_model=Suspended, responses=answers(404))
async def suspend(task_id: UUID, asked: Suspend, access: Work) -> Response:
    """Suspend a task.

    The agent gives up its claim until the `waits` or `children` have ended, or until `run_at`.
    """
    db = await access.claim(task_id, asked.token)
    await access.check_references([{"after": asked.children}], by=task_id)
    status = await db.steps.suspend(
        task_id,
        asked.token,
        children=asked.children,
        waits=asked.waits,
        run_at=asked.run_at,
        optional=asked.optional,
    )
    return json_response({"id": task_id, "status": status})


@router.post("/spawn", response_model=Spawned, responses=answers(404))
async def spawn(task_id: UUID, asked: Spawn, access: Work) -> Response:
    """Create subtasks of a task.

    A repeated `name` returns the same ones.
    """
    db = await access.claim(task_id, asked.token)
    tasks = [task.named() for task in asked.tasks]
    document = encode(await access.new(tasks, by=task_id), name="tasks")
    if access.view.is_restricted:
        # If a task that is not visible has one of the keys, nothing is created.
        async with db.transaction() as held:
            made = await held.steps.spawn(task_id, asked.token, asked.name, document)
            found = [each.id for each in made if not each.created]
            await access.check_found_tasks(held, found, by=task_id)
    else:
        made = await db.steps.spawn(task_id, asked.token, asked.name, document)
    return json_response({"items": made})


@router.post("/artifacts", response_model=Linked)
async def link_artifact(task_id: UUID, asked: LinkArtifact, access: Work) -> Response:
    """Link a file to a task.

    The file itself is stored elsewhere.
    """
    db = await access.claim(task_id, asked.token)
    made = await db.artifacts.record(
        task_id,
        asked.token,
        asked.name,
        asked.uri,
        media_type=asked.media_type,
        size=asked.bytes,
        sha256=asked.sha256,
    )
    return json_response({"id": made})


def _paid(calls: list[PaidCall]) -> list[dict[str, Any]]:
    return [each.model_dump(exclude_none=True) for each in calls]
