"""`/v1/claims`: claim tasks, send heartbeats, and complete or fail them.

Every call names the token of the claim, which makes repeats safe without an Idempotency-Key.
"""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from treadle.api.access import CLAIM, Access, access_of, requires
from treadle.api.batch import ClaimRequest, Completion, batcher_of
from treadle.api.bodies import (
    Body,
    DirectRoute,
    Id,
    Name,
    Object,
    Queues,
    Seconds,
    Text,
    body_schema,
    json_response,
    json_row,
    read_body,
)
from treadle.api.long_poll import LONGEST_S, long_poll_of
from treadle.api.problems import answers
from treadle.api.v1.tasks import BATCH
from treadle.db.claims import Pair
from treadle.db.errors import claim_lost
from treadle.errors import InvalidArgument
from treadle.json import clean_text, encode
from treadle.models import Claim, Failure

Json = Any
Remark = Annotated[Text, Field(max_length=2000)]
router = APIRouter(prefix="/v1/claims", tags=["claims"])
busy = APIRouter(prefix="/v1/claims", tags=["claims"], route_class=DirectRoute)
WORK = requires("work", on=CLAIM)
Work = Annotated[Access, WORK]
NOTHING: dict[int | str, dict[str, Any]] = {204: {"description": "There is nothing to do."}}
_FIELDS = {each.name: each.name for each in fields(Claim)} | {"lease_until": "lease_expires_at"}


class ClaimTasks(Body):
    """A request for tasks that an agent can work on."""

    agent: Name = Field(description="Registered with PUT /v1/agents/{id}.")
    queues: Queues = Field(default_factory=lambda: ["default"])
    types: Annotated[list[Name], Field(max_length=1000)] | None = None
    limit: int = Field(1, ge=1, le=BATCH)
    wait_seconds: float = Field(
        0, ge=0, le=LONGEST_S, allow_inf_nan=False, description="Seconds to wait for a task."
    )
    start: bool = Field(
        True, description="Start at once; otherwise the task stays claimed until it is started."
    )
    token: Id | None = Field(
        None, description="Your own claim token: a repeated request gets the same tasks."
    )


class Claimed(BaseModel):
    """A claimed task, and the token that all further calls need."""

    id: UUID
    token: UUID
    queue: str
    type: str
    spec: Object
    attempt: int
    max_attempts: int
    timeout_s: float | None
    priority: int
    lease_expires_at: datetime
    created_at: datetime
    deadline_at: datetime | None
    title: str | None
    tags: list[str] | None
    parent_id: UUID | None
    dag_id: UUID | None
    project_id: UUID | None
    idempotency_key: str | None
    previous: list[Object] | None = Field(description="Outcomes of earlier attempts.")
    name: str | None
    steps: list[Object] | None = Field(description="Steps that are already done.")
    problem: str | None = Field(description="Why inputs could not be filled in.")
    max_cost_usd: float | None
    cost_usd: float
    gates: list[str]
    models: list[str]
    validation: list[Object] | None
    report: bool = Field(description="Whether a decision report is required.")


class Claims(BaseModel):
    """Claims, highest priority first."""

    claims: list[Claimed]


class Token(Body):
    """The token that came with the claim."""

    token: Id


class Heartbeat(Token):
    """A heartbeat with optional progress."""

    progress: Json = None


class HeartbeatResult(BaseModel):
    """The answer to a heartbeat; stop and drop the result when `cancel_requested` is true."""

    id: UUID
    verdict: Literal["ok", "cancelled"]
    cancel_requested: bool


class HeartbeatVerdict(BaseModel):
    """The answer for one claim; `lost` means that it expired or was superseded."""

    id: UUID
    verdict: Literal["ok", "cancelled", "lost"]
    cancel_requested: bool


class ClaimRef(Token):
    """One claim of a batch."""

    id: Id


class HeartbeatNamed(ClaimRef):
    """A heartbeat of one claim of a batch."""

    progress: Json = None


class HeartbeatMany(Body):
    """Heartbeats of many claims."""

    claims: list[HeartbeatNamed] = Field(min_length=1, max_length=BATCH)


class HeartbeatVerdicts(BaseModel):
    """Verdicts in the order of the request."""

    items: list[HeartbeatVerdict]


