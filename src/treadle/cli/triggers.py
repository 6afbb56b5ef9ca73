"""`treadle triggers`: tasks and DAGs that are created when an event happens."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.common import Name
from treadle.cli.nouns import Noun, add_create_and_update, add_delete, add_pause_and_resume
from treadle.cli.output import Column
from treadle.errors import InvalidArgument

if TYPE_CHECKING:
    from treadle.db.database import Database

COLUMNS = [
    Column("trigger", "name"),
    Column("state", "state", output.state),
    Column("event", "on_event"),
    Column("filter", "filter"),
    Column("enqueues", "enqueues"),
    Column("fired", "fired", right=True),
    Column("refused", "refused", right=True, extra=True),
    Column("failed", "failed", right=True),
    Column("last_fired", "fired_at", output.ago),
    Column("last_error", "last_error", extra=True),
]
RUNS = [
    Column("event_id", "event_id", right=True),
    Column("event", "kind"),
    Column("fired", "fired_at", output.ago),
    Column("verdict", "verdict", output.state),
    Column("enqueued", "enqueued", output.short),
    Column("depth", "depth", right=True, extra=True),
    Column("error", "problem"),
]

triggers = Noun(
    "triggers",
    """List triggers, which enqueue work on events; create, test, fire, pause and delete them.

    \b
    Examples:
      treadle triggers
      treadle triggers create next --on dag.completed --task '{"type": "review"}'
      treadle triggers test next --event 4711
    """,
)


def _enqueues(row: dict[str, Any]) -> str:
    """What a trigger enqueues: `task TYPE` or `dag NAME`."""
    template = row["template"]
    if "task" in template:
        return f"task {template['task'].get('type')}"
    return f"dag {output.flat(template['dag'].get('name'))}"


@triggers.verb("list")
def list_triggers() -> None:
    """List triggers with their events, what they enqueue and how often they fired.

    \b
    Example:
      treadle triggers list --json
    """
    rows = common.call_db(lambda db: db.triggers.list())
    if not common.options.json:
        rows = [{**row, "enqueues": _enqueues(row)} for row in rows]
    output.show(rows, COLUMNS, empty="no triggers; create one: treadle triggers create --help")


@triggers.verb()
def show(
    name: Name,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=0, max=10_000, help="Runs at most.")
    ] = 20,
) -> None:
    """Show a trigger and its last runs.

    \b
    Example:
      treadle triggers show next
    """

    async def read(db: Database) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        return await db.triggers.get(name), await db.triggers.log(name, limit)

    row, runs = common.call_db(read)
    if common.options.json:
        output.document({**row, "log": runs})
        return
    output.print_record({key: value for key, value in row.items() if value is not None})
    if runs:
        typer.echo()
        output.show(
            [{**each, "enqueued": each["task_id"] or each["dag_id"]} for each in runs], RUNS
        )


def trigger_settings(
    on: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Kind of event: dag.completed, invoice.paid."),
    ] = None,
    event_filter: Annotated[
        str | None, typer.Option("--filter", metavar="JSON", help="What the event must contain.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="JSON", help="Task to enqueue: JSON, @file or -.")
    ] = None,
    dag: Annotated[
        str | None, typer.Option(metavar="JSON", help="DAG to create instead: JSON, @file or -.")
    ] = None,
    failure_rate: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Instead of --on: type, window_s and limit."),
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option(metavar="N", help="Longest chain of triggers; default: 5.")
    ] = None,
    max_per_hour: Annotated[
        int | None, typer.Option(metavar="N", help="Runs per hour; default: 1000, 0: no limit.")
    ] = None,
    description: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Description for people.")
    ] = None,
    actor: common.Actor = None,
) -> tuple[dict[str, Any], str | None]:
    """The settings of a trigger that were given, and the actor."""
    documents = {"filter": event_filter, "task": task, "dag": dag, "failure_rate": failure_rate}
    settings: dict[str, Any] = {
        key: common.json_argument(text, key.replace("_", "-"))
        for key, text in documents.items()
        if text is not None
    }
    settings |= common.named({"on": on, "max_depth": max_depth, "description": description})
    if max_per_hour is not None:
        settings["max_per_hour"] = max_per_hour or None
    return settings, actor


async def _define(
    db: Database, name: str, given: tuple[dict[str, Any], str | None]
) -> tuple[bool, dict[str, Any]]:
    _, created = await db.triggers.define(name, *given)
    return created, await db.triggers.get(name)


def _print_defined(name: str, verb: str, row: dict[str, Any]) -> None:
    text = f"trigger {name} is {verb}: it enqueues {_enqueues(row)} on {row['on_event']}"
    output.print_done(text, **row)


add_create_and_update(
    triggers,
    "trigger",
    _define,
    trigger_settings,
    create="""Create a trigger.

    \b
    Examples:
      treadle triggers create next --on task.completed --filter '{"type": "crawl"}' \\
        --task '{"type": "summarise", "spec": {"text": {"$event": "output.text"}}}'
      treadle triggers create failing --task '{"type": "review", "spec": {"$event": "data"}}' \\
        --failure-rate '{"type": "summarise", "window_s": 3600, "limit": 0.3}'
    """,
    update="""Change the named settings of a trigger.

    \b
    Example:
      treadle triggers update next --max-per-hour 100
    """,
    done=_print_defined,
    get=lambda db, name: db.triggers.get(name),
)


@triggers.verb("test")
def try_trigger(
    name: Name,
    event: Annotated[
        int | None, typer.Option(metavar="ID", help="Id of a past event: treadle events.")
    ] = None,
    sample: Annotated[
        str | None, typer.Option(metavar="JSON", help="An invented event: JSON, @file or -.")
    ] = None,
) -> None:
    """Print what a trigger would enqueue for an event; exit code 1: it would not fire.

    \b
    Examples:
      treadle triggers test next --event 4711
      treadle triggers test next --sample '{"kind": "invoice.paid", "data": {"amount": 12.5}}'
    """
    if (event is None) == (sample is None):
        raise InvalidArgument(
            "pass either --event or --sample", hint="List past events: treadle events list"
        )
    given = None if sample is None else common.json_argument(sample, "sample")
    verdict = common.call_db(lambda db: db.triggers.test(name, event, given))
    if common.options.json:
        output.document(verdict)
    elif verdict["fires"]:
        output.separated(["enqueues", verdict["makes"]])
        if verdict["paused"]:
            common.note(f"trigger {name} is paused; resume it: treadle triggers resume {name}")
    else:
        output.separated(["does not fire", verdict["problem"]])
    if not verdict["fires"]:
        raise typer.Exit(1)


@triggers.verb()
def fire(
    name: Name,
    event: Annotated[int, typer.Argument(metavar="EVENT", help="Id of the event.")],
) -> None:
    """Fire a trigger for an event on which it failed, or which is older than the trigger.

    \b
    Example:
      treadle triggers fire next 4711
    """
    fired = common.call_db(lambda db: db.triggers.fire(name, event))
    if common.options.json:
        output.document({"trigger": name, **asdict(fired)})
    elif fired.problem is None:
        typer.echo(fired.task_id or fired.dag_id)
    else:
        output.separated(["does not fire", fired.problem])
    if fired.problem is not None:
        raise typer.Exit(1)


add_pause_and_resume(
    triggers,
    "trigger",
    lambda db: db.triggers,
    pause="Stop a trigger from firing; events that happen meanwhile are skipped.",
    resume="Let a paused trigger fire again, on new events.",
    example="next",
)
add_delete(
    triggers,
    "trigger",
    lambda db, name: db.triggers.remove(name),
    text="Delete a trigger; what it enqueued stays.",
    example="next",
)
