"""`treadle dead-letters`: tasks that failed for good, and decisions about them.

A decision concerns letters by id, or all letters that match the filters.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun
from treadle.cli.options import field_options, with_options
from treadle.cli.output import Column, progress_bar
from treadle.cli.tasks.view import print_task
from treadle.errors import IllegalTransition, InvalidArgument, NotFound, TreadleError
from treadle.fields import editable_fields

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.database import Database
    from treadle.db.dead_letters import Decided, Decision, LetterCount

GROUPS = [
    Column("letters", "letters", right=True),
    Column("group", "fingerprint"),
    Column("failure_class", "class"),
    Column("types", "types"),
    Column("poison_pills", "poison_pills", right=True, extra=True),
    Column("escalated", "escalated", right=True, extra=True),
    Column("agents", "agents", extra=True),
    Column("cost", "total_cost_usd", output.cost, right=True, extra=True),
    Column("first", "first_at", output.ago, extra=True),
    Column("last", "last_at", output.ago),
    Column("example", "sample_task", output.short, extra=True),
    Column("error", "about"),
]
COLUMNS = [
    Column("task", "task_id", output.short),
    Column("type", "type"),
    Column("queue", "queue", extra=True),
    Column("group", "fingerprint", extra=True),
    Column("failure_class", "class"),
    Column("attempts", "attempts", right=True),
    Column("poison_pill", "poison_pill", extra=True),
    Column("cost", "total_cost_usd", output.cost, right=True, extra=True),
    Column("dead_lettered", "dead_lettered_at", output.ago),
    Column("escalated_to", "escalated_to", extra=True),
    Column("resolution", "resolution", extra=True),
    Column("error", "reason"),
]
DECISIONS = [
    Column("time", "at", output.ago),
    Column("task", "task_id", output.short),
    Column("type", "type", extra=True),
    Column("decision", "decision"),
    Column("actor", "actor"),
    Column("escalated_to", "escalated_to", extra=True),
    Column("delay", "delay_s", output.length, extra=True),
    Column("changes", "changes", extra=True),
    Column("group", "fingerprint", extra=True),
    Column("reason", "note"),
]
RESULTS = [
    Column("id", "id"),
    Column("status", "now"),
    Column("verdict", "verdict"),
    Column("error", "problem"),
]
COUNTS = [
    Column("letters", "letters", right=True),
    Column("verdict", "verdict"),
    Column("group", "fingerprint"),
    Column("failure_class", "failure_class"),
    Column("type", "type"),
    Column("queue", "queue"),
    Column("error", "why"),
]
DONE = ("retried", "cancelled", "escalated")

RunAt = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Time of the retry: 45m, 2h, 1d, or a time with its zone."),
]
dead_letters = Noun(
    "dead-letters",
    """List dead letters and decide about them: retry, modify, escalate or cancel.

    \b
    Examples:
      treadle dead-letters groups
      treadle dead-letters retry --group 9f3a21c4d0e5 --reason "provider is back" --dry-run
    """,
)


def letter_filters(
    group: Annotated[str | None, typer.Option(metavar="GROUP", help="Only in this group.")] = None,
    queue: common.OfQueue = None,
    type: common.OfType = None,
    failure_class: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="Only with this failure class, such as timeout."),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only older than 90s, 45m, 2h, 7d, or a time."),
    ] = None,
    poison: Annotated[
        bool | None,
        typer.Option("--poison/--no-poison", help="Only poison pills, or no poison pills."),
    ] = None,
    escalated: Annotated[
        bool | None,
        typer.Option("--escalated/--not-escalated", help="Only escalated, or not escalated."),
    ] = None,
) -> dict[str, Any]:
    """The filters of dead letters."""
    return common.named(
        {
            "fingerprint": group,
            "queue": queue,
            "type": type,
            "failure_class": failure_class,
            "before": common.time_before(older_than, "older_than"),
            "poison": poison,
            "escalated": escalated,
        }
    )


@dead_letters.verb("list")
@with_options(filters=letter_filters)
def list_letters(
    filters: dict[str, Any],
    everything: Annotated[bool, typer.Option("--all", help="Include resolved letters.")] = False,
    limit: common.Limit = 50,
    ids_only: common.IdsOnly = False,
) -> None:
    """List open dead letters: escalated ones first, then the newest.

    \b
    Example:
      treadle dead-letters list --type summarise --failure-class timeout
    """
    rows = common.call_db(
        lambda db: db.dead_letters.list(reviewed=everything, limit=limit, **filters)
    )
    if common.options.json:
        output.document({"items": [_with_times(row) for row in rows]})
    elif ids_only:
        output.print_ids(rows, "task_id")
    else:
        output.show(rows, COLUMNS, empty="no dead letter matches")


@dead_letters.verb()
def groups() -> None:
    """List open dead letters grouped by failure class and error, with counts.

    \b
    Example:
      treadle dead-letters groups --json
    """
    output.show(
        common.call_db(lambda db: db.dead_letters.groups()), GROUPS, empty="no dead letters"
    )


@dead_letters.verb()
def show(task_id: common.TaskId) -> None:
    """Show a dead letter with its attempts and the decisions about it.

    \b
    Example:
      treadle dead-letters show 9f3a21c4
    """

    async def read(db: Database) -> tuple[dict[str, Any], dict[str, Any], list[Any], list[Any]]:
        try:
            found = await db.dead_letters.find(task_id)
        except NotFound:
            found = await db.tasks.find(task_id)
        letters = await db.dead_letters.list(reviewed=True, task_id=found, limit=1)
        if not letters:
            task = await db.tasks.get(found)
            raise NotFound(
                f"task {found} is not a dead letter; it is {task['status']}",
                hint=f"See it: treadle tasks show {found}",
            )
        [letter] = letters
        letter["decisions"] = await db.dead_letters.decisions(task_id=letter["task_id"], limit=1000)
        task = await db.tasks.get(letter["task_id"])
        history = await db.dead_letters.history(letter["id"])
        return letter, task, history, await db.tasks.why(letter["task_id"])

    letter, task, history, reasons = common.call_db(read)
    if common.options.json:
        output.document(_with_times(letter))
    elif output.console().is_terminal:
        print_task(task, [_with_error(each) for each in history], reasons)
        _print_letter(letter)
    else:
        output.print_record(letter)


@dead_letters.verb("log")
def list_decisions(limit: common.Limit = 50) -> None:
    """List the decisions about dead letters, newest first; they are kept forever.

    \b
    Example:
      treadle dead-letters log -n 100
    """
    rows = common.call_db(lambda db: db.dead_letters.decisions(limit=limit))
    output.show(rows, DECISIONS, empty="no decisions were made")


@dataclass(frozen=True)
class Selection:
    """The letters that a decision is about, and how it is confirmed."""

    ids: list[str]
    everything: bool
    filters: dict[str, Any]
    dry_run: bool
    yes: bool


@with_options(filters=letter_filters)
def selection(
    filters: dict[str, Any],
    task_ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID",
            help="Ids of tasks or letters, or their last 6 or more characters.",
            parser=common.strip_ellipsis,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All open letters; asks for confirmation.")
    ] = False,
    dry_run: common.DryRun = False,
    yes: common.Yes = False,
) -> Selection:
    """The options that select dead letters for a decision."""
    if before := filters.pop("before", None):
        filters["dead_before"] = before.isoformat()
    return Selection(task_ids or [], everything, filters, dry_run, yes)


@dead_letters.verb()
@with_options(selected=selection)
def retry(
    selected: Selection,
    run_at: RunAt = None,
    reason: common.Reason = None,
    actor: common.Actor = None,
) -> None:
    """Retry dead letters with new attempts, now or later.

    \b
    Examples:
      treadle dead-letters retry 9f3a21c4 --reason "provider is back"
      treadle dead-letters retry --group 9f3a21c4d0e5 --run-at 2h --dry-run

    Exit code 3: there is no such letter. 4: it is resolved already, or cannot run again.
    """
    from treadle.db.dead_letters import Decision

    decision = Decision(
        "retry", by=actor, note=reason, delay_s=common.seconds_until(run_at, "run_at")
    )
    _decide("retry", selected, decision)


@dead_letters.verb()
@with_options(selected=selection)
def cancel(selected: Selection, reason: common.Reason = None, actor: common.Actor = None) -> None:
    """Cancel dead letters and the tasks that depend on them.

    \b
    Examples:
      treadle dead-letters cancel 9f3a21c4 --reason obsolete
      treadle dead-letters cancel --queue mail --older-than 30d --dry-run

    Exit code 3: there is no such letter. 4: it is resolved already.
    """
    from treadle.db.dead_letters import Decision

    _decide("cancel", selected, Decision("cancel", by=actor, note=reason))


@dead_letters.verb()
@with_options(selected=selection)
def escalate(
    selected: Selection,
    to: Annotated[str, typer.Option(metavar="NAME", help="Person or team that decides.")],
    reason: common.Reason = None,
    actor: common.Actor = None,
) -> None:
    """Assign dead letters to a person or team; they stay open and are listed first.

    \b
    Examples:
      treadle dead-letters escalate 9f3a21c4 --to ops --reason "needs a new key"
      treadle dead-letters escalate --failure-class auth_failure --not-escalated --to ops
    """
    from treadle.db.dead_letters import Decision

    _decide("escalate", selected, Decision("escalate", by=actor, note=reason, to=to))


# --queue is a filter here.
EDITS = [
    replace(field, option="--move-to") if field.name == "queue" else field
    for field in editable_fields()
    if field.has("option")
]


@dead_letters.verb()
@with_options(selected=selection, fields=field_options(EDITS))
def modify(
    selected: Selection,
    spec: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Arguments to change: JSON, @file or -."),
    ] = None,
    assign: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Change one argument: a.b=2; repeatable."),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="PATH", help="Remove one argument; repeatable."),
    ] = None,
    fields: Any = None,
    run_at: RunAt = None,
    reason: common.Reason = None,
    actor: common.Actor = None,
) -> None:
    """Change dead letters and retry them; an invalid change leaves them as they are.

    \b
    Examples:
      treadle dead-letters modify 9f3a21c4 --spec '{"url": "https://example.org/new"}'
      treadle dead-letters modify --group 9f3a21c4d0e5 --set options.retries=0 --dry-run
    """
    from treadle.db.dead_letters import Decision

    changes = fields | common.named(
        {
            "spec": common.json_argument(spec, "spec") if spec is not None else None,
            "set": common.assignments(assign, "a.b=2") if assign else None,
            "unset": unset or None,
        }
    )
    if not changes:
        raise InvalidArgument("no change is given", hint="For example: --set url=new")
    delay_s = common.seconds_until(run_at, "run_at")
    decision = Decision("modify_and_retry", changes, by=actor, note=reason, delay_s=delay_s)
    _decide("modify", selected, decision)


def _decide(verb: str, selected: Selection, decision: Decision) -> None:
    """Apply a decision to the letters with these ids, or to those that match the filters."""
    by_filter = selected.everything or bool(selected.filters)
    if bool(selected.ids) == by_filter:
        raise InvalidArgument(
            "select dead letters either by id, or by filters or --all",
            hint=f"See: treadle dead-letters {verb} --help",
        )
    if not by_filter and selected.dry_run:
        raise InvalidArgument("--dry-run needs filters or --all")
    if by_filter:
        _decide_where(verb, selected, decision)
    else:
        _decide_ids(selected.ids, decision)


def _decide_where(verb: str, selected: Selection, decision: Decision) -> None:
    filters = selected.filters or {"status": "dead_lettered"}

    async def count(app: Treadle) -> list[LetterCount]:
        return await app.db.dead_letters.resolve_where(filters, decision, dry_run=True)

    async def apply(app: Treadle) -> list[LetterCount]:
        with progress_bar("decided", found) as update:
            return await app.db.dead_letters.resolve_where(filters, decision, on_batch=update)

    counts = common.call(count)
    found = sum(each.letters for each in counts)
    if found and not selected.dry_run:
        if selected.everything or found > common.CONFIRM_ABOVE:
            word = "letter" if found == 1 else "letters"
            common.confirm(f"{verb} {found} dead {word}", yes=selected.yes, dry_run=True)
        counts = common.call(apply)
    output.show([asdict(each) for each in counts], COUNTS, empty="no dead letter matches")
    failed = sum(each.letters for each in counts if each.verdict not in (*DONE, "found"))
    if failed:
        common.note(f"error: {failed} of {found} dead letters were not changed")
        raise typer.Exit(IllegalTransition.exit_code)


def _decide_ids(ids: list[str], decision: Decision) -> None:
    async def apply(app: Treadle) -> list[tuple[str, Decided | TreadleError]]:
        found: dict[str, UUID | TreadleError] = {}
        for text in ids:
            try:
                found[text] = await app.db.dead_letters.find(text)
            except TreadleError as error:
                if len(ids) == 1:
                    raise
                found[text] = error
        known = [each for each in found.values() if isinstance(each, UUID)]
        done = await app.db.dead_letters.resolve(known, decision)
        return [
            (text, done[each] if isinstance(each, UUID) else each) for text, each in found.items()
        ]

    results = [(text, result, _error(result)) for text, result in common.call(apply)]
    errors = [error for _, _, error in results if error is not None]
    if len(results) == 1 and errors:
        raise errors[0]
    output.show([_row(text, result, error) for text, result, error in results], RESULTS)
    if errors:
        common.note(f"error: {len(errors)} of {len(results)} dead letters were not changed")
        raise typer.Exit(errors[0].exit_code)


def _row(text: str, result: Decided | TreadleError, error: TreadleError | None) -> dict[str, Any]:
    if isinstance(result, TreadleError):
        return {"id": text, "now": None, "verdict": "unknown", "problem": str(result)}
    return {
        "id": result.task_id or result.id,
        "now": result.status,
        "verdict": result.verdict,
        "problem": error and str(error),
    }


def _error(result: Decided | TreadleError) -> TreadleError | None:
    """The error to show for a letter that was not changed."""
    if isinstance(result, TreadleError):
        return result
    if result.verdict in DONE:
        return None
    if result.verdict == "unknown":
        return NotFound(
            f"there is no dead letter {result.id}",
            hint="List them: treadle dead-letters list --all",
        )
    return IllegalTransition(
        result.why or result.verdict, hint=f"See it: treadle dead-letters show {result.task_id}"
    )


def _with_times(letter: dict[str, Any]) -> dict[str, Any]:
    """A letter whose history has times; the server sends them as JSON text."""
    for each in letter["history"] or []:
        each["ended_at"] = datetime.fromisoformat(each["ended_at"])
    return letter


def _with_error(attempt: dict[str, Any]) -> dict[str, Any]:
    """An attempt whose reason is the first line of its error."""
    first = (attempt["error"] or "").strip().partition("\n")[0]
    return {**attempt, "reason": first or attempt["reason"]}


def _print_letter(letter: dict[str, Any]) -> None:
    terminal = output.console()
    poison = "yes: it failed several agents" if letter["poison_pill"] else "no"
    lines = [
        f"letter: {letter['id']}",
        f"group: {letter['fingerprint']}  {letter['about']}",
        f"attempts: {letter['attempts']}, total cost {output.cost(letter['total_cost_usd'])}",
        f"poison pill: {poison}",
    ]
    if letter["escalated_to"] and not letter["reviewed"]:
        lines.append(
            f"escalated to: {letter['escalated_to']}, {output.ago(letter['escalated_at'])}"
        )
    decided = f"{letter['resolution']} by {letter['reviewer']}" if letter["reviewed"] else "none"
    lines.append(f"resolution: {decided}")
    terminal.print(output.plain("\n" + "\n".join(lines)))
    if letter["decisions"]:
        terminal.print()
        output.print_table(letter["decisions"], DECISIONS)