class Complete(Token):
    """The result of a task."""

    output: Json = None
    report: Object | None = Field(None, description="The decision report.")


class CompleteNamed(ClaimRef):
    """The result of one task of a batch."""

    output: Json = None
    report: Object | None = None


class CompleteMany(Body):
    """Results of many tasks; each is accepted or rejected on its own."""

    claims: list[CompleteNamed] = Field(min_length=1, max_length=BATCH)


class Ended(BaseModel):
    """The verdict on a call; `already` means that it was repeated."""

    id: UUID
    verdict: str


class EndedMany(BaseModel):
    """Verdicts in the order of the request: completed, already, stale or report_required."""

    items: list[Ended]


class Fail(Token):
    """Why the attempt ends without a result."""

    error: Text = Field("", max_length=20_000)
    failure_class: Name | None = Field(None, description="Derived from the error if absent.")
    action: Literal["retry", "fail", "cancel"] | None = Field(
        None, description="Overrides the retry policy."
    )
    retry_after_s: Seconds | None = None
    key: Name | None = Field(None, description="The gate that a rate limit closes.")
    feedback: Annotated[list[Remark], Field(max_length=100)] = Field(default_factory=list)


class FailureVerdict(BaseModel):
    """The verdict on a failure: retrying, ready, dead_lettered, cancelled or already."""

    id: UUID
    verdict: str
    retry_at: datetime | None
    failure_class: str | None


@busy.post(
    "",
    response_model=Claims,
    responses={**NOTHING, **answers(404)},
    dependencies=[WORK],
    openapi_extra=body_schema(ClaimTasks),
)
async def claim(request: Request) -> Response:
    """Claim tasks.

    The response has up to `limit` tasks, highest priority first. With `wait_seconds` (up to 30) the
    request waits for one. The response is 204 if there is none. If the response was lost, repeat
    the request with the same `token` of your own.
    """
    asked = await read_body(request, ClaimTasks)
    db = access_of(request).claims_for(asked.agent, asked.queues)
    token = asked.token or uuid4()

    async def look(*, idle: bool = True) -> Sequence[Claim]:
        return await db.claims.take(
            asked.agent,
            asked.queues,
            types=asked.types,
            limit=asked.limit,
            token=token,
            start=asked.start,
            idle=idle,
        )

    if asked.limit == 1 and asked.token is None:
        types = None if asked.types is None else tuple(asked.types)
        wish = ClaimRequest(tuple(asked.queues), types, asked.start)
        found = await batcher_of(request).claim(wish, asked.agent)
    else:
        found = await look(idle=False)
    if not found and asked.wait_seconds > 0:
        found = await long_poll_of(request).poll_until(
            request, asked.queues, asked.wait_seconds, look
        )
    if not found:
        return Response(status_code=204)
    if await request.is_disconnected():
        # The client has disconnected: release the tasks.
        await db.claims.release([(each.id, each.token) for each in found])
        return Response(status_code=204)
    return json_response({"claims": [_shown(each) for each in found]})


@router.post("/heartbeat", response_model=HeartbeatVerdicts)
async def heartbeat_many(asked: HeartbeatMany, access: Work) -> Response:
    """Renew the leases of many claims.

    Each is accepted or rejected on its own.
    """
    pairs = _pairs(asked.claims)
    db = await access.claims(pairs)
    verdicts = await db.claims.heartbeat(pairs, [_progress(each) for each in asked.claims])
    return json_response({"items": [_beat(each.id, verdicts[each.id]) for each in asked.claims]})


@busy.post(
    "/complete",
    response_model=EndedMany,
    dependencies=[WORK],
    openapi_extra=body_schema(CompleteMany),
)
async def complete_many(request: Request) -> Response:
    """Complete many tasks.

    Each is accepted or rejected on its own.
    """
    asked = await read_body(request, CompleteMany)
    pairs = _pairs(asked.claims)
    db = await access_of(request).claims(pairs)
    others = await db.claims.complete(
        pairs,
        [encode(each.output, name="output") for each in asked.claims],
        [0] * len(pairs),
        [None if each.report is None else encode(each.report) for each in asked.claims],
    )
    ended = [{"id": each, "verdict": others.get(each, "completed")} for each, _ in pairs]
    return json_response({"items": ended})


