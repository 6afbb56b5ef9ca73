"""`treadle triggers`: work that follows from events."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.output import Column
from treadle.errors import InvalidArgument

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.models import TriggerRun

Name = Annotated[str, typer.Argument(metavar="NAME", help="The trigger's name.")]
Json = "as JSON, @file, or - for stdin."
COLUMNS = [
    Column("trigger", "name"),
    Column("state", "state", output.state),
    Column("on", "on_event"),
    Column("filter", "filter"),
    Column("makes", "makes"),
    Column("fired", "fired", right=True),
    Column("refused", "refused", right=True, extra=True),
    Column("failed", "failed", right=True),
    Column("last", "fired_at", output.ago),
    Column("error", "last_error", extra=True),
]
LOG = [
    Column("event", "event_id", right=True),
    Column("kind", "kind"),
    Column("fired", "fired_at", output.ago),
    Column("verdict", "verdict", output.state),
    Column("made", "made", output.short),
    Column("depth", "depth", right=True, extra=True),
    Column("problem", "problem"),
]


def _makes(row: dict[str, Any]) -> str:
    """What a trigger makes, in a word or two."""
    template = row["template"]
    if "task" in template:
        return f"task {template['task'].get('type')}"
    return f"dag {output.flat(template['dag'].get('name'))}"


def _list(as_json: bool, database_url: str | None) -> None:
    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.triggers.list()

    rows = common.call(work, database_url)
    if not as_json:
        rows = [{**row, "makes": _makes(row)} for row in rows]
    output.show(rows, COLUMNS, as_json=as_json, empty="there is no trigger")


triggers = common.group(
    """See what follows from which event; set, test, fire, pause, resume, remove triggers.

    \b
    Examples:
      treadle triggers
      treadle triggers set next --on dag.completed --task '{"type": "review"}'
      treadle triggers test next --event 4711
    """,
    alone=_list,
)


@triggers.command("list")
def list_triggers(
    as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """List the triggers: on which event they make what, and how often they did.

    \b
    Example:
      treadle triggers list --json
    """
    _list(as_json, database_url)


@triggers.command()
def show(
    name: Name,
    limit: Annotated[int, typer.Option(min=0, max=10_000, help="So many firings.")] = 20,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Show a trigger, and what it made of the last events.

    \b
    Example:
      treadle triggers show next
    """

    async def work(app: Treadle) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        db = app.db
        return await db.triggers.get(name), await db.triggers.log(name, limit)

    row, fires = common.call(work, database_url)
    if as_json:
        output.document({**row, "log": fires})
        return
    for key in (key for key in row if row[key] is not None):
        typer.echo(f"{key}\t{common.printable(output.flat(row[key]))}")
    if fires:
        typer.echo()
        shown = [{**each, "made": each["task_id"] or each["dag_id"]} for each in fires]
        output.show(shown, LOG, as_json=False)


