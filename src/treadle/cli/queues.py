"""`treadle queues`: depth, claim order, settings, and tasks that are stuck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.common import Name
from treadle.cli.nouns import Noun, add_create_and_update, add_delete, add_pause_and_resume
from treadle.cli.options import field_options, with_options
from treadle.cli.output import Column
from treadle.fields import QueueDefaults, fields_of

if TYPE_CHECKING:
    from treadle.db.database import Database

queues = Noun(
    "queues",
    """List queues with their depth; create, update, pause, resume and delete them.

    \b
    Example:
      treadle queues pause mail --reason "provider is down"
    """,
)

COLUMNS = [
    Column("queue", "queue"),
    Column("state", "state", output.state),
    Column("ready", "ready", right=True),
    Column("running", "in_flight", right=True),
    Column("waiting", "waiting", right=True),
    Column("retrying", "retrying", right=True),
    Column("dead_letters", "dead_letters", right=True),
    Column("depth", "full", right=True),
    Column("oldest_ready", "oldest_ready_age", output.length, right=True),
    Column("completed_per_s", "completed_per_s", right=True, extra=True),
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
    Column("position", "place", right=True),
    Column("id", "id", output.short),
    Column("type", "type"),
    Column("priority", "priority", right=True, extra=True),
    Column("effective_priority", "effective_priority", right=True),
    Column("ready_since", "since", output.ago),
    Column("project", "project", extra=True),
    Column("title", "title", extra=True),
    Column("closed", "shut"),
]


@queues.verb("list")
def list_queues() -> None:
    """List queues with their depth, oldest ready task and throughput.

    \b
    Example:
      treadle queues list --json
    """
    rows = common.call_db(lambda db: db.queues.list())
    for row in rows:
        row["state"] = "paused" if row["paused"] else "open"
        if not common.options.json:
            limit = row["max_depth"]
            row["full"] = row["depth"] if limit is None else f"{row['depth']}/{limit}"
    output.show(rows, COLUMNS, empty="no queues; create one: treadle queues create --help")


@queues.verb()
def show(name: Name, limit: common.Limit = 20) -> None:
    """Show the settings of a queue and its ready tasks in claim order.

    \b
    Example:
      treadle queues show default -n 5
    """

    async def read(db: Database) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        return await db.queues.get(name), await db.queues.claim_order(name, limit)

    settings, tasks = common.call_db(read)
    if common.options.json:
        output.document({**settings, "tasks": tasks})
        return
    output.print_record({key: value for key, value in settings.items() if value not in (None, {})})
    typer.echo()
    output.show(tasks, ORDER, empty=f"no task in queue {name} is ready")


@queues.verb()
def stuck() -> None:
    """List tasks that should make progress and do not, with the reason.

    \b
    Example:
      treadle queues stuck
    """
    output.show(common.call_db(lambda db: db.queues.stuck()), STUCK, empty="no task is stuck")


@with_options(defaults=field_options(fields_of(QueueDefaults)))
def queue_settings(
    defaults: dict[str, Any],
    max_spec_bytes: Annotated[
        int | None, typer.Option(metavar="N", help="Largest payload of a task.")
    ] = None,
    audit: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="compact, or full: every change an event.")
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum number of waiting tasks; 0: no limit.")
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
        typer.Option(metavar="AGE", help="Age at which undecided dead letters are pruned."),
    ] = None,
    prune: Annotated[
        str | None, typer.Option(metavar="MODE", help="archive pruned tasks, or drop them.")
    ] = None,
) -> dict[str, Any]:
    """The settings of a queue that were given."""
    settings: dict[str, Any] = {
        "max_spec_bytes": max_spec_bytes,
        "audit": audit,
        "max_depth": max_depth,
        "fair": fair,
        "hold": hold,
        "prune_mode": prune,
    }
    named = defaults | common.named(settings)
    if max_depth == 0:
        named["max_depth"] = None
    if keep is not None:
        named["keep_completed_s"] = named["keep_cancelled_s"] = common.parse_age(keep, "--keep")
    if keep_cancelled is not None:
        named["keep_cancelled_s"] = common.parse_age(keep_cancelled, "--keep-cancelled")
    if keep_dead is not None:
        named["keep_dead_s"] = common.parse_age(keep_dead, "--keep-dead")
    return named


async def _define(db: Database, name: str, settings: dict[str, Any]) -> tuple[bool, None]:
    return await db.queues.define(name, settings), None


def _print_defined(name: str, verb: str, _: None) -> None:
    text = f"queue {name} is {verb}; see it: treadle queues show {name}"
    output.print_done(text, name=name, status=verb)


add_create_and_update(
    queues,
    "queue",
    _define,
    queue_settings,
    create="""Create a queue.

    \b
    Examples:
      treadle queues create night --priority 80 --max-attempts 5 --max-depth 10000
      treadle queues create mail --keep 30d --prune archive --or-update
    """,
    update="""Change the named settings of a queue.

    \b
    Example:
      treadle queues update mail --keep 30d --prune archive
    """,
    done=_print_defined,
)
add_pause_and_resume(
    queues,
    "queue",
    lambda db: db.queues,
    pause="Stop claiming tasks from a queue; running tasks continue.",
    resume="Claim tasks from a paused queue again.",
    example="mail",
    active="open",
)
add_delete(
    queues,
    "queue",
    lambda db, name: db.queues.remove(name),
    text="Delete a queue that has no tasks and that nothing uses.",
    example="night",
)
