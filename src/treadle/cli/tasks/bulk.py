"""`treadle tasks cancel`, `retry` and `prioritise`: tasks by id, or all that match the filters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from treadle.cli import common, completion, output, retention
from treadle.cli.options import field_options, with_options
from treadle.cli.output import Column
from treadle.errors import InvalidArgument, TreadleError
from treadle.fields import priority_fields

if TYPE_CHECKING:
    from treadle.db.database import Database
    from treadle.models import BulkCount, Prioritised

VERDICTS = [Column("id", "id"), Column("verdict", "verdict")]
PRIORITY = Column("priority", "priority", right=True)
COUNTS = [
    Column("tasks", "tasks", right=True),
    Column("verdict", "verdict"),
    Column("status", "status", output.state),
    Column("queue", "queue"),
    Column("type", "type"),
    Column("error", "why"),
]
RESULTS = [Column("id", "id"), Column("status", "now"), Column("error", "problem")]
TaskIds = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID",
        help="Task ids, or their last 6 or more characters.",
        parser=common.strip_ellipsis,
    ),
]
BulkLimit = Annotated[
    int,
    typer.Option(
        "--limit", "-n", metavar="N", min=1, max=100_000, help="Tasks at most, with filters."
    ),
]
Bulk = Callable[["Database", bool], Awaitable["list[BulkCount]"]]


def task_filters(
    queue: common.OfQueue = None,
    type: common.OfType = None,
    status: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATUS",
            help="Only with this status; repeatable.",
            autocompletion=completion.states,
        ),
    ] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Only with this tag.")] = None,
    dag: Annotated[UUID | None, typer.Option(metavar="ID", help="Only of this DAG.")] = None,
    project_id: Annotated[
        UUID | None, typer.Option(metavar="ID", help="Only of this project.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="ID", help="Only held by this agent, now or last.")
    ] = None,
    failure_class: Annotated[
        str | None, typer.Option(metavar="CLASS", help="Only with this failure class.")
    ] = None,
    failure_reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only where the failure contains this.")
    ] = None,
    created_before: Annotated[
        str | None, typer.Option(metavar="TIME", help="A time, or an age: 90s, 15m, 2h, 7d.")
    ] = None,
    created_after: Annotated[
        str | None, typer.Option(metavar="TIME", help="A time, or an age: 90s, 15m, 2h, 7d.")
    ] = None,
    created_by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only by this producer.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only from this source.")
    ] = None,
) -> dict[str, Any]:
    """The filters of list, cancel, retry and prioritise, under their names in SQL."""
    for each in status or []:
        if each not in output.STATES:
            raise InvalidArgument(
                f"there is no status {each!r}",
                hint=common.did_you_mean(each, list(output.STATES)),
            )
    filters = {
        "queue": queue,
        "type": type,
        "status": status,
        "tag": tag,
        "dag_id": dag and str(dag),
        "project_id": project_id and str(project_id),
        "agent": agent,
        "failure_class": failure_class,
        "reason": failure_reason,
        "created_before": created_before,
        "created_after": created_after,
        "created_by": created_by,
        "source": source,
    }
    return {name: value for name, value in filters.items() if value}


@with_options(filters=task_filters)
def cancel(
    filters: dict[str, Any],
    task_ids: TaskIds = None,
    limit: BulkLimit = 10_000,
    reason: common.Reason = None,
    dry_run: common.DryRun = False,
    yes: common.Yes = False,
) -> None:
    """Cancel tasks and the tasks that depend on them; running handlers are stopped.

    \b
    Examples:
      treadle tasks cancel 9f3a21c4 --reason "not needed any more"
      treadle tasks cancel --queue mail --created-before 2h --dry-run

    Exit code 3: there is no such task. 4: it has ended already.
    """
    _check_selection("cancel", task_ids, filters, dry_run=dry_run)
    if task_ids:
        _cancel_ids(task_ids, reason)
        return

    async def bulk(db: Database, dry: bool) -> list[BulkCount]:
        return await db.tasks.cancel_where(filters, reason, dry_run=dry, limit=limit)

    _run_bulk("cancel", bulk, dry_run=dry_run, yes=yes)


@with_options(filters=task_filters)
def retry(
    filters: dict[str, Any],
    task_ids: TaskIds = None,
    limit: BulkLimit = 10_000,
    reason: common.Reason = None,
    dry_run: common.DryRun = False,
    yes: common.Yes = False,
) -> None:
    """Retry tasks now: dead letters, cancelled tasks, and tasks that wait for a retry.

    \b
    Examples:
      treadle tasks retry 9f3a21c4
      treadle tasks retry --status dead_lettered --failure-class timeout --dry-run

    Filters select dead letters, unless --status is cancelled or retrying. Exit code 4: some tasks
    could not be retried.
    """
    _check_selection("retry", task_ids, filters, dry_run=dry_run)
    if task_ids:
        _retry_ids(task_ids, reason)
        return

    async def bulk(db: Database, dry: bool) -> list[BulkCount]:
        return await db.tasks.retry_where(filters, reason, dry_run=dry, limit=limit)

    _run_bulk("retry", bulk, dry_run=dry_run, yes=yes)


@with_options(scale=field_options(priority_fields()), filters=task_filters)
def prioritise(
    scale: dict[str, Any],
    filters: dict[str, Any],
    task_ids: TaskIds = None,
    limit: BulkLimit = 10_000,
    reason: common.Reason = None,
    dry_run: common.DryRun = False,
    yes: common.Yes = False,
) -> None:
    """Change the priority of tasks that wait; age and deadline count as before.

    \b
    Examples:
      treadle tasks prioritise 9f3a21c4 --priority 5 --reason "a customer waits"
      treadle tasks prioritise --queue mail --tag newsletter --tier low --dry-run

    Exit code 3: there is no such task. 4: an agent has it, or it has ended.
    """
    _check_selection("prioritise", task_ids, filters, dry_run=dry_run)
    if task_ids:
        _prioritise_ids(task_ids, scale, reason)
        return

    async def bulk(db: Database, dry: bool) -> list[BulkCount]:
        return await db.tasks.set_priority_where(filters, reason, dry_run=dry, limit=limit, **scale)

    _run_bulk("prioritise", bulk, dry_run=dry_run, yes=yes)


def _check_selection(
    verb: str, task_ids: list[str] | None, filters: dict[str, Any], *, dry_run: bool
) -> None:
    if bool(task_ids) == bool(filters):
        raise InvalidArgument(
            "select tasks either by id or by filters", hint=f"See: treadle tasks {verb} --help"
        )
    if task_ids and dry_run:
        raise InvalidArgument("--dry-run needs filters")


def _run_bulk(verb: str, bulk: Bulk, *, dry_run: bool, yes: bool) -> None:
    """Count the tasks that match, ask for confirmation where they are many, and change them."""
    counts = common.call_db(lambda db: bulk(db, True))
    found = sum(each.tasks for each in counts if each.verdict == "found")
    if not dry_run and found:
        if found > common.CONFIRM_ABOVE:
            common.confirm(f"{verb} {found} tasks", yes=yes, dry_run=True)
        counts = common.call_db(lambda db: bulk(db, False))
    output.show([asdict(each) for each in counts], COUNTS, empty="no task matches")
    total = {
        verdict: sum(each.tasks for each in counts if each.verdict == verdict)
        for verdict in ("left", "refused")
    }
    if total["left"]:
        common.note(f"{total['left']} more tasks match: repeat the command, or raise --limit")
    if total["refused"]:
        common.note(f"error: {total['refused']} tasks were not changed")
        raise typer.Exit(4)


def _cancel_ids(task_ids: list[str], reason: str | None) -> None:
    async def work(db: Database) -> dict[UUID, str]:
        return await db.tasks.cancel([await db.tasks.find(each) for each in task_ids], reason)

    verdicts = common.call_db(work)
    dependants = [each for each, verdict in verdicts.items() if verdict == "cascaded"]
    rows = [
        {"id": each, "verdict": verdict}
        for each, verdict in verdicts.items()
        if verdict != "cascaded" or common.options.json or not output.console().is_terminal
    ]
    output.show(rows, VERDICTS)
    if dependants:
        count = len(dependants)
        common.note(f"and {count} dependent task{'' if count == 1 else 's'}")
    if "unknown" in verdicts.values():
        common.note("error: there is no such task\nhint: List tasks: treadle tasks list")
        raise typer.Exit(3)
    if "ended" in verdicts.values():
        common.note("error: the task ended before it could be cancelled")
        raise typer.Exit(4)


def _prioritise_ids(task_ids: list[str], scale: dict[str, Any], reason: str | None) -> None:
    async def work(db: Database) -> list[Prioritised]:
        found = [await db.tasks.find(each) for each in task_ids]
        return await db.tasks.set_priority(found, reason=reason, **scale)

    done = common.call_db(work)
    output.show([asdict(each) for each in done], [*VERDICTS, PRIORITY])
    verdicts = {each.verdict for each in done}
    if "unknown" in verdicts:
        common.note("error: there is no such task\nhint: List tasks: treadle tasks list")
        raise typer.Exit(3)
    if verdicts & {"running", "ended"}:
        common.note("error: the priority matters only while a task waits")
        raise typer.Exit(4)


def _retry_ids(task_ids: Sequence[str], reason: str | None) -> None:
    """Retry each task; an error with one does not stop the others."""

    async def work(db: Database) -> list[tuple[UUID | str, str | None, TreadleError | None]]:
        done: list[tuple[UUID | str, str | None, TreadleError | None]] = []
        for text in task_ids:
            found: UUID | str = text
            try:
                async with retention.hint_if_archived(db, text):
                    found = await db.tasks.find(text)
                    now = await db.tasks.retry(found, "retry", note=reason)
                done.append((found, now, None))
            except TreadleError as error:
                if len(task_ids) == 1:
                    raise
                done.append((found, None, error))
        return done

    done = common.call_db(work)
    rows = [{"id": each, "now": now, "problem": error and str(error)} for each, now, error in done]
    output.show(rows, RESULTS)
    errors = [error for _, _, error in done if error is not None]
    if errors:
        common.note(f"error: {len(errors)} of {len(done)} tasks were not retried")
        raise typer.Exit(errors[0].exit_code)
