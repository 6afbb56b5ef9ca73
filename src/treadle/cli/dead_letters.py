"""`treadle dead`: tasks that gave up, and what people decide about them.

Decisions are about letters by id, or about all that match a filter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import common, output, task_view, times
from treadle.cli.output import Column, bar
from treadle.cli.task_actions import FEW
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
class LetterSelection:
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
    found = times.moment(text, "older_than")
    return datetime.now(tz=UTC) - found if isinstance(found, timedelta) else found


def seconds_until(text: str | None) -> float | None:
    """How long to wait until a moment, or for a time."""
    if text is None:
        return None
    found = times.moment(text, "after")
    span = found if isinstance(found, timedelta) else found - datetime.now(tz=UTC)
    return max(0.0, span.total_seconds())


def decide(asked: LetterSelection, decision: Decision) -> None:
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


def _decide_where(asked: LetterSelection, decision: Decision) -> None:
    filters = asked.filters or {"status": "dead_lettered"}

    async def count(app: Treadle) -> list[LetterCount]:
        return await app.db.dead_letters.resolve_where(filters, decision, dry_run=True)

    async def carry_out(app: Treadle) -> list[LetterCount]:
        with bar("decided", found) as tell:
            return await app.db.dead_letters.resolve_where(filters, decision, on_batch=tell)

    counts = common.call(count, asked.database_url)
    found = sum(each.letters for each in counts)
    if found and not asked.dry_run:
        if asked.everything or found > FEW:
            word = "letter" if found == 1 else "letters"
            common.confirm(f"{asked.verb} {found} dead {word}", yes=asked.yes, dry_run=True)
        counts = common.call(carry_out, asked.database_url)
    output.show(
        [asdict(each) for each in counts], COUNTS, as_json=asked.as_json, empty="no dead letters"
    )
    wrong = sum(each.letters for each in counts if each.verdict not in (*DONE, "found"))
    if wrong:
        common.note(f"error: {wrong} of {found} could not be decided about")
        raise typer.Exit(IllegalTransition.exit_code)


def _decide_ids(asked: LetterSelection, decision: Decision) -> None:
    texts = asked.task_ids or []

    async def work(app: Treadle) -> list[tuple[str, Decided | TreadleError]]:
        db = app.db
        known: dict[str, UUID | TreadleError] = {}
        for text in texts:
            try:
                known[text] = await db.dead_letters.find(text.lstrip("…."))
            except TreadleError as error:
                if len(texts) == 1:
                    raise
                known[text] = error
        ids = [each for each in known.values() if isinstance(each, UUID)]
        done = await db.dead_letters.resolve(ids, decision)
        return [
            (text, done[each] if isinstance(each, UUID) else each) for text, each in known.items()
        ]

    answers = [(text, answer, _problem(answer)) for text, answer in _all(work, asked)]
    problems = [problem for _, _, problem in answers if problem is not None]
    if len(answers) == 1 and problems:
        raise problems[0]
    rows = [_row(text, answer, problem) for text, answer, problem in answers]
    output.show(rows, RESULTS, as_json=asked.as_json)
    if problems:
        common.note(f"error: {len(problems)} of {len(answers)} could not be decided about")
        raise typer.Exit(problems[0].exit_code)


def _all(work: Any, asked: LetterSelection) -> list[tuple[str, Decided | TreadleError]]:
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


def retry(
    task_ids: Ids = None,
    everything: All = False,
    group: Group = None,
    queue: Queue = None,
    type: Type = None,
    failure_class: Class = None,
    older_than: Older = None,
    poison: Poison = None,
    escalated: Escalated = None,
    after: Delay = None,
    note: Note = None,
    by: By = None,
    dry_run: DryRun = False,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Run dead letters again with a new round of attempts, now or later.

    \b
    Examples:
      treadle dead retry 9f3a21c4 --note "provider is back"
      treadle dead retry --group 9f3a21c4d0e5 --after 2h --dry-run

    Exit code 3: no such letter. 4: someone was first, or it cannot run again.
    """
    from treadle.db.dead_letters import Decision

    filters = letter_filters(
        group=group,
        queue=queue,
        type=type,
        failure_class=failure_class,
        older_than=older_than,
        poison=poison,
        escalated=escalated,
    )
    asked = LetterSelection(
        "retry", task_ids, everything, filters, dry_run, yes, as_json, database_url
    )
    decide(asked, Decision("retry", by=by, note=note, delay_s=seconds_until(after)))


