"""`treadle dead`: tasks that gave up, and what a person decides about them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, out, taskview
from treadle.cli.decide import chosen_letters, resolve
from treadle.cli.out import Column
from treadle.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from treadle.app import Treadle

dead = common.group(
    """Decide about tasks that gave up: retry, cancel, or change and retry.

    \b
    Example:
      treadle dead list
    """
)

COLUMNS = [
    Column("task", "task_id", out.short),
    Column("type", "type"),
    Column("queue", "queue", extra=True),
    Column("class", "class"),
    Column("attempts", "attempts", right=True),
    Column("poison", "poison_pill", extra=True),
    Column("since", "dead_lettered_at", out.ago),
    Column("decided", "resolution", extra=True),
    Column("reason", "about"),
]
IdsOrAll = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID...]", help="Task ids, or their last 6 or more characters."),
]
All = Annotated[bool, typer.Option("--all", help="All that wait, or all that match.")]
Queue = Annotated[str | None, typer.Option(help="Only of this queue.")]
Type = Annotated[str | None, typer.Option(help="Only of this type.")]
Class = Annotated[str | None, typer.Option("--class", help="Only failed in this way: timeout, …")]
Note = Annotated[str | None, typer.Option(help="Why; it is kept.")]


@dead.command("list")
def list_dead(
    queue: Queue = None,
    type: Type = None,
    failure_class: Class = None,
    everything: Annotated[bool, typer.Option("--all", help="Also those decided about.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most.")] = 50,
    ids_only: Annotated[bool, typer.Option("--quiet", "-q", help="Print task ids only.")] = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """List dead letters that wait for a decision, the newest first.

    \b
    Example:
      treadle dead list --type summarise --class timeout
    """

    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await (await app.reader()).dead_letters(
            reviewed=everything, queue=queue, type=type, failure_class=failure_class, limit=limit
        )

    rows = common.call(work, database_url)
    if ids_only and not as_json:
        for row in rows:
            typer.echo(row["task_id"])
        return
    _show(rows, as_json=as_json)


@dead.command()
def show(
    task_id: common.TaskId,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Show a dead letter with the whole history of its task.

    \b
    Example:
      treadle dead show 9f3a21c4
    """

    async def work(app: Treadle) -> tuple[dict[str, Any], dict[str, Any], list[Any], list[Any]]:
        reader = await app.reader()
        found = await reader.find_task(task_id.lstrip("…."))
        letters = await reader.dead_letters(reviewed=True, task_id=found, limit=1)
        task, attempts = await reader.task(found), await reader.history(found)
        if not letters:
            raise NotFound(
                f"task {found} never was a dead letter; it is {task['status']}",
                hint=f"See it: treadle tasks show {found}",
            )
        return letters[0], task, attempts, await reader.why(found)

    letter, task, attempts, reasons = common.call(work, database_url)
    if as_json:
        out.document(_with_times(letter))
    elif out.console().is_terminal:
        taskview.print_task(task, attempts, reasons)
        decided = f"{letter['resolution']} by {letter['reviewer']}" if letter["reviewed"] else "no"
        poison = "yes: it failed several agents" if letter["poison_pill"] else "no"
        out.console().print(out.plain(f"\ndecided: {decided}\npoison pill: {poison}"))
    else:
        for name, value in letter.items():
            out.separated([name, value])


@dead.command()
def retry(
    task_ids: IdsOrAll = None,
    everything: All = False,
    queue: Queue = None,
    type: Type = None,
    failure_class: Class = None,
    note: Note = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which.")] = False,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Run dead letters again with a new round of attempts.

    \b
    Examples:
      treadle dead retry 9f3a21c4 --note "provider is back"
      treadle dead retry --all --class timeout --yes
    """
    filters = {"queue": queue, "type": type, "failure_class": failure_class}
    chosen = chosen_letters("retry", task_ids, everything, filters, database_url)
    if everything and _only_shown("retry", chosen, dry_run=dry_run, yes=yes, as_json=as_json):
        return
    ids = [str(row["task_id"]) for row in chosen]
    resolve(ids, "retry", note=note, as_json=as_json, database_url=database_url)


@dead.command()
def cancel(
    task_ids: IdsOrAll = None,
    everything: All = False,
    queue: Queue = None,
    type: Type = None,
    failure_class: Class = None,
    note: Note = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which.")] = False,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Give dead letters up for good.

    \b
    Examples:
      treadle dead cancel 9f3a21c4 --note obsolete
      treadle dead cancel --all --queue mail --dry-run
    """
    filters = {"queue": queue, "type": type, "failure_class": failure_class}
    chosen = chosen_letters("cancel", task_ids, everything, filters, database_url)
    if everything and _only_shown("cancel", chosen, dry_run=dry_run, yes=yes, as_json=as_json):
        return
    ids = [str(row["task_id"]) for row in chosen]
    resolve(ids, "cancel", note=note, as_json=as_json, database_url=database_url)


@dead.command()
def modify(
    task_id: common.TaskId,
    spec: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Arguments to change: JSON, @file or -; others stay."),
    ] = None,
    priority: Annotated[int | None, typer.Option(metavar="N", help="0 is first, 100 last.")] = None,
    queue: Annotated[str | None, typer.Option(help="Move it to this queue.")] = None,
    max_attempts: Annotated[
        int | None, typer.Option(metavar="N", help="For the new round.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(metavar="S", help="Longest attempt.")] = None,
    note: Note = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Change a dead letter and run it again.

    \b
    Example:
      treadle dead modify 9f3a21c4 --spec '{"url": "https://example.org/new"}'
    """
    changes = {
        "spec": common.json_argument(spec, "spec") if spec is not None else None,
        "priority": priority,
        "queue": queue,
        "max_attempts": max_attempts,
        "timeout_s": timeout,
    }
    named = {name: value for name, value in changes.items() if value is not None}
    if not named:
        raise InvalidArgument("nothing to change is named", hint="For example: --spec '{\"n\": 2}'")
    resolve(
        [task_id],
        "modify_and_retry",
        changes=named,
        note=note,
        as_json=as_json,
        database_url=database_url,
    )


def _with_times(letter: dict[str, Any]) -> dict[str, Any]:
    """The history comes as JSON from the server, with times in the zone of the session."""
    for each in letter["history"] or []:
        each["ended_at"] = datetime.fromisoformat(each["ended_at"])
    return letter


def _only_shown(
    what: str, chosen: list[dict[str, Any]], *, dry_run: bool, yes: bool, as_json: bool
) -> bool:
    """Whether a decision about many ends with the list of them; else it is confirmed."""
    if dry_run or not chosen:
        _show(chosen, as_json=as_json)
        return True
    common.confirm(f"{what} {len(chosen)} dead letters", yes=yes)
    return False


def _show(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    shown = [{**row, "about": taskview.last_line(row["reason"])} for row in rows]
    if as_json:
        shown = [_with_times(row) for row in rows]
    out.show(shown, COLUMNS, as_json=as_json, empty="no dead letters")
