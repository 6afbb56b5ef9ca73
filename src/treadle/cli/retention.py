"""`treadle history`: finished tasks that were archived, and what is kept how long."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output, task_view, times
from treadle.cli.output import Column
from treadle.errors import InvalidArgument, TaskNotFound

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.database import Database

history = common.group(
    """Find finished tasks that were archived; say what is kept how long.

    \b
    Examples:
      treadle history list --queue mail
      treadle history show 9f3a21c4
      treadle history keep events 90d
    """
)

COLUMNS = [
    Column("id", "id", output.short),
    Column("status", "status", output.state),
    Column("type", "type"),
    Column("queue", "queue"),
    Column("ended", "completed_at", output.ago),
    Column("archived", "archived_at", output.ago, extra=True),
    Column("cost", "cost_usd", right=True, extra=True),
    Column("about", "about"),
]
AGES = [
    Column("what", "what"),
    Column("queue", "queue"),
    Column("kept", "kept"),
    Column("then", "then"),
]
KINDS = ["events", "agents", "runs"]


@history.command("list")
def list_history(
    queue: Annotated[str | None, typer.Option(help="Only of this queue.")] = None,
    type: Annotated[str | None, typer.Option(help="Only of this type.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most.")] = 50,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """List archived tasks, the newest first.

    \b
    Example:
      treadle history list --queue mail -n 20
    """

    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.retention.archive(queue=queue, type=type, limit=limit)

    rows = common.call(work, database_url)
    if not as_json:
        for row in rows:
            row["about"] = task_view.last_line(row["failure_reason"]) or row["title"]
    output.show(rows, COLUMNS, as_json=as_json, empty="no task is archived")


@history.command()
def show(
    task_id: common.TaskId,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Show an archived task with all that belonged to it.

    \b
    Example:
      treadle history show 9f3a21c4
    """

    async def work(app: Treadle) -> dict[str, Any]:
        return await app.db.retention.archived(task_id.lstrip("…."))

    found = common.call(work, database_url)
    if as_json:
        output.document(found)
        return
    for name, value in {**found.pop("task"), **found}.items():
        if value is not None:
            output.separated([name, value])


@history.command()
def keep(
    what: Annotated[
        str | None, typer.Argument(metavar="[WHAT]", help="events, agents or runs.")
    ] = None,
    age: Annotated[
        str | None, typer.Argument(metavar="[AGE]", help="30d, 12h; forever keeps all.")
    ] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Say what is kept how long; with an age, change it for events, agents or runs.

    \b
    Examples:
      treadle history keep
      treadle history keep events 90d

    For tasks it is said of their queue: treadle queues define mail --keep 30d
    """
    if what is None:
        _show_ages(as_json, database_url)
        return
    if what not in KINDS:
        raise InvalidArgument(
            f"there is nothing called {what!r} to keep",
            hint=common.did_you_mean(what, KINDS),
            argument="what",
        )
    if age is None:
        raise InvalidArgument(f"how long are {what} kept?", hint="Give an age: 90d, or forever.")
    seconds = times.parse(age, "AGE")

    async def work(app: Treadle) -> None:
        await app.db.retention.set(what, seconds)

    common.call(work, database_url)
    common.note(f"{what} are kept {'for ever' if seconds is None else f'for {age}'}")


@asynccontextmanager
async def hint_if_archived(db: Database, wanted: str) -> AsyncIterator[None]:
    """Say of a task that is not there any more that it is archived, if it is."""
    try:
        yield
    except TaskNotFound as missing:
        try:
            found = await db.retention.archived(wanted)
        except TaskNotFound:
            raise missing from None
        raise TaskNotFound(
            f"task {found['id']} was archived {found['archived_at']:%Y-%m-%d %H:%M %Z}",
            hint=f"See it: treadle history show {found['id']}",
            task_id=str(found["id"]),
        ) from None


def _show_ages(as_json: bool, database_url: str | None) -> None:
    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.retention.ages()

    rows = common.call(work, database_url)
    if not as_json:
        for row in rows:
            never = row["keep_s"] is None
            row["kept"] = "for ever" if never else output.length(row["keep_s"])
            row["then"] = None if never else row["mode"]
    output.show(rows, AGES, as_json=as_json)
