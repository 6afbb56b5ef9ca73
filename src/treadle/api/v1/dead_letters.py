"""`/v1/dead-letters`: tasks that gave up, and what people decide about them."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from treadle.api.access import Principal, Who, need
from treadle.api.deps import Views
from treadle.api.idempotency import Once
from treadle.api.paging import Listed, Page
from treadle.api.problems import answers
from treadle.api.v1 import models_dead as models
from treadle.api.v1.fields import Moment, Name
from treadle.api.v1.plans import check_move
from treadle.api.v1.reach import check_places, check_whole_queues, is_bound, queues_of, within
from treadle.api.wire import answer, record, records
from treadle.db.dead_letters import Decided
from treadle.db.gateway import Gateway
from treadle.db.reader import Reader
from treadle.errors import IllegalTransition, NotFound

router = APIRouter(prefix="/v1/dead-letters", tags=["dead letters"])
DONE = ("retried", "cancelled", "escalated")


@router.get("", response_model=Listed[models.Letter], dependencies=[need("read")])
async def list_letters(
    views: Views,
    page: Page,
    who: Who,
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
    rows = await views.page(
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


@router.get("/groups", response_model=Listed[models.Group], dependencies=[need("read")])
async def groups(views: Views, page: Page, who: Who) -> Response:
    """Open dead letters by what went wrong, with counts."""
    check_whole_queues(who)
    rows = await views.page(
        "dead_letter_groups",
        key="fingerprint",
        after=page.after(str),
        limit=page.more,
        # A group with letters of other queues would tell of them.
        where={"queues <@ {}": queues_of(who)},
    )
    return page.answer(rows, "fingerprint")


@router.get("/log", response_model=Listed[models.DecisionMade], dependencies=[need("read")])
async def log(views: Views, page: Page, who: Who, task_id: UUID | None = None) -> Response:
    """Decisions about dead letters, the newest first."""
    rows = await views.page(
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
    response_model=models.ResolvedMany,
    response_model_exclude_none=True,
    responses=answers(404),
    dependencies=[need("operate")],
)
async def resolve_many(asked: models.ResolveMany, views: Views, who: Who, once: Once) -> Response:
    """Decide about many letters; one that cannot be decided about does not stop the others."""
    decision = asked.decision(who.name)
    ids = list(dict.fromkeys(asked.ids or []))
    if asked.filter is not None:
        # A filter knows no projects.
        check_whole_queues(who)
        who.check_queue(asked.filter.queue or "")
    await _check(views, ids, who)
    check_move(who, asked.changes.named() if asked.changes else {})

    async def effect(calls: Gateway) -> Response:
        if asked.filter is None:
            found = await calls.resolve_dead_letters(ids, decision)
            items = [asdict(each) for each in found.values()]
            done = sum(each.verdict in DONE for each in found.values())
            return answer({"dry_run": False, "done": done, "items": items})
        counts = await calls.resolve_dead_where(
            asked.filter.filters(), decision, dry_run=asked.dry_run
        )
        done = sum(each.letters for each in counts if each.verdict in DONE)
        shown = [asdict(each) for each in counts]
        return answer({"dry_run": asked.dry_run, "done": done, "counts": shown})

    return await once(effect)


@router.get(
    "/{letter_id}",
    response_model=models.WholeLetter,
    responses=answers(404),
    dependencies=[need("read")],
)
async def show(letter_id: UUID, views: Views, who: Who) -> Response:
    """A dead letter, by its id or that of its task: every attempt, and every decision."""
    letters = await views.dead_letters(reviewed=True, task_id=letter_id, limit=1)
    if not letters:
        raise _missing(letter_id)
    [letter] = _with_times(letters)
    await _check(views, [letter["task_id"]], who)
    decisions = await views.decisions(task_id=letter["task_id"], limit=1000)
    return answer({**record(letter), "decisions": records(decisions)})


@router.post(
    "/{letter_id}/resolve",
    response_model=models.Resolved,
    responses=answers(404, 409),
    dependencies=[need("operate")],
)
async def resolve(
    letter_id: UUID, asked: models.Resolve, views: Views, who: Who, once: Once
) -> Response:
    """Decide about one letter: retry, cancel, modify and retry, or escalate."""
    await _check(views, [letter_id], who)
    check_move(who, asked.changes.named() if asked.changes else {})
    decision = asked.decision(who.name)

    async def effect(calls: Gateway) -> Response:
        decided = (await calls.resolve_dead_letters([letter_id], decision))[letter_id]
        if decided.verdict not in DONE:
            raise _problem(decided)
        return answer(asdict(decided))

    return await once(effect)


def _problem(decided: Decided) -> Exception:
    if decided.verdict == "unknown":
        return _missing(decided.id)
    return IllegalTransition(decided.why or decided.verdict, verdict=decided.verdict)


def _missing(letter_id: UUID) -> NotFound:
    return NotFound(f"there is no dead letter {letter_id}", letter_id=str(letter_id))


async def _check(views: Reader, ids: Sequence[UUID], who: Principal) -> None:
    """Refuse letters that are out of reach of the token."""
    if is_bound(who):
        check_places(who, await views.letter_places(ids))


def _with_times(letters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The history comes as JSON from the database, with times in the zone of the session."""
    for letter in letters:
        for each in letter["history"] or []:
            each["ended_at"] = datetime.fromisoformat(each["ended_at"]).astimezone(UTC)
    return letters
