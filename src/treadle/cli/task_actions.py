"""`treadle tasks cancel` and `retry`: tasks by their ids, or all that a filter finds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import common, output, retention
from treadle.cli.output import Column
from treadle.errors import InvalidArgument, TreadleError

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.database import Database
    from treadle.models import BulkCount

VERDICTS = [Column("id", "id"), Column("verdict", "verdict")]
COUNTS = [
    Column("tasks", "tasks", right=True),
    Column("verdict", "verdict"),
    Column("status", "status", output.state),
    Column("queue", "queue"),
    Column("type", "type"),
    Column("why", "why"),
]
# So many are done without asking.
FEW = 100

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID...]", help="Task ids, or their last 6 or more characters."),
]
Queue = Annotated[str | None, typer.Option(help="All of this queue.")]
Type = Annotated[str | None, typer.Option(help="All of this type.")]
Status = Annotated[
    list[str] | None, typer.Option(help="All that were in this state; may be repeated.")
]
Tag = Annotated[str | None, typer.Option(help="All with this tag.")]
Dag = Annotated[UUID | None, typer.Option("--dag", help="All of this DAG.")]
Project = Annotated[UUID | None, typer.Option("--project-id", help="All of this project.")]
Agent = Annotated[str | None, typer.Option(help="All that this agent has, or had last.")]
Class = Annotated[str | None, typer.Option("--class", help="All with this class of failure.")]
Failure = Annotated[
    str | None, typer.Option("--failure", metavar="TEXT", help="All whose failure says this.")
]
Before = Annotated[
    str | None,
    typer.Option("--created-before", metavar="WHEN", help="A time, or an age: 90s, 15m, 2h, 7d."),
]
After = Annotated[str | None, typer.Option("--created-after", metavar="WHEN", help="The same.")]
By = Annotated[str | None, typer.Option("--created-by", help="All of this producer.")]
Source = Annotated[str | None, typer.Option(help="All from this source.")]
Limit = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=100_000, help="With filters: at most.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count what the filters find.")]
Bulk = Callable[["Database", bool], Awaitable["list[BulkCount]"]]
RESULTS = [Column("id", "id"), Column("now", "now"), Column("problem", "problem")]


def cancel(
    task_ids: Ids = None,
    queue: Queue = None,
    type: Type = None,
    status: Status = None,
    tag: Tag = None,
    dag: Dag = None,
    project: Project = None,
    agent: Agent = None,
    failure_class: Class = None,
    failure: Failure = None,
    created_before: Before = None,
    created_after: After = None,
    created_by: By = None,
    source: Source = None,
    limit: Limit = 10_000,
    reason: Annotated[str | None, typer.Option(help="Why; it is kept.")] = None,
    dry_run: DryRun = False,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Cancel tasks and those that depend on them; running handlers are told at once.

    \b
    Examples:
      treadle tasks cancel 9f3a21c4 --reason "not needed any more"
      treadle tasks cancel --queue mail --created-before 2h --dry-run

    Exit code 3: no such task. 4: it had ended before.
    """
    filters = _filters(
        queue=queue,
        type=type,
        status=status,
        tag=tag,
        dag_id=dag,
        project_id=project,
        agent=agent,
        failure_class=failure_class,
        reason=failure,
        created_before=created_before,
        created_after=created_after,
        created_by=created_by,
        source=source,
    )
    if _by_ids("cancel", task_ids, filters, dry_run=dry_run):
        _cancel_ids(task_ids or [], reason, as_json=as_json, database_url=database_url)
        return

    async def work(db: Database, dry: bool) -> list[BulkCount]:
        return await db.tasks.cancel_where(filters, reason, dry_run=dry, limit=limit)

    _run("cancel", work, dry_run=dry_run, yes=yes, as_json=as_json, database_url=database_url)


