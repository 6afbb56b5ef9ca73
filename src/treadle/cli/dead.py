"""`treadle dead`: tasks that gave up, and what a person decides about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import common, out, taskview
from treadle.cli.out import Column
from treadle.errors import InvalidArgument, NotFound, TreadleError

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
    Column("queue", "queue"),
    Column("class", "class"),
    Column("attempts", "attempts", right=True),
    Column("poison", "poison_pill"),
    Column("since", "dead_lettered_at", out.ago),
    Column("decided", "resolution"),
    Column("reason", "about"),
]
RESULTS = [Column("id", "id"), Column("now", "now"), Column("problem", "problem")]
IdsOrAll = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID...]", help="Task ids, or their last 6 or more characters."),
]
All = Annotated[bool, typer.Option("--all", help="All that wait, or all that match.")]
Queue = Annotated[str | None, typer.Option(help="Only of this queue.")]
Type = Annotated[str | None, typer.Option(help="Only of this type.")]
Class = Annotated[str | None, typer.Option("--class", help="Only failed in this way: timeout, …")]
Note = Annotated[str | None, typer.Option(help="Why; it is kept.")]
MANY = 10_000


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

    async def work(app: Treadle) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
        reader = await app.reader()
        found = await reader.find_task(task_id.lstrip("…."))
        letters = await reader.dead_letters(reviewed=True, task_id=found, limit=1)
        task, attempts = await reader.task(found), await reader.history(found)
        if not letters:
            raise NotFound(
                f"task {found} never was a dead letter; it is {task['status']}",
                hint=f"See it: treadle tasks show {found}",
            )
        return letters[0], task, attempts

    letter, task, attempts = common.call(work, database_url)
    if as_json:
        out.document(_with_times(letter))
    elif out.console().is_terminal:
        taskview.print_task(task, attempts, taskview.why(task, []))
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
    chosen = _chosen("retry", task_ids, everything, filters, database_url)
    if everything and (dry_run or not chosen):
        _show(chosen, as_json=as_json)
        return
    if everything:
        common.confirm(f"retry {len(chosen)} dead letters", yes=yes)
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
    chosen = _chosen("cancel", task_ids, everything, filters, database_url)
    if everything and (dry_run or not chosen):
        _show(chosen, as_json=as_json)
        return
    if everything:
        common.confirm(f"cancel {len(chosen)} dead letters", yes=yes)
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


def resolve(
    task_ids: Sequence[str],
    resolution: str,
    *,
    changes: Mapping[str, Any] | None = None,
    note: str | None,
    as_json: bool,
    database_url: str | None,
) -> None:
    """Decide about each task; one that cannot be decided about does not stop the others."""

    async def work(app: Treadle) -> list[tuple[UUID | str, str | None, TreadleError | None]]:
        reader, gateway = await app.reader(), await app.gateway()
        done: list[tuple[UUID | str, str | None, TreadleError | None]] = []
        for text in task_ids:
            found: UUID | str = text
            try:
                found = await reader.find_task(text.lstrip("…."))
                now = await gateway.retry_task(found, resolution, changes=changes, note=note)
                done.append((found, now, None))
            except TreadleError as error:
                if len(task_ids) == 1:
                    raise
                done.append((found, None, error))
        return done

    done = common.call(work, database_url)
    rows = [
        {"id": each, "now": now, "problem": problem and str(problem)} for each, now, problem in done
    ]
    out.show(rows, RESULTS, as_json=as_json)
    problems = [problem for _, _, problem in done if problem is not None]
    if problems:
        common.note(f"error: {len(problems)} of {len(done)} could not be decided about")
        raise typer.Exit(problems[0].exit_code)


def _with_times(letter: dict[str, Any]) -> dict[str, Any]:
    """The history comes as JSON from the server, with times in the zone of the session."""
    for each in letter["history"] or []:
        each["ended_at"] = datetime.fromisoformat(each["ended_at"])
    return letter


def _show(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    shown = [{**row, "about": taskview.last_line(row["reason"])} for row in rows]
    if as_json:
        shown = [_with_times(row) for row in rows]
    out.show(shown, COLUMNS, as_json=as_json, empty="no dead letters")


def _chosen(
    verb: str,
    task_ids: list[str] | None,
    everything: bool,
    filters: Mapping[str, str | None],
    database_url: str | None,
) -> list[dict[str, Any]]:
    """The dead letters that are meant: those named, or all that match."""
    if bool(task_ids) == everything:
        raise InvalidArgument(
            "name tasks by id, or take them --all", hint=f"See: treadle dead {verb} --help"
        )
    if task_ids:
        if any(filters.values()):
            raise InvalidArgument("filters go with --all, not with ids")
        return [{"task_id": each} for each in task_ids]

    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await (await app.reader()).dead_letters(
            queue=filters["queue"],
            type=filters["type"],
            failure_class=filters["failure_class"],
            limit=MANY,
        )

    rows = common.call(work, database_url)
    if len(rows) == MANY:
        common.note(f"only the newest {MANY} are taken; repeat it for the others")
    return rows
