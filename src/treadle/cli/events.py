"""`treadle events`: what happened, and what happens."""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.output import Column

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.models import Event

Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", "-k", metavar="KIND", help="Only of this kind; may be repeated."),
]
COLUMNS = [
    Column("id", "id", right=True),
    Column("when", "at", output.ago),
    Column("kind", "kind"),
    Column("key", "key"),
    Column("task", "task_id", output.short),
    Column("dag", "dag_id", output.short, extra=True),
    Column("queue", "queue", extra=True),
    Column("actor", "actor", extra=True),
    Column("data", "data"),
]

events = common.group(
    """List what happened, and follow what happens.

    \b
    Examples:
      treadle events list --kind dag.completed
      treadle events tail
    """
)


@events.command("list")
def list_events(
    kind: Kinds = None,
    task: Annotated[str | None, typer.Option(metavar="ID", help="Only of this task.")] = None,
    dag: Annotated[str | None, typer.Option(metavar="ID", help="Only of this DAG.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most.")] = 50,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """List events, the newest first.

    \b
    Examples:
      treadle events list --limit 10
      treadle events list --kind task.dead_lettered --kind trigger.failed --json
    """

    async def work(app: Treadle) -> list[dict[str, Any]]:
        db = app.db
        return await db.events.list(
            kinds=kind or (),
            task_id=None if task is None else await db.tasks.find(task.lstrip("….")),
            dag_id=None if dag is None else await db.dags.find(dag.lstrip("….")),
            limit=limit,
        )

    rows = common.call(work, database_url)
    output.show(rows, COLUMNS, as_json=as_json, empty="nothing has happened")


@events.command()
def tail(
    kind: Kinds = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="Go on after an event; 0.0 is the beginning."),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="End after so many.")
    ] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Print events as they happen, until interrupted: each once, and none left out.

    \b
    Examples:
      treadle events tail --kind dag.completed
      treadle events tail --json --after 8123.77

    With --json one document on each line. An event comes when all transactions older than its own
    have ended.
    """

    async def work(app: Treadle) -> None:
        seen = 0
        async with aclosing(app.events(kind or None, after=after)) as stream:
            async for event in stream:
                _print(event, as_json=as_json)
                seen += 1
                if seen == count:
                    return

    try:
        common.call(work, database_url)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _print(event: Event, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(asdict(event), default=output.jsonable, ensure_ascii=False))
        return
    about = event.key or event.task_id or event.dag_id or ""
    cells = (output.moment(event.at), event.place, event.kind, about, output.flat(event.data))
    typer.echo("\t".join(common.printable(cell) for cell in cells))