def cancel(
    task_ids: Ids = None,
    everything: All = False,
    group: Group = None,
    queue: Queue = None,
    type: Type = None,
    failure_class: Class = None,
    older_than: Older = None,
    poison: Poison = None,
    escalated: Escalated = None,
    note: Note = None,
    by: By = None,
    dry_run: DryRun = False,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Give dead letters up for good, and what depends on them.

    \b
    Examples:
      treadle dead cancel 9f3a21c4 --note obsolete
      treadle dead cancel --queue mail --older-than 30d --dry-run

    Exit code 3: no such letter. 4: someone was first.
    """
    from treadle.db.dead_letters import Decision

    filters = letter_filters(
        group=group,
        queue=queue,
        type=type,
        failure_class=failure_class,
        older_than=older_than,
        poison=poison,
        escalated=escalated,
    )
    asked = LetterSelection(
        "cancel", task_ids, everything, filters, dry_run, yes, as_json, database_url
    )
    decide(asked, Decision("cancel", by=by, note=note))


def escalate(
    to: Annotated[str, typer.Option("--to", metavar="WHO", help="Who is to decide.")],
    task_ids: Ids = None,
    everything: All = False,
    group: Group = None,
    queue: Queue = None,
    type: Type = None,
    failure_class: Class = None,
    older_than: Older = None,
    poison: Poison = None,
    escalated: Escalated = None,
    note: Note = None,
    by: By = None,
    dry_run: DryRun = False,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Hand dead letters to someone; they stay open, are listed first, and an event tells it.

    \b
    Examples:
      treadle dead escalate 9f3a21c4 --to ops --note "needs a new key"
      treadle dead escalate --class auth_failure --not-escalated --to ops
    """
    from treadle.db.dead_letters import Decision

    filters = letter_filters(
        group=group,
        queue=queue,
        type=type,
        failure_class=failure_class,
        older_than=older_than,
        poison=poison,
        escalated=escalated,
    )
    asked = LetterSelection(
        "escalate", task_ids, everything, filters, dry_run, yes, as_json, database_url
    )
    decide(asked, Decision("escalate", by=by, note=note, to=to))


def modify(
    task_ids: Ids = None,
    everything: All = False,
    group: Group = None,
    from_queue: Annotated[str | None, typer.Option(help="All of this queue.")] = None,
    type: Type = None,
    failure_class: Class = None,
    older_than: Older = None,
    poison: Poison = None,
    escalated: Escalated = None,
    spec: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Arguments to change: JSON, @file or -; others stay."),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="PATH=VALUE", help="Change one value: a.b=2; may be repeated."
        ),
    ] = None,
    unsets: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="PATH", help="Take one value away; may be repeated."),
    ] = None,
    priority: Annotated[int | None, typer.Option(metavar="N", help="0 is first, 100 last.")] = None,
    queue: Annotated[str | None, typer.Option(help="Move it to this queue.")] = None,
    max_attempts: Annotated[
        int | None, typer.Option(metavar="N", help="For the new round.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(metavar="S", help="Longest attempt.")] = None,
    after: Delay = None,
    note: Note = None,
    by: By = None,
    dry_run: DryRun = False,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Change dead letters and run them again; an edit that does not fit changes nothing.

    \b
    Examples:
      treadle dead modify 9f3a21c4 --spec '{"url": "https://example.org/new"}'
      treadle dead modify --group 9f3a21c4d0e5 --set options.retries=0 --timeout 600 --dry-run
    """
    from treadle.db.dead_letters import Decision

    changes = {
        "spec": common.json_argument(spec, "spec") if spec is not None else None,
        "set": dict(_pair(each) for each in sets) if sets else None,
        "unset": unsets or None,
        "priority": priority,
        "queue": queue,
        "max_attempts": max_attempts,
        "timeout_s": timeout,
    }
    named = {name: value for name, value in changes.items() if value is not None}
    if not named:
        raise InvalidArgument("nothing to change is named", hint="For example: --set url=new")
    filters = letter_filters(
        group=group,
        queue=from_queue,
        type=type,
        failure_class=failure_class,
        older_than=older_than,
        poison=poison,
        escalated=escalated,
    )
    asked = LetterSelection(
        "modify", task_ids, everything, filters, dry_run, yes, as_json, database_url
    )
    decide(
        asked,
        Decision("modify_and_retry", named, by=by, note=note, delay_s=seconds_until(after)),
    )


def _pair(text: str) -> tuple[str, Any]:
    """A path and its value, which is JSON, or text where it is none."""
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise InvalidArgument(f"{text!r} is not PATH=VALUE", hint="For example: --set a.b=2")
    return path, common.json_or_text(value)


def _cost(value: float | None) -> str:
    return f"${value:.4f}" if value else "-"


GROUPS = [
    Column("letters", "letters", right=True),
    Column("group", "fingerprint"),
    Column("class", "class"),
    Column("types", "types"),
    Column("poison", "poison_pills", right=True, extra=True),
    Column("escalated", "escalated", right=True, extra=True),
    Column("agents", "agents", extra=True),
    Column("cost", "total_cost_usd", _cost, right=True, extra=True),
    Column("first", "first_at", output.ago, extra=True),
    Column("last", "last_at", output.ago),
    Column("sample", "sample_task", output.short, extra=True),
    Column("about", "about"),
]
COLUMNS = [
    Column("task", "task_id", output.short),
    Column("type", "type"),
    Column("queue", "queue", extra=True),
    Column("group", "fingerprint", extra=True),
    Column("class", "class"),
    Column("attempts", "attempts", right=True),
    Column("poison", "poison_pill", extra=True),
    Column("cost", "total_cost_usd", _cost, right=True, extra=True),
    Column("since", "dead_lettered_at", output.ago),
    Column("with", "escalated_to", extra=True),
    Column("decided", "resolution", extra=True),
    Column("reason", "reason"),
]
LOG = [
    Column("when", "at", output.ago),
    Column("task", "task_id", output.short),
    Column("type", "type", extra=True),
    Column("decision", "decision"),
    Column("by", "actor"),
    Column("to", "escalated_to", extra=True),
    Column("delay", "delay_s", output.length, extra=True),
    Column("changes", "changes", extra=True),
    Column("group", "fingerprint", extra=True),
    Column("note", "note"),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most.")]


def _groups(as_json: bool, database_url: str | None) -> None:
    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.dead_letters.groups()

    output.show(common.call(work, database_url), GROUPS, as_json=as_json, empty="no dead letters")


dead = common.group(
    """Decide about tasks that gave up: retry, cancel, change and retry, escalate.

    Alone it lists them by what went wrong: a group has one class and one kind of error.

    \b
    Examples:
      treadle dead
      treadle dead retry --group 9f3a21c4d0e5 --note "provider is back" --dry-run
    """,
    alone=_groups,
)
dead.command()(retry)
dead.command()(cancel)
dead.command()(modify)
dead.command()(escalate)


@dead.command("groups")
def groups(as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None) -> None:
    """List open dead letters by what went wrong, with counts; the same as `treadle dead`.

    \b
    Example:
      treadle dead groups --json
    """
    _groups(as_json, database_url)


@dead.command("list")
def list_dead(
    queue: Annotated[str | None, typer.Option(help="Only of this queue.")] = None,
    type: Annotated[str | None, typer.Option(help="Only of this type.")] = None,
    failure_class: Annotated[
        str | None, typer.Option("--class", help="Only failed in this way: timeout, …")
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="GROUP", help="Only of this group.")
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="WHEN", help="Only from before: 45m, 2h, 7d ago."),
    ] = None,
    poison: Annotated[
        bool | None,
        typer.Option("--poison/--no-poison", help="Only poison pills, or none of them."),
    ] = None,
    escalated: Annotated[
        bool | None,
        typer.Option(
            "--escalated/--not-escalated", help="Only those with someone, or none of them."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also those decided about.")] = False,
    limit: Limit = 50,
    ids_only: Annotated[bool, typer.Option("--quiet", "-q", help="Print task ids only.")] = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """List dead letters that wait for a decision: those escalated, then the newest.

    \b
    Example:
      treadle dead list --type summarise --class timeout
    """
    before = moment_before(older_than)

    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.dead_letters.list(
            reviewed=everything,
            queue=queue,
            type=type,
            failure_class=failure_class,
            fingerprint=group,
            poison=poison,
            escalated=escalated,
            before=before,
            limit=limit,
        )

    rows = common.call(work, database_url)
    if ids_only and not as_json:
        for row in rows:
            typer.echo(row["task_id"])
        return
    shown = [_with_times(row) for row in rows] if as_json else rows
    output.show(shown, COLUMNS, as_json=as_json, empty="no dead letter matches")


@dead.command()
def show(
    task_id: common.TaskId,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Show a dead letter: every attempt with agent, duration and cost, and every decision.

    \b
    Example:
      treadle dead show 9f3a21c4
    """

    async def work(app: Treadle) -> tuple[dict[str, Any], dict[str, Any], list[Any], list[Any]]:
        db = app.db
        try:
            found = await db.dead_letters.find(task_id.lstrip("…."))
        except NotFound:
            found = await db.tasks.find(task_id.lstrip("…."))
        letters = await db.dead_letters.list(reviewed=True, task_id=found, limit=1)
        if not letters:
            task = await db.tasks.get(found)
            raise NotFound(
                f"task {found} never was a dead letter; it is {task['status']}",
                hint=f"See it: treadle tasks show {found}",
            )
        [letter] = letters
        letter["decisions"] = await db.dead_letters.decisions(task_id=letter["task_id"], limit=1000)
        task = await db.tasks.get(letter["task_id"])
        history = await db.dead_letters.history(letter["id"])
        return letter, task, history, await db.tasks.why(letter["task_id"])

    letter, task, history, reasons = common.call(work, database_url)
    if as_json:
        output.document(_with_times(letter))
    elif output.console().is_terminal:
        task_view.print_task(task, [_with_error(each) for each in history], reasons)
        _print_letter(letter)
    else:
        for name, value in letter.items():
            output.separated([name, value])


@dead.command()
def log(
    limit: Limit = 50,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """List the decisions about dead letters, the newest first; none is ever removed.

    \b
    Example:
      treadle dead log -n 100
    """

    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.dead_letters.decisions(limit=limit)

    output.show(common.call(work, database_url), LOG, as_json=as_json, empty="no decisions")


def _with_times(letter: dict[str, Any]) -> dict[str, Any]:
    """The history comes as JSON from the server, with times in the zone of the session."""
    for each in letter["history"] or []:
        each["ended_at"] = datetime.fromisoformat(each["ended_at"])
    return letter


def _with_error(attempt: dict[str, Any]) -> dict[str, Any]:
    """An attempt whose reason is what its error says first."""
    said = (attempt["error"] or "").strip().partition("\n")[0]
    return {**attempt, "reason": said or attempt["reason"]}


def _print_letter(letter: dict[str, Any]) -> None:
    terminal = output.console()
    poison = "yes: it failed several agents" if letter["poison_pill"] else "no"
    lines = [
        f"letter: {letter['id']}",
        f"group: {letter['fingerprint']}  {letter['about']}",
        f"attempts: {letter['attempts']}, together {_cost(letter['total_cost_usd'])}",
        f"poison pill: {poison}",
    ]
    if letter["escalated_to"] and not letter["reviewed"]:
        lines.append(f"with: {letter['escalated_to']}, since {output.ago(letter['escalated_at'])}")
    decided = f"{letter['resolution']} by {letter['reviewer']}" if letter["reviewed"] else "no"
    lines.append(f"decided: {decided}")
    terminal.print(output.plain("\n" + "\n".join(lines)))
    if letter["decisions"]:
        terminal.print()
        output.print_table(letter["decisions"], LOG)
