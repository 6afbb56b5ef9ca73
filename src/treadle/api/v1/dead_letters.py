"""`/v1/dead-letters`: tasks that gave up, and what people decide about them."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field, model_validator
from starlette.responses import Response

from treadle.api.access import (
    Caller,
    Db,
    Principal,
    check_move,
    check_places,
    check_whole_queues,
    is_restricted,
    queues_of,
    requires,
    within,
)
from treadle.api.bodies import Body, Id, Moment, Name, Object, Seconds, Text, Usd
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.responses import json_response, json_row, json_rows
from treadle.db.database import Database
from treadle.db.dead_letters import Decided, Decision
from treadle.errors import IllegalTransition, NotFound

Resolution = Literal["retry", "cancel", "modify", "escalate"]
MOST_IDS = 1000
router = APIRouter(prefix="/v1/dead-letters", tags=["dead letters"])
DONE = ("retried", "cancelled", "escalated")


class Changes(Body):
    """What is changed before a letter runs again; what is not named stays."""

    spec: Object | None = Field(None, description="Arguments to change; the others stay.")
    set: Object | None = Field(None, description='Single values: {"options.retries": 0}.')
    unset: list[Name] | None = Field(None, max_length=100)
    queue: Name | None = None
    type: Name | None = None
    priority: int | None = Field(None, ge=0, le=100)
    max_attempts: int | None = Field(None, ge=1, le=1000)
    timeout_s: Seconds | None = None
    assigned_agent: Name | None = None
    retry: Object | None = None
    max_cost_usd: Usd | None = None
    max_tokens: int | None = Field(None, ge=0, le=2**53)
    models: list[Name] | None = Field(None, max_length=20)
    validation: list[Object] | None = Field(None, max_length=20)


class Resolve(Body):
    """A decision; `modify` goes with changes, `escalate` with to, a delay with what runs again."""

    resolution: Resolution
    changes: Changes | None = None
    note: Text | None = Field(None, max_length=2000)
    delay_s: float | None = Field(None, ge=0, le=31_536_000)
    to: Text | None = Field(None, min_length=1, max_length=200)

    def decision(self, by: str) -> Decision:
        """As `db.dead_letters.resolve` takes it."""
        word = "modify_and_retry" if self.resolution == "modify" else self.resolution
        changes = self.changes.named() if self.changes else {}
        return Decision(word, changes, by, self.note, self.delay_s, self.to)


class LetterFilter(Body):
    """Which letters are meant; all that is named must hold."""

    group: Name | None = None
    queue: Name | None = None
    type: Name | None = None
    failure_class: Name | None = Field(None, alias="class")
    dead_before: Text | None = Field(None, min_length=1, max_length=100)
    dead_after: Text | None = Field(None, min_length=1, max_length=100)
    poison: bool | None = None
    escalated: bool | None = None

    def filters(self) -> dict[str, Any]:
        """As SQL reads it; a filter without a condition is all open letters."""
        words = {"group": "fingerprint", "class": "failure_class"}
        named = {
            words.get(name, name): value
            for name, value in self.named().items()
            if value is not None
        }
        return named or {"status": "dead_lettered"}


class ResolveMany(Resolve):
    """A decision about letters by their ids, or about all that a filter finds."""

    ids: list[Id] | None = Field(None, min_length=1, max_length=MOST_IDS)
    filter: LetterFilter | None = Field(None, description="{} is every open letter.")
    dry_run: bool = Field(False, description="Only count what the filter finds.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.ids is None) == (self.filter is None):
            raise ValueError("give ids or a filter, and not both")
        if self.dry_run and self.filter is None:
            raise ValueError("dry_run goes with a filter, not with ids")
        return self


class Resolved(BaseModel):
    """What became of a letter, and the state of its task now."""

    id: UUID
    task_id: UUID | None
    letter_id: UUID | None
    verdict: Literal["retried", "cancelled", "escalated", "already", "refused", "unknown"]
    status: str | None
    why: str | None


class LetterCount(BaseModel):
    """So many letters of one kind, and what became of them."""

    queue: str
    type: str
    failure_class: str
    fingerprint: str
    verdict: str
    why: str | None
    letters: int


class ResolvedMany(BaseModel):
    """With ids what became of each, with a filter how many; `done` counts those decided about."""

    dry_run: bool
    done: int
    items: list[Resolved] | None = None
    counts: list[LetterCount] | None = None


class Attempt(BaseModel):
    """An attempt that led to a letter."""

    attempt: int
    agent: str | None
    outcome: str
    failure_class: str | None = Field(alias="class")
    reason: str | None
    error: str | None
    model: str | None
    duration_s: float | None
    cost_usd: float | None
    ended_at: datetime


class DeadLetter(BaseModel):
    """A task that gave up, and what was decided about it."""

    id: UUID
    task_id: UUID
    queue: str
    type: str
    title: str | None
    dag_id: UUID | None
    failure_class: str = Field(alias="class")
    reason: str | None
    poison_pill: bool
    attempts: int
    total_cost_usd: float
    dead_lettered_at: datetime
    reviewed: bool
    resolution: str | None
    resolved_at: datetime | None
    reviewer: str | None
    note: str | None
    spec: Any
    history: list[Attempt] | None
    fingerprint: str
    about: str
    escalated_at: datetime | None
    escalated_to: str | None


class DecisionLogEntry(BaseModel):
    """A decision about a letter; none is ever removed."""

    id: int
    at: datetime
    decision: str
    actor: str
    note: str | None
    changes: Any
    delay_s: float | None
    escalated_to: str | None
    letter_id: UUID
    task_id: UUID
    queue: str
    type: str
    failure_class: str = Field(alias="class")
    fingerprint: str
    about: str


class DeadLetterDetails(DeadLetter):
    """A letter with every decision about its task."""

    decisions: list[DecisionLogEntry]


class DeadLetterGroup(BaseModel):
    """Open letters with one class and one kind of error."""

    fingerprint: str
    failure_class: str = Field(alias="class")
    about: str
    letters: int
    poison_pills: int
    escalated: int
    queues: list[str]
    types: list[str]
    agents: list[str | None] | None
    attempts: int
    total_cost_usd: float
    first_at: datetime
    last_at: datetime
    sample_task: UUID
    sample_reason: str | None


@router.get("", response_model=Listed[DeadLetter], dependencies=[requires("read")])
async def list_letters(
    db: Db,
    page: Page,
    who: Caller,
    *,
    queue: Name | None = None,
    type: Name | None = None,
    failure_class: Annotated[Name | None, Query(alias="class")] = None,
    group: Name | None = None,
    poison: bool | None = None,
    escalated: bool | None = None,
    before: Moment | None = None,
    reviewed: Annotated[bool, Query(description="Also those decided about.")] = False,
) -> Response:
    """Dead letters that wait for a decision, the newest first."""
    rows = await db.calls.page(
        "dead_letter_review",
        key="id",
        after=page.after(UUID),
        limit=page.more,
        newest=True,
        where={
            "queue = {}": queue,
            "type = {}": type,
            "class = {}": failure_class,
            "fingerprint = {}": group,
            "poison_pill = {}": poison,
            "(escalated_at is not null) = {}": escalated,
            "dead_lettered_at < {}": before,
            "reviewed = {}": None if reviewed else False,
            **within(who),
        },
    )
    return page.answer(_with_times(rows), "id")


@router.get("/groups", response_model=Listed[DeadLetterGroup], dependencies=[requires("read")])
async def groups(db: Db, page: Page, who: Caller) -> Response:
    """Open dead letters by what went wrong, with counts."""
    check_whole_queues(who)
    rows = await db.calls.page(
        "dead_letter_groups",
        key="fingerprint",
        after=page.after(str),
        limit=page.more,
        # A group with letters of other queues would tell of them.
        where={"queues <@ {}": queues_of(who)},
    )
    return page.answer(rows, "fingerprint")


@router.get("/log", response_model=Listed[DecisionLogEntry], dependencies=[requires("read")])
async def log(db: Db, page: Page, who: Caller, task_id: UUID | None = None) -> Response:
    """Decisions about dead letters, the newest first."""
    rows = await db.calls.page(
        "dead_letter_log",
        key="id",
        after=page.after(int),
        limit=page.more,
        newest=True,
        where={
            "task_id = {}": task_id,
            **within(who),
        },
    )
    return page.answer(rows, "id")


@router.post(
    "/resolve",
    response_model=ResolvedMany,
    response_model_exclude_none=True,
    responses=answers(404),
    dependencies=[requires("operate")],
)
async def resolve_many(asked: ResolveMany, db: Db, who: Caller, once: Once) -> Response:
    """Decide about many letters; one that cannot be decided about does not stop the others."""
    decision = asked.decision(who.name)
    ids = list(dict.fromkeys(asked.ids or []))
    if asked.filter is not None:
        # A filter knows no projects.
        check_whole_queues(who)
        who.check_queue(asked.filter.queue or "")
    await _check(db, ids, who)
    check_move(who, asked.changes.named() if asked.changes else {})

    async def effect(db: Database) -> Response:
        if asked.filter is None:
            found = await db.dead_letters.resolve(ids, decision)
            items = [asdict(each) for each in found.values()]
            done = sum(each.verdict in DONE for each in found.values())
            return json_response({"dry_run": False, "done": done, "items": items})
        counts = await db.dead_letters.resolve_where(
            asked.filter.filters(), decision, dry_run=asked.dry_run
        )
        done = sum(each.letters for each in counts if each.verdict in DONE)
        shown = [asdict(each) for each in counts]
        return json_response({"dry_run": asked.dry_run, "done": done, "counts": shown})

    return await once(effect)


@router.get(
    "/{letter_id}",
    response_model=DeadLetterDetails,
    responses=answers(404),
    dependencies=[requires("read")],
)
async def show(letter_id: UUID, db: Db, who: Caller) -> Response:
    """A dead letter, by its id or that of its task: every attempt, and every decision."""
    letters = await db.dead_letters.list(reviewed=True, task_id=letter_id, limit=1)
    if not letters:
        raise _missing(letter_id)
    [letter] = _with_times(letters)
    await _check(db, [letter["task_id"]], who)
    decisions = await db.dead_letters.decisions(task_id=letter["task_id"], limit=1000)
    return json_response({**json_row(letter), "decisions": json_rows(decisions)})


@router.post(
    "/{letter_id}/resolve",
    response_model=Resolved,
    responses=answers(404, 409),
    dependencies=[requires("operate")],
)
async def resolve(letter_id: UUID, asked: Resolve, db: Db, who: Caller, once: Once) -> Response:
    """Decide about one letter: retry, cancel, modify and retry, or escalate."""
    await _check(db, [letter_id], who)
    check_move(who, asked.changes.named() if asked.changes else {})
    decision = asked.decision(who.name)

    async def effect(db: Database) -> Response:
        decided = (await db.dead_letters.resolve([letter_id], decision))[letter_id]
        if decided.verdict not in DONE:
            raise _problem(decided)
        return json_response(asdict(decided))

    return await once(effect)


def _problem(decided: Decided) -> Exception:
    if decided.verdict == "unknown":
        return _missing(decided.id)
    return IllegalTransition(decided.why or decided.verdict, verdict=decided.verdict)


def _missing(letter_id: UUID) -> NotFound:
    return NotFound(f"there is no dead letter {letter_id}", letter_id=str(letter_id))


async def _check(db: Database, ids: Sequence[UUID], who: Principal) -> None:
    """Refuse letters that are out of reach of the token."""
    if is_restricted(who):
        check_places(who, await db.access.of_letters(ids))


def _with_times(letters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The history comes as JSON from the database, with times in the zone of the session."""
    for letter in letters:
        for each in letter["history"] or []:
            each["ended_at"] = datetime.fromisoformat(each["ended_at"]).astimezone(UTC)
    return letters
