"""`treadle queues`: depth, order, pause, resume, define, and what is stuck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output, times
from treadle.cli.output import Column

if TYPE_CHECKING:
    from treadle.app import Treadle

queues = common.group(
    """See how deep queues are; pause, resume and define them; find what is stuck.

    \b
    Example:
      treadle queues pause mail --reason "provider is down"
    """
)

Name = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.")]

COLUMNS = [
    Column("queue", "queue"),
    Column("state", "state", output.state),
    Column("ready", "ready", right=True),
    Column("running", "in_flight", right=True),
    Column("waiting", "waiting", right=True),
    Column("retrying", "retrying", right=True),
    Column("dead", "dead_letters", right=True),
    Column("depth", "full", right=True),
    Column("oldest", "oldest_ready_age", output.length, right=True),
    Column("done_per_s", "completed_per_s", right=True, extra=True),
    Column("failed_5m", "failed_attempts_5m", right=True, extra=True),
    Column("wait_p50", "wait_p50_s", output.length, right=True, extra=True),
    Column("run_p50", "run_p50_s", output.length, right=True, extra=True),
]
STUCK = [
    Column("tasks", "tasks", right=True),
    Column("status", "status", output.state),
    Column("queue", "queue"),
    Column("type", "type"),
    Column("since", "since", output.ago, extra=True),
    Column("example", "example_id", output.short, extra=True),
    Column("reason", "reason"),
]
ORDER = [
    Column("place", "place", right=True),
    Column("id", "id", output.short),
    Column("type", "type"),
    Column("priority", "priority", right=True, extra=True),
    Column("effective", "effective_priority", right=True),
    Column("waits", "since", output.ago),
    Column("project", "project", extra=True),
    Column("title", "title", extra=True),
    Column("shut", "shut"),
]


@queues.command("list")
def list_queues(as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None) -> None:
    """List the queues with their depth, oldest task and speed.

    \b
    Example:
      treadle queues list --json
    """

    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.queues.list()

    rows = common.call(work, database_url)
    for row in rows:
        row["state"] = "paused" if row["paused"] else "open"
        if not as_json:
            most = row["max_depth"]
            row["full"] = row["depth"] if most is None else f"{row['depth']}/{most}"
    output.show(rows, COLUMNS, as_json=as_json)


@queues.command()
def show(
    queue: Name,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=10_000, help="So many tasks.")
    ] = 20,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Show a queue's settings and its tasks in the order in which they would be claimed.

    \b
    Example:
      treadle queues show default -n 5
    """

    async def work(app: Treadle) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        db = app.db
        return await db.queues.get(queue), await db.queues.claim_order(queue, limit)

    settings, tasks = common.call(work, database_url)
    if as_json:
        output.document({**settings, "tasks": tasks})
        return
    _print_settings({name: value for name, value in settings.items() if value not in (None, {})})
    output.show(tasks, ORDER, as_json=False, empty="no task is ready")


@queues.command()
def stuck(as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None) -> None:
    """List what should move and does not, and why.

    \b
    Example:
      treadle queues stuck
    """

    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.queues.stuck()

    rows = common.call(work, database_url)
    output.show(rows, STUCK, as_json=as_json, empty="nothing is stuck")


@queues.command()
def pause(
    queue: Name,
    reason: Annotated[str | None, typer.Option(help="Why; shown to who looks.")] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Let nothing more be claimed from a queue; what runs, runs on.

    \b
    Example:
      treadle queues pause mail --reason "provider is down"
    """
    common.call_db(lambda db: db.queues.pause(queue, reason), database_url)
    text = f"queue {queue} is paused; go on with: treadle queues resume {queue}"
    output.print_done(text, as_json, name=queue, status="paused")


@queues.command()
def resume(
    queue: Name, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Let a paused queue go on.

    \b
    Example:
      treadle queues resume mail
    """
    common.call_db(lambda db: db.queues.resume(queue), database_url)
    output.print_done(f"queue {queue} is open", as_json, name=queue, status="open")


@queues.command()
def define(
    queue: Name,
    priority: Annotated[
        int | None,
        typer.Option(metavar="N", help="Of tasks that do not say: 0 is first, 100 last."),
    ] = None,
    max_attempts: Annotated[
        int | None, typer.Option(metavar="N", help="Attempts before a task is a dead letter.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="S", help="Longest run of an attempt.")
    ] = None,
    ageing_rate: Annotated[
        float | None,
        typer.Option(metavar="X", help="Priority points gained per minute of waiting."),
    ] = None,
    retry: Annotated[
        str | None, typer.Option(metavar="JSON", help="Retry policy: JSON, @file or -.")
    ] = None,
    max_spec_bytes: Annotated[
        int | None, typer.Option(metavar="N", help="Largest payload of a task.")
    ] = None,
    audit: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="compact, or full: every change an event.")
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option(metavar="N", help="Most tasks that may wait; 0: any number.")
    ] = None,
    fair: Annotated[
        bool | None, typer.Option("--fair/--no-fair", help="Let projects take turns.")
    ] = None,
    hold: Annotated[
        bool | None,
        typer.Option("--hold/--no-hold", help="Keep new tasks back until they are released."),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="AGE", help="Prune completed and cancelled tasks after 30d, 12h; or forever."
        ),
    ] = None,
    keep_cancelled: Annotated[
        str | None, typer.Option(metavar="AGE", help="Another age for cancelled tasks.")
    ] = None,
    keep_dead: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Prune dead letters that nobody decided about."),
    ] = None,
    prune: Annotated[
        str | None, typer.Option(metavar="MODE", help="archive what goes, or drop it.")
    ] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Make a queue, or change one; what is not named stays as it is.

    \b
    Example:
      treadle queues define night --priority 80 --max-attempts 5 --max-depth 10000
      treadle queues define mail --keep 30d --prune archive
    """
    settings: dict[str, Any] = {
        "priority": priority,
        "max_attempts": max_attempts,
        "timeout_s": timeout,
        "ageing_rate": ageing_rate,
        "retry": common.json_argument(retry, "retry") if retry is not None else None,
        "max_spec_bytes": max_spec_bytes,
        "audit": audit,
        "max_depth": max_depth,
        "fair": fair,
        "hold": hold,
        "prune_mode": prune,
    }
    named = {name: value for name, value in settings.items() if value is not None}
    if max_depth == 0:
        named["max_depth"] = None
    if keep is not None:
        named["keep_completed_s"] = named["keep_cancelled_s"] = times.parse(keep, "--keep")
    if keep_cancelled is not None:
        named["keep_cancelled_s"] = times.parse(keep_cancelled, "--keep-cancelled")
    if keep_dead is not None:
        named["keep_dead_s"] = times.parse(keep_dead, "--keep-dead")
    common.call_db(lambda db: db.queues.define(queue, named), database_url)
    output.print_done(f"queue {queue} is defined", as_json, name=queue, status="defined")


def _print_settings(settings: output.Record) -> None:
    if not output.console().is_terminal:
        for name, value in settings.items():
            output.separated([name, value])
        return
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for name, value in settings.items():
        grid.add_row(output.plain(name, "bright_black"), output.plain(output.flat(value)))
    output.console().print(grid)
    output.console().print()
