"""`treadle dead`: tasks that gave up, and what people decide about them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, deciding, out, taskview
from treadle.cli.out import Column
from treadle.cli.review import moment_before
from treadle.errors import NotFound

if TYPE_CHECKING:
    from treadle.app import Treadle


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
    Column("first", "first_at", out.ago, extra=True),
    Column("last", "last_at", out.ago),
    Column("sample", "sample_task", out.short, extra=True),
    Column("about", "about"),
]
COLUMNS = [
    Column("task", "task_id", out.short),
    Column("type", "type"),
    Column("queue", "queue", extra=True),
    Column("group", "fingerprint", extra=True),
    Column("class", "class"),
    Column("attempts", "attempts", right=True),
    Column("poison", "poison_pill", extra=True),
    Column("cost", "total_cost_usd", _cost, right=True, extra=True),
    Column("since", "dead_lettered_at", out.ago),
    Column("with", "escalated_to", extra=True),
    Column("decided", "resolution", extra=True),
    Column("reason", "reason"),
]
LOG = [
    Column("when", "at", out.ago),
    Column("task", "task_id", out.short),
    Column("type", "type", extra=True),
    Column("decision", "decision"),
    Column("by", "actor"),
    Column("to", "escalated_to", extra=True),
    Column("delay", "delay_s", out.length, extra=True),
    Column("changes", "changes", extra=True),
    Column("group", "fingerprint", extra=True),
    Column("note", "note"),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most.")]


def _groups(as_json: bool, database_url: str | None) -> None:
    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await (await app.reader()).dead_groups()

    out.show(common.call(work, database_url), GROUPS, as_json=as_json, empty="no dead letters")


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
dead.command()(deciding.retry)
dead.command()(deciding.cancel)
dead.command()(deciding.modify)
dead.command()(deciding.escalate)


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
        return await (await app.reader()).dead_letters(
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
    out.show(shown, COLUMNS, as_json=as_json, empty="no dead letter matches")


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
        reader = await app.reader()
        try:
            found = await reader.find_letter(task_id.lstrip("…."))
        except NotFound:
            found = await reader.find_task(task_id.lstrip("…."))
        letters = await reader.dead_letters(reviewed=True, task_id=found, limit=1)
        if not letters:
            task = await reader.task(found)
            raise NotFound(
                f"task {found} never was a dead letter; it is {task['status']}",
                hint=f"See it: treadle tasks show {found}",
            )
        [letter] = letters
        letter["decisions"] = await reader.decisions(task_id=letter["task_id"], limit=1000)
        task = await reader.task(letter["task_id"])
        history = await reader.dead_history(letter["id"])
        return letter, task, history, await reader.why(letter["task_id"])

    letter, task, history, reasons = common.call(work, database_url)
    if as_json:
        out.document(_with_times(letter))
    elif out.console().is_terminal:
        taskview.print_task(task, [_with_error(each) for each in history], reasons)
        _print_letter(letter)
    else:
        for name, value in letter.items():
            out.separated([name, value])


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
        return await (await app.reader()).decisions(limit=limit)

    out.show(common.call(work, database_url), LOG, as_json=as_json, empty="no decisions")


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
    terminal = out.console()
    poison = "yes: it failed several agents" if letter["poison_pill"] else "no"
    lines = [
        f"letter: {letter['id']}",
        f"group: {letter['fingerprint']}  {letter['about']}",
        f"attempts: {letter['attempts']}, together {_cost(letter['total_cost_usd'])}",
        f"poison pill: {poison}",
    ]
    if letter["escalated_to"] and not letter["reviewed"]:
        lines.append(f"with: {letter['escalated_to']}, since {out.ago(letter['escalated_at'])}")
    decided = f"{letter['resolution']} by {letter['reviewer']}" if letter["reviewed"] else "no"
    lines.append(f"decided: {decided}")
    terminal.print(out.plain("\n" + "\n".join(lines)))
    if letter["decisions"]:
        terminal.print()
        out.print_table(letter["decisions"], LOG)
