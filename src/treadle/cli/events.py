"""`treadle events`: list, follow and emit events."""

from __future__ import annotations

import json
from collections import deque
from contextlib import aclosing
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun
from treadle.cli.output import Column
from treadle.errors import InvalidArgument, TreadleError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from datetime import datetime
    from uuid import UUID

    from anyio import CancelScope

    from treadle.app import Treadle
    from treadle.db.database import Database
    from treadle.models import Event

Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", "-k", metavar="KIND", help="Only of this kind; repeatable."),
]
# Completed tasks that `tail` prints in a second.
MAX_COMPLETIONS = 100
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
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", metavar="N", min=1, max=100_000, help="Events at most; default: 50."
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new events instead, as `tail` does.")
    ] = False,
) -> None:
    """List events, newest first.

    \b
    Examples:
      treadle events list --limit 10
      treadle events list --kind task.dead_lettered --kind trigger.failed --json
      treadle events --follow
    """
    if follow:
        if task or dag:
            raise InvalidArgument(
                "--follow shows the events of all tasks",
                hint="Leave out --task and --dag, or list without --follow.",
            )
        tail(kind, None, limit)
        return

    async def read(db: Database) -> list[dict[str, Any]]:
        return await db.events.list(
            kinds=kind or (),
            task_id=None if task is None else await db.tasks.find(task),
            dag_id=None if dag is None else await db.dags.find(dag),
            limit=limit or 50,
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

    Completed tasks are printed too, up to 100 a second, unless --kind, --after or --json is given:
    most queues do not record them as events. With --kind task.completed they are recorded while the
    command runs. With --json, each line is a document. An event is printed once all older
    transactions have ended.
    """
    import anyio

    with_completions = not (kind or after or common.options.json)

    async def follow(app: Treadle) -> None:
        with anyio.CancelScope() as scope:
            tail = _Tail(limit, scope)
            events = app.events(kind or None, after=after)
            if not with_completions:
                await tail.follow_events(events)
                return
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(tail.follow_completions, app.db)
                    await tail.follow_events(events)
            except* TreadleError as errors:
                raise errors.exceptions[0] from None

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


class _Tail:
    """Prints events and completed tasks until there are `limit` of them."""

    def __init__(self, limit: int | None, scope: CancelScope) -> None:
        self._left = limit
        self._scope = scope
        # Completed tasks that were printed lately.
        self._completed: deque[UUID] = deque(maxlen=10 * MAX_COMPLETIONS)

    async def follow_events(self, events: AsyncGenerator[Event]) -> None:
        async with aclosing(events) as stream:
            async for event in stream:
                if event.kind == "task.completed" and not self._is_new(event.task_id):
                    continue
                if common.options.json:
                    typer.echo(
                        json.dumps(asdict(event), default=output.jsonable, ensure_ascii=False)
                    )
                else:
                    about = event.key or event.task_id or event.dag_id or ""
                    _print(event.at, event.place, event.kind, about, event.data)
                self._count()

    async def follow_completions(self, db: Database) -> None:
        import anyio

        start = since = await db.calls.now()
        while True:
            rows = await db.events.completions(since, MAX_COMPLETIONS)
            for row in rows:
                if self._is_new(row["task_id"]):
                    _print(row["at"], "-", "task.completed", row["task_id"], row["data"])
                    self._count()
            if rows:
                # A task that was completed before the last one may be committed after it.
                since = max(start, rows[-1]["at"] - timedelta(seconds=2))
            await anyio.sleep(1)

    def _is_new(self, task_id: UUID | None) -> bool:
        if task_id is None or task_id in self._completed:
            return False
        self._completed.append(task_id)
        return True

    def _count(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                self._scope.cancel()


def _print(at: datetime, place: str, kind: str, about: object, data: object) -> None:
    cells = (output.moment(at), place, kind, about, output.flat(data))
    typer.echo("\t".join(common.printable(cell) for cell in cells))
