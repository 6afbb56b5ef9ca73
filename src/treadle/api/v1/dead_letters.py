"""`/v1/dead-letters`: tasks that failed for good, and decisions about them."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field, model_validator
from starlette.responses import Response

from treadle.api.access import FILTER, LETTER, LIST, WHOLE_QUEUES, Access, requires
from treadle.api.bodies import Body, Id, Moment, Name, Text, json_response, json_row, json_rows
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.v1.tasks import RetryChanges
from treadle.db.database import Database
from treadle.db.dead_letters import Decided, Decision
from treadle.errors import IllegalTransition, NotFound

Resolution = Literal["retry", "cancel", "modify", "escalate"]
MOST_IDS = 1000
router = APIRouter(prefix="/v1/dead-letters", tags=["dead letters"])
List = Annotated[Access, requires("read", on=LIST)]
Groups = Annotated[Access, requires("read", on=WHOLE_QUEUES)]
Read = Annotated[Access, requires("read", on=LETTER)]
Operate = Annotated[Access, requires("operate", on=LETTER)]
OperateMany = Annotated[Access, requires("operate", on=FILTER)]
DONE = ("retried", "cancelled", "escalated")


class Resolve(Body):
    """A decision; `modify` needs `changes`, `escalate` needs `to`, and retries may have a delay."""

    resolution: Resolution
    changes: RetryChanges | None = None
    note: Text | None = Field(None, max_length=2000)
    delay_s: float | None = Field(None, ge=0, le=31_536_000)
    to: Text | None = Field(None, min_length=1, max_length=200)

    def decision(self, by: str) -> Decision:
        """The decision for `db.dead_letters.resolve`."""
        word = "modify_and_retry" if self.resolution == "modify" else self.resolution
        changes = self.changes.named() if self.changes else {}
        return Decision(word, changes, by, self.note, self.delay_s, self.to)


class LetterFilter(Body):
    """Dead letters that match all fields."""

    group: Name | None = None
    queue: Name | None = None
    type: Name | None = None
    failure_class: Name | None = Field(None, alias="class")
    dead_before: Text | None = Field(None, min_length=1, max_length=100)
    dead_after: Text | None = Field(None, min_length=1, max_length=100)
    poison: bool | None = None
    escalated: bool | None = None

    def filters(self) -> dict[str, Any]:
        """The filter for SQL; a filter without a condition matches all open letters."""
        words = {"group": "fingerprint", "class": "failure_class"}
        named = {
            words.get(name, name): value
            for name, value in self.named().items()
            if value is not None
        }
        return named or {"status": "dead_lettered"}


class ResolveMany(Resolve):
    """A decision about dead letters by their ids or by a filter."""

    ids: list[Id] | None = Field(None, min_length=1, max_length=MOST_IDS)
    filter: LetterFilter | None = Field(None, description="{} matches every open letter.")
    dry_run: bool = Field(False, description="Only count what the filter finds.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.ids is None) == (self.filter is None):
            raise ValueError("send either ids or a filter")
        if self.dry_run and self.filter is None:
            raise ValueError("dry_run needs a filter")
        return self


class Resolved(BaseModel):
    """The verdict on a dead letter, and the status of its task."""

    id: UUID
    task_id: UUID | None
    letter_id: UUID | None
    verdict: Literal["retried", "cancelled", "escalated", "already", "refused", "unknown"]
    status: str | None
    why: str | None


class LetterCount(BaseModel):
    """The number of dead letters with the same error and verdict."""

    queue: str
    type: str
    failure_class: str
    fingerprint: str
    verdict: str
    why: str | None
    letters: int


class ResolvedMany(BaseModel):
    """With ids the verdict on each, with a filter their number; `done` counts the resolved ones."""

    dry_run: bool
    done: int
    items: list[Resolved] | None = None
    counts: list[LetterCount] | None = None


class LetterAttempt(BaseModel):
    """An attempt before the task was dead-lettered."""

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
    """A dead-lettered task and the decision about it."""

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
    history: list[LetterAttempt] | None
    fingerprint: str
    about: str
    escalated_at: datetime | None
    escalated_to: str | None


class DecisionLogEntry(BaseModel):
    """A decision about a dead letter; decisions are never removed."""

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
    """A dead letter with all decisions about its task."""

    decisions: list[DecisionLogEntry]


class DeadLetterGroup(BaseModel):
    """Open dead letters with the same class and error."""

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


@router.get("", response_model=Listed[DeadLetter])
async def list_letters(
    access: List,
    page: Page,
    *,
    queue: Name | None = None,
    type: Name | None = None,
    failure_class: Annotated[Name | None, Query(alias="class")] = None,
    group: Name | None = None,
    poison: bool | None = None,
    escalated: bool | None = None,
    before: Moment | None = None,
    reviewed: Annotated[bool, Query(description="Include resolved ones.")] = False,
) -> Response:
    """List dead letters.

    Those that wait for a decision are listed, newest first; `reviewed` includes resolved ones.
    """
    rows = await access.db.dead_letters.page(
        access.view,
        queue=queue,
        type=type,
        failure_class=failure_class,
        fingerprint=group,
        poison=poison,
        escalated=escalated,
        before=before,
        reviewed=reviewed,
        after=page.after(UUID),
        limit=page.more,
    )
    return page.answer(_with_times(rows), "id")


@router.get("/groups", response_model=Listed[DeadLetterGroup])
async def groups(access: Groups, page: Page) -> Response:
    """Group dead letters by error.

    Each group of open dead letters has its counts.
    """
    rows = await access.db.dead_letters.group_page(
        access.view, after=page.after(str), limit=page.more
    )
    return page.answer(rows, "fingerprint")


@router.get("/log", response_model=Listed[DecisionLogEntry])
async def log(access: List, page: Page, task_id: UUID | None = None) -> Response:
    """List decisions about dead letters.

    The newest come first.
    """
    rows = await access.db.dead_letters.decision_page(
        access.view, task_id=task_id, after=page.after(int), limit=page.more
    )
    return page.answer(rows, "id")


@router.post(
    "/resolve",
    response_model=ResolvedMany,
    response_model_exclude_none=True,
    responses=answers(404),
)
async def resolve_many(asked: ResolveMany, access: OperateMany, once: Once) -> Response:
    """Resolve many dead letters.

    The body names them by `ids`, or by a `filter`; `{}` matches every open one. One that cannot be
    resolved does not stop the others. `dry_run` only counts.
    """
    decision = asked.decision(access.caller.name)
    ids = list(dict.fromkeys(asked.ids or []))
    if asked.filter is not None:
        access.check_filter(asked.filter.queue)
    else:
        await access.check_rows("dead letter", ids)
    access.check_move(asked.changes.named() if asked.changes else {})

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
)
async def show(letter_id: UUID, access: Read) -> Response:
    """Get a dead letter.

    The id is its own or that of its task. The response has attempts and decisions.
    """
    letters = await access.db.dead_letters.list(reviewed=True, task_id=letter_id, limit=1)
    if not letters:
        raise _missing(letter_id)
    [letter] = _with_times(letters)
    decisions = await access.db.dead_letters.decisions(task_id=letter["task_id"], limit=1000)
    return json_response({**json_row(letter), "decisions": json_rows(decisions)})


@router.post(
    "/{letter_id}/resolve",
    response_model=Resolved,
    responses=answers(404, 409),
)
async def resolve(letter_id: UUID, asked: Resolve, access: Operate, once: Once) -> Response:
    """Resolve a dead letter.

    `resolution` is `retry`, `cancel`, `modify` with `changes`, or `escalate` with `to`. The
    response is 409 if it has been resolved already.
    """
    access.check_move(asked.changes.named() if asked.changes else {})
    decision = asked.decision(access.caller.name)

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


def _with_times(letters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The history comes as JSON from the database, with times in the zone of the session."""
    for letter in letters:
        for each in letter["history"] or []:
            each["ended_at"] = datetime.fromisoformat(each["ended_at"]).astimezone(UTC)
    return letters
