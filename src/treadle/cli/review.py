"""What the decisions about dead letters share: which are meant, by whom, why, what became of them.

Letters are named by the ids of their tasks or their own, or found by filters; what filters find is
counted first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import ages, common, out
from treadle.cli.bulk import FEW
from treadle.cli.out import Column
from treadle.cli.progress import bar
from treadle.errors import IllegalTransition, InvalidArgument, NotFound, TreadleError

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.dead_letters import Decided, Decision, LetterCount

RESULTS = [
    Column("id", "id"),
    Column("now", "now"),
    Column("verdict", "verdict"),
    Column("problem", "problem"),
]
COUNTS = [
    Column("letters", "letters", right=True),
    Column("verdict", "verdict"),
    Column("group", "fingerprint"),
    Column("class", "failure_class"),
    Column("type", "type"),
    Column("queue", "queue"),
    Column("why", "why"),
]
DONE = ("retried", "cancelled", "escalated")

Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ID...]", help="Ids of tasks or letters, or their last 6 or more characters."
    ),
]
All = Annotated[bool, typer.Option("--all", help="All that wait, or all that match; it asks.")]
Group = Annotated[
    str | None, typer.Option("--group", metavar="GROUP", help="All of this group: treadle dead.")
]
Queue = Annotated[str | None, typer.Option(help="All of this queue.")]
Type = Annotated[str | None, typer.Option(help="All of this type.")]
Class = Annotated[
    str | None, typer.Option("--class", help="All that failed in this way: timeout, …")
]
Older = Annotated[
    str | None,
    typer.Option("--older-than", metavar="WHEN", help="All from before: 90s, 45m, 2h, 7d ago."),
]
Poison = Annotated[
    bool | None, typer.Option("--poison/--no-poison", help="Only poison pills, or none of them.")
]
Escalated = Annotated[
    bool | None,
    typer.Option("--escalated/--not-escalated", help="Only those with someone, or none of them."),
]
Note = Annotated[str | None, typer.Option(help="Why; it is kept.")]
By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who decides; else the login.")
]
Delay = Annotated[
    str | None,
    typer.Option("--after", "--delay", metavar="WHEN", help="Not before: 45m, 2h, 1d, a moment."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count what the filters find.")]


@dataclass(frozen=True)
class Asked:
    """Which letters are meant, and how the command was called."""

    verb: str
    task_ids: list[str] | None
    everything: bool
    filters: Mapping[str, Any]
    dry_run: bool
    yes: bool
    as_json: bool
    database_url: str | None


def letter_filters(
    *,
    group: str | None,
    queue: str | None,
    type: str | None,
    failure_class: str | None,
    older_than: str | None,
    poison: bool | None,
    escalated: bool | None,
) -> dict[str, Any]:
    """What was given, as SQL reads it."""
    before = moment_before(older_than)
    given = {
        "fingerprint": group,
        "queue": queue,
        "type": type,
        "failure_class": failure_class,
        "dead_before": before and before.isoformat(),
        "poison": poison,
        "escalated": escalated,
    }
    return {name: value for name, value in given.items() if value is not None}


def moment_before(text: str | None) -> datetime | None:
    """A moment, or how long ago it was."""
    if text is None:
        return None
    found = ages.moment(text, "older_than")
    return datetime.now(tz=UTC) - found if isinstance(found, timedelta) else found


def seconds_until(text: str | None) -> float | None:
    """How long to wait until a moment, or for a time."""
    if text is None:
        return None
    found = ages.moment(text, "after")
    span = found if isinstance(found, timedelta) else found - datetime.now(tz=UTC)
    return max(0.0, span.total_seconds())


def decide(asked: Asked, decision: Decision) -> None:
    """Carry a decision out, about letters by id or about all that filters find."""
    by_filter = asked.everything or bool(asked.filters)
    if bool(asked.task_ids) == by_filter:
        raise InvalidArgument(
            "name letters by id, or find them by filters or --all, and not both",
            hint=f"See: treadle dead {asked.verb} --help",
        )
    if not by_filter and asked.dry_run:
        raise InvalidArgument("--dry-run goes with filters, not with ids")
    if by_filter:
        _decide_where(asked, decision)
    else:
        _decide_ids(asked, decision)


def _decide_where(asked: Asked, decision: Decision) -> None:
    filters = asked.filters or {"status": "dead_lettered"}

    async def count(app: Treadle) -> list[LetterCount]:
        return await (await app.gateway()).resolve_dead_where(filters, decision, dry_run=True)

    async def carry_out(app: Treadle) -> list[LetterCount]:
        with bar("decided", found) as tell:
            gateway = await app.gateway()
            return await gateway.resolve_dead_where(filters, decision, on_batch=tell)

    counts = common.call(count, asked.database_url)
    found = sum(each.letters for each in counts)
    if found and not asked.dry_run:
        if asked.everything or found > FEW:
            word = "letter" if found == 1 else "letters"
            common.confirm(f"{asked.verb} {found} dead {word}", yes=asked.yes, dry_run=True)
        counts = common.call(carry_out, asked.database_url)
    out.show(
        [asdict(each) for each in counts], COUNTS, as_json=asked.as_json, empty="no dead letters"
    )
    wrong = sum(each.letters for each in counts if each.verdict not in (*DONE, "found"))
    if wrong:
        common.note(f"error: {wrong} of {found} could not be decided about")
        raise typer.Exit(IllegalTransition.exit_code)


def _decide_ids(asked: Asked, decision: Decision) -> None:
    texts = asked.task_ids or []

    async def work(app: Treadle) -> list[tuple[str, Decided | TreadleError]]:
        reader, gateway = await app.reader(), await app.gateway()
        known: dict[str, UUID | TreadleError] = {}
        for text in texts:
            try:
                known[text] = await reader.find_letter(text.lstrip("…."))
            except TreadleError as error:
                if len(texts) == 1:
                    raise
                known[text] = error
        ids = [each for each in known.values() if isinstance(each, UUID)]
        done = await gateway.resolve_dead_letters(ids, decision)
        return [
            (text, done[each] if isinstance(each, UUID) else each) for text, each in known.items()
        ]

    answers = [(text, answer, _problem(answer)) for text, answer in _all(work, asked)]
    problems = [problem for _, _, problem in answers if problem is not None]
    if len(answers) == 1 and problems:
        raise problems[0]
    rows = [_row(text, answer, problem) for text, answer, problem in answers]
    out.show(rows, RESULTS, as_json=asked.as_json)
    if problems:
        common.note(f"error: {len(problems)} of {len(answers)} could not be decided about")
        raise typer.Exit(problems[0].exit_code)


def _all(work: Any, asked: Asked) -> list[tuple[str, Decided | TreadleError]]:
    answers: list[tuple[str, Decided | TreadleError]] = common.call(work, asked.database_url)
    return answers


def _row(text: str, answer: Decided | TreadleError, problem: TreadleError | None) -> dict[str, Any]:
    if isinstance(answer, TreadleError):
        return {"id": text, "now": None, "verdict": "unknown", "problem": str(answer)}
    return {
        "id": answer.task_id or answer.id,
        "now": answer.status,
        "verdict": answer.verdict,
        "problem": problem and str(problem),
    }


def _problem(answer: Decided | TreadleError) -> TreadleError | None:
    """Why nothing was done, as the error that a person reads."""
    if isinstance(answer, TreadleError):
        return answer
    if answer.verdict in DONE:
        return None
    if answer.verdict == "unknown":
        return NotFound(
            f"there is no dead letter {answer.id}", hint="List them: treadle dead list --all"
        )
    return IllegalTransition(
        answer.why or answer.verdict, hint=f"See it: treadle dead show {answer.task_id}"
    )