@router.post("/{task_id}/start", response_model=Ended, responses=answers(409))
async def start(task_id: UUID, asked: Token, access: Work) -> Response:
    """Start a claimed task.

    This is for a task that was claimed with `start: false`.
    """
    db = await access.claim(task_id, asked.token)
    verdicts = await db.claims.start([(task_id, asked.token)])
    return json_response({"id": task_id, "verdict": held(task_id, verdicts[task_id])})


@router.post("/{task_id}/heartbeat", response_model=HeartbeatResult, responses=answers(409))
async def heartbeat(task_id: UUID, asked: Heartbeat, access: Work) -> Response:
    """Renew the lease of a claim.

    It may also report `progress`. `cancel_requested` in the response tells the agent to stop.
    """
    db = await access.claim(task_id, asked.token)
    verdicts = await db.claims.heartbeat([(task_id, asked.token)], [_progress(asked)])
    if verdicts[task_id] == "lost":
        held(task_id, "lost")
    return json_response(_beat(task_id, verdicts[task_id]))


@busy.post(
    "/{task_id}/complete",
    response_model=Ended,
    responses=answers(409),
    dependencies=[WORK],
    openapi_extra=body_schema(Complete),
)
async def complete(request: Request, task_id: UUID) -> Response:
    """Complete a task.

    Its output is stored. Repeating the request changes nothing.
    """
    asked = await read_body(request, Complete)
    db = await access_of(request).claim(task_id, asked.token)
    output = encode(asked.output, name="output")
    report = None if asked.report is None else encode(asked.report, name="report")
    done = Completion(task_id, asked.token, output, report)
    verdict = await batcher_of(request).complete(None, done)
    if held(task_id, verdict) == "report_required":
        # A call for this task alone raises the reason.
        verdict = await db.claims.complete_one(*done)
    return json_response({"id": task_id, "verdict": verdict})


@router.post("/{task_id}/fail", response_model=FailureVerdict, responses=answers(409))
async def fail(task_id: UUID, asked: Fail, access: Work) -> Response:
    """Fail an attempt.

    The retry policy decides what happens next.
    """
    db = await access.claim(task_id, asked.token)
    failure = Failure(
        clean_text(asked.error),
        asked.failure_class,
        asked.action,
        asked.retry_after_s,
        asked.key,
        tuple(asked.feedback),
    )
    [failed] = await db.claims.fail([(task_id, asked.token)], [failure])
    held(task_id, failed.verdict)
    return json_response(
        json_row(
            {
                "id": task_id,
                "verdict": failed.verdict,
                "retry_at": failed.retry_at,
                "failure_class": failed.failure_class,
            }
        )
    )


@router.post("/{task_id}/release", response_model=Ended, responses=answers(409))
async def release(task_id: UUID, asked: Token, access: Work) -> Response:
    """Give a claimed task back.

    The task does not use up an attempt.
    """
    db = await access.claim(task_id, asked.token)
    verdicts = await db.claims.release([(task_id, asked.token)])
    return json_response({"id": task_id, "verdict": held(task_id, verdicts[task_id])})


def held(task_id: UUID, verdict: str) -> str:
    """The verdict; raises ClaimLost when the claim was superseded."""
    if verdict in ("stale", "lost", "cancelled"):
        raise claim_lost(task_id)
    return verdict


def _pairs(claims: Sequence[ClaimRef]) -> list[Pair]:
    pairs = [(each.id, each.token) for each in claims]
    if len({task_id for task_id, _ in pairs}) < len(pairs):
        raise InvalidArgument(
            "a task is named twice", hint="Name each task once.", argument="claims"
        )
    return pairs


def _shown(claim: Claim) -> dict[str, Any]:
    return json_row({label: getattr(claim, name) for name, label in _FIELDS.items()})


def _progress(asked: Heartbeat | HeartbeatNamed) -> bytes | None:
    return None if asked.progress is None else encode(asked.progress, name="progress")


def _beat(task_id: UUID, verdict: str) -> dict[str, Any]:
    return {"id": task_id, "verdict": verdict, "cancel_requested": verdict == "cancelled"}
