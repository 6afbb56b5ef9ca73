"""`treadle events`: list, follow and emit events."""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun
from treadle.cli.output import Column

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.database import Database
    from treadle.models import Event

Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", "-k", metavar="KIND", help="Only of this kind; repeatable."),
]
COLUMNS = [
    Column("id", "id", right=True),
    Column("time", "at", output.ago),
    Column("kind", "kind"),
    Column("key", "key"),
    Column("task", "task_id", output.short),
    Column("dag", "dag_id", output.short, extra=True),
    Column("queue", "queue", extra=True),
    Column("actor", "actor", extra=True),
    Column("data", "data"),
]

events = Noun(
    "events",
    """List, follow and emit events.

    \b
    Examples:
      treadle events list --kind dag.completed
      treadle events tail
    """,
)


@events.verb("list")
def list_events(
    kind: Kinds = None,
    task: common.OfTask = None,
    dag: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Only of this DAG.", parser=common.strip_ellipsis),
    ] = None,
    limit: common.Limit = 50,
) -> None:
    """List events, newest first.

    \b
    Examples:
      treadle events list --limit 10
      treadle events list --kind task.dead_lettered --kind trigger.failed --json
    """

    async def read(db: Database) -> list[dict[str, Any]]:
        return await db.events.list(
            kinds=kind or (),
            task_id=None if task is None else await db.tasks.find(task),
            dag_id=None if dag is None else await db.dags.find(dag),
            limit=limit,
        )

    output.show(common.call_db(read), COLUMNS, empty="no event matches")


@events.verb()
def tail(
    kind: Kinds = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="POSITION", help="Continue after this event; 0.0 is the beginning."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="N", min=1, help="Exit after N events.")
    ] = None,
) -> None:
    """Print each event once as it happens, until interrupted.

    \b
    Examples:
      treadle events tail --kind dag.completed
      treadle events tail --json --after 8123.77

    With --json, each line is a document. An event is printed once all older transactions have
    ended.
    """

    async def follow(app: Treadle) -> None:
        seen = 0
        async with aclosing(app.events(kind or None, after=after)) as stream:
            async for event in stream:
                _print(event)
                seen += 1
                if seen == limit:
                    return

    try:
        common.call(follow)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


@events.verb()
def emit(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="Kind of the event: invoice.paid.")],
    payload: Annotated[
        str, typer.Argument(metavar="JSON", help="Data of the event: JSON, @file or -.")
    ] = "{}",
    key: Annotated[
        str, typer.Option(metavar="KEY", help="Subject; only waits with the same key get it.")
    ] = "",
    dedup_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Idempotency key: reusing it returns the existing event."),
    ] = None,
) -> None:
    """Emit an event, resume the tasks that wait for it, and print its id.

    \b
    Example:
      treadle events emit invoice.paid '{"amount": 12.5}' --key 4711
    """
    document = common.json_value(payload, "payload")

    async def send(app: Treadle) -> int:
        return await app.emit(kind, document, key=key, dedup_key=dedup_key)

    event_id = common.call(send)
    output.print_new(event_id, "emitted", id=event_id)


def _print(event: Event) -> None:
    if common.options.json:
        typer.echo(json.dumps(asdict(event), default=output.jsonable, ensure_ascii=False))
        return
    about = event.key or event.task_id or event.dag_id or ""
    cells = (output.moment(event.at), event.place, event.kind, about, output.flat(event.data))
    typer.echo("\t".join(common.printable(cell) for cell in cells))