def retry(
    task_ids: Ids = None,
    queue: Queue = None,
    type: Type = None,
    status: Status = None,
    tag: Tag = None,
    dag: Dag = None,
    project: Project = None,
    agent: Agent = None,
    failure_class: Class = None,
    failure: Failure = None,
    created_before: Before = None,
    created_after: After = None,
    created_by: By = None,
    source: Source = None,
    limit: Limit = 10_000,
    note: Annotated[str | None, typer.Option(help="Why; it is kept.")] = None,
    dry_run: DryRun = False,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Run tasks again now: those that wait for a retry, gave up or were cancelled.

    Filters find dead letters, unless --status says cancelled or retrying.

    \b
    Examples:
      treadle tasks retry 9f3a21c4
      treadle tasks retry --status dead_lettered --class timeout --dry-run

    Exit code 4: some could not be retried.
    """
    filters = _filters(
        queue=queue,
        type=type,
        status=status,
        tag=tag,
        dag_id=dag,
        project_id=project,
        agent=agent,
        failure_class=failure_class,
        reason=failure,
        created_before=created_before,
        created_after=created_after,
        created_by=created_by,
        source=source,
    )
    if _by_ids("retry", task_ids, filters, dry_run=dry_run):
        resolve(task_ids or [], "retry", note=note, as_json=as_json, database_url=database_url)
        return

    async def work(db: Database, dry: bool) -> list[BulkCount]:
        return await db.tasks.retry_where(filters, note, dry_run=dry, limit=limit)

    _run("retry", work, dry_run=dry_run, yes=yes, as_json=as_json, database_url=database_url)


def _filters(**given: Any) -> dict[str, Any]:
    """What was given, as SQL reads it."""
    return {
        name: str(value) if isinstance(value, UUID) else value
        for name, value in given.items()
        if value
    }


def _by_ids(
    verb: str, task_ids: list[str] | None, filters: Mapping[str, Any], *, dry_run: bool
) -> bool:
    """Whether tasks are named by id; else a filter finds them."""
    if bool(task_ids) == bool(filters):
        raise InvalidArgument(
            "name tasks by id, or find them by filters, and not both",
            hint=f"See: treadle tasks {verb} --help",
        )
    if task_ids and dry_run:
        raise InvalidArgument("--dry-run goes with filters, not with ids")
    return bool(task_ids)


def _run(
    verb: str, work: Bulk, *, dry_run: bool, yes: bool, as_json: bool, database_url: str | None
) -> None:
    """Count what is found, ask where it is much, then do it."""

    async def call(app: Treadle, dry: bool) -> list[BulkCount]:
        return await work(app.db, dry)

    counts = common.call(lambda app: call(app, True), database_url)
    found = sum(each.tasks for each in counts if each.verdict == "found")
    if not dry_run and found:
        if found > FEW:
            common.confirm(f"{verb} {found} tasks", yes=yes, dry_run=True)
        counts = common.call(lambda app: call(app, False), database_url)
    output.show([asdict(each) for each in counts], COUNTS, as_json=as_json, empty="no task matches")
    total = {
        word: sum(each.tasks for each in counts if each.verdict == word)
        for word in ("left", "refused")
    }
    if total["left"]:
        common.note(f"{total['left']} more are left: do it again, or with a higher --limit")
    if total["refused"]:
        common.note(f"error: {total['refused']} could not be done")
        raise typer.Exit(4)


def _cancel_ids(
    task_ids: list[str], reason: str | None, *, as_json: bool, database_url: str | None
) -> None:
    async def work(app: Treadle) -> dict[UUID, str]:
        db = app.db
        found = [await db.tasks.find(each.lstrip("….")) for each in task_ids]
        return await db.tasks.cancel(found, reason)

    verdicts = common.call(work, database_url)
    fell = [each for each, verdict in verdicts.items() if verdict == "cascaded"]
    rows = [
        {"id": each, "verdict": verdict}
        for each, verdict in verdicts.items()
        if verdict != "cascaded" or as_json or not output.console().is_terminal
    ]
    output.show(rows, VERDICTS, as_json=as_json)
    if fell:
        word = "depends" if len(fell) == 1 else "depend"
        common.note(f"and {len(fell)} that {word} on {'it' if len(task_ids) == 1 else 'them'}")
    if "unknown" in verdicts.values():
        common.note("error: there is no such task\nhint: List them: treadle tasks list")
        raise typer.Exit(3)
    if "ended" in verdicts.values():
        common.note("error: it ended before it could be cancelled")
        raise typer.Exit(4)


def resolve(
    task_ids: Sequence[str],
    resolution: str,
    *,
    note: str | None,
    as_json: bool,
    database_url: str | None,
) -> None:
    """Decide about each task; one that cannot be decided about does not stop the others."""

    async def work(app: Treadle) -> list[tuple[UUID | str, str | None, TreadleError | None]]:
        db = app.db
        done: list[tuple[UUID | str, str | None, TreadleError | None]] = []
        for text in task_ids:
            found: UUID | str = text
            try:
                wanted = text.lstrip("….")
                async with retention.hint_if_archived(db, wanted):
                    found = await db.tasks.find(wanted)
                    now = await db.tasks.retry(found, resolution, note=note)
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
    output.show(rows, RESULTS, as_json=as_json)
    problems = [problem for _, _, problem in done if problem is not None]
    if problems:
        common.note(f"error: {len(problems)} of {len(done)} could not be decided about")
        raise typer.Exit(problems[0].exit_code)