@triggers.command("set")
def set_trigger(
    name: Name,
    on: Annotated[
        str | None, typer.Option(metavar="KIND", help="The event: dag.completed, invoice.paid.")
    ] = None,
    only: Annotated[
        str | None, typer.Option("--filter", metavar="JSON", help="What it must contain.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="JSON", help=f"The task to make, {Json}")
    ] = None,
    dag: Annotated[
        str | None, typer.Option(metavar="JSON", help=f"Or the DAG to make, {Json}")
    ] = None,
    failure_rate: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Instead of an event: type, window_s, limit."),
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option(metavar="N", help="So many triggers in a chain; 5.")
    ] = None,
    max_per_hour: Annotated[
        int | None, typer.Option(metavar="N", help="So often in an hour; 1000. 0 is any number.")
    ] = None,
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who says so.")] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Make a trigger, or change one; what is not named stays as it is.

    \b
    Examples:
      treadle triggers set next --on task.completed --filter '{"type": "crawl"}' \\
        --task '{"type": "summarise", "spec": {"text": {"$event": "output.text"}}}'
      treadle triggers set failing --task '{"type": "review", "spec": {"$event": "data"}}' \\
        --failure-rate '{"type": "summarise", "window_s": 3600, "limit": 0.3}'
    """
    documents = {"filter": only, "task": task, "dag": dag, "failure_rate": failure_rate}
    settings: dict[str, Any] = {
        key: common.json_argument(text, key.replace("_", "-"))
        for key, text in documents.items()
        if text is not None
    }
    plain = {"on": on, "max_depth": max_depth, "description": description}
    settings.update({key: value for key, value in plain.items() if value is not None})
    if max_per_hour is not None:
        settings["max_per_hour"] = max_per_hour or None

    async def work(app: Treadle) -> dict[str, Any]:
        await app.db.triggers.define(name, settings, by)
        return await app.db.triggers.get(name)

    row = common.call(work, database_url)
    if as_json:
        output.document(row)
    else:
        common.note(f"trigger {name} makes {_makes(row)} on {row['on_event']}")


@triggers.command()
def pause(
    name: Name,
    reason: Annotated[str | None, typer.Option(help="Why; shown to who looks.")] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Let a trigger rest; events that come meanwhile are passed by.

    \b
    Example:
      treadle triggers pause next --reason "too many"
    """
    common.call_db(lambda db: db.triggers.pause(name, reason), database_url)
    output.print_done(f"trigger {name} is paused", as_json, name=name, status="paused")


@triggers.command()
def resume(
    name: Name, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Let a trigger fire again, on what happens from now on.

    \b
    Example:
      treadle triggers resume next
    """
    common.call_db(lambda db: db.triggers.resume(name), database_url)
    output.print_done(f"trigger {name} is active", as_json, name=name, status="active")


@triggers.command()
def remove(
    name: Name,
    yes: common.Yes = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Take a trigger away; what it has made stays.

    \b
    Example:
      treadle triggers remove next --yes
    """
    common.confirm(f"remove the trigger {name}", yes=yes)
    common.call_db(lambda db: db.triggers.remove(name), database_url)
    output.print_done(f"trigger {name} is removed", as_json, name=name, status="removed")


@triggers.command("test")
def try_trigger(
    name: Name,
    event: Annotated[
        int | None, typer.Option(metavar="ID", help="An event that happened: treadle events.")
    ] = None,
    sample: Annotated[
        str | None, typer.Option(metavar="JSON", help=f"Or one that did not, {Json}")
    ] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Say what a trigger would make of an event; nothing is made. Exit code 1: it would not fire.

    \b
    Examples:
      treadle triggers test next --event 4711
      treadle triggers test next --sample '{"kind": "invoice.paid", "data": {"amount": 12.5}}'
    """
    if (event is None) == (sample is None):
        raise InvalidArgument(
            "give --event or --sample", hint="See what happened: treadle events list"
        )
    given = None if sample is None else common.json_argument(sample, "sample")

    async def work(app: Treadle) -> dict[str, Any]:
        return await app.db.triggers.test(name, event, given)

    verdict = common.call(work, database_url)
    if as_json:
        output.document(verdict)
    elif verdict["fires"]:
        typer.echo(f"it makes\t{common.printable(output.flat(verdict['makes']))}")
        if verdict["paused"]:
            common.note(f"trigger {name} is paused: it will not")
    else:
        typer.echo(f"it does not fire\t{common.printable(verdict['problem'])}")
    if not verdict["fires"]:
        raise typer.Exit(1)


@triggers.command()
def fire(
    name: Name,
    event: Annotated[int, typer.Argument(metavar="EVENT", help="The id of the event.")],
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Fire a trigger on an event where it failed, or before which it was not there.

    \b
    Example:
      treadle triggers fire next 4711
    """

    async def work(app: Treadle) -> TriggerRun:
        return await app.db.triggers.fire(name, event)

    fired = common.call(work, database_url)
    if as_json:
        output.document({"trigger": name, **asdict(fired)})
    elif fired.problem is None:
        typer.echo(fired.task_id or fired.dag_id)
    else:
        typer.echo(f"it does not fire\t{common.printable(fired.problem)}")
    if fired.problem is not None:
        raise typer.Exit(1)
