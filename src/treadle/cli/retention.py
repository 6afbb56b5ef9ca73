"""`treadle retention` and `treadle archive`: how long finished work is kept, and the archive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun
from treadle.cli.output import Column
from treadle.errors import InvalidArgument, TaskNotFound

if TYPE_CHECKING:
    from treadle.db.database import Database

AGES = [
    Column("records", "what"),
    Column("queue", "queue"),
    Column("age", "age"),
    Column("action", "action"),
]
ARCHIVED = [
    Column("id", "id", output.short),
    Column("status", "status", output.state),
    Column("type", "type"),
    Column("queue", "queue"),
    Column("ended", "completed_at", output.ago),
    Column("archived", "archived_at", output.ago, extra=True),
    Column("cost", "cost_usd", right=True, extra=True),
    Column("about", "about"),
]
KINDS = ["events", "agents", "runs"]

retention = Noun(
    "retention",
    """List and set how long events, agents and runs are kept.

    \b
    Examples:
      treadle retention
      treadle retention set events 90d
    """,
)
archive = Noun(
    "archive",
    """List and show finished tasks that were archived.

    \b
    Examples:
      treadle archive list --queue mail
      treadle archive show 9f3a21c4
    """,
)


@retention.verb("list")
def list_ages() -> None:
    """List how long finished tasks, events, agents and runs are kept.

    \b
    Example:
      treadle retention list --json

    The age of tasks is a setting of their queue: treadle queues update mail --keep 30d
    """
    rows = common.call_db(lambda db: db.retention.ages())
    if not common.options.json:
        for row in rows:
            forever = row["keep_s"] is None
            row["age"] = "forever" if forever else output.length(row["keep_s"])
            row["action"] = None if forever else row["mode"]
    output.show(rows, AGES)


@retention.verb("set")
def set_age(
    records: Annotated[str, typer.Argument(metavar="RECORDS", help="events, agents or runs.")],
    age: Annotated[str, typer.Argument(metavar="AGE", help="30d, 12h, or forever.")],
) -> None:
    """Set how long events, agents or runs are kept.

    \b
    Examples:
      treadle retention set events 90d
      treadle retention set runs forever
    """
    if records not in KINDS:
        raise InvalidArgument(
            f"there are no records called {records!r}",
            hint=common.did_you_mean(records, KINDS),
            argument="records",
        )
    seconds = common.parse_age(age, "AGE")
    common.call_db(lambda db: db.retention.set(records, seconds))
    text = f"{records} are kept {'forever' if seconds is None else f'for {age}'}"
    output.print_done(text, name=records, status="set", keep_s=seconds)


@archive.verb("list")
def list_archive(
    queue: common.OfQueue = None, type: common.OfType = None, limit: common.Limit = 50
) -> None:
    """List archived tasks, newest first.

    \b
    Example:
      treadle archive list --queue mail -n 20
    """
    rows = common.call_db(lambda db: db.retention.archive(queue=queue, type=type, limit=limit))
    if not common.options.json:
        for row in rows:
            row["about"] = output.last_line(row["failure_reason"]) or row["title"]
    empty = "no task is archived; archive old tasks: treadle queues update NAME --keep 30d"
    output.show(rows, ARCHIVED, empty=empty)


@archive.verb("show")
def show_archived(task_id: common.TaskId) -> None:
    """Show an archived task with its attempts, steps and events.

    \b
    Example:
      treadle archive show 9f3a21c4
    """
    found = common.call_db(lambda db: db.retention.archived(task_id))
    if common.options.json:
        output.document(found)
        return
    whole = {**found.pop("task"), **found}
    output.print_record({name: value for name, value in whole.items() if value is not None})


@asynccontextmanager
async def hint_if_archived(db: Database, task_id: str) -> AsyncIterator[None]:
    """If a task is not found but archived, say so and name the command that shows it."""
    try:
        yield
    except TaskNotFound as missing:
        try:
            found = await db.retention.archived(task_id)
        except TaskNotFound:
            raise missing from None
        raise TaskNotFound(
            f"task {found['id']} was archived at {output.moment(found['archived_at'])}",
            hint=f"See it: treadle archive show {found['id']}",
            task_id=str(found["id"]),
        ) from None
