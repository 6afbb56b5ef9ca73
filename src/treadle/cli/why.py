"""`treadle why`: every reason why a task is not running."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from treadle.cli import common, output
from treadle.cli.output import Column

if TYPE_CHECKING:
    from treadle.app import Treadle

COLUMNS = [Column("reason", "reason"), Column("until", "until"), Column("sentence", "sentence")]
# What moves by itself, what somebody has to look at, and what is over.
COLOURS = {
    "claimable": "green",
    "running": "blue",
    "claimed": "blue",
    "validating": "blue",
    "position": "cyan",
    "completed": "green",
    "cancelled": "bright_black",
    "dead_lettered": "magenta",
}


def why(
    task_id: common.TaskId,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Say why a task is not running: every reason that holds now.

    \b
    Example:
      treadle why 9f3a21c4
    """

    async def work(app: Treadle) -> tuple[UUID, list[dict[str, Any]]]:
        db = app.db
        found = await db.tasks.find(task_id.lstrip("…."))
        return found, await db.tasks.why(found)

    found, reasons = common.call(work, database_url)
    if as_json:
        output.document({"id": found, "reasons": reasons})
    elif output.console().is_terminal:
        for each in reasons:
            print_reason(each)
    else:
        output.show(reasons, COLUMNS, as_json=False)


def print_reason(reason: output.Record) -> None:
    """One reason on a terminal: a mark in the colour of how bad it is, and the sentence."""
    mark = output.plain("● ", COLOURS.get(reason["reason"], "yellow"))
    output.console().print(mark, output.plain(reason["sentence"]), sep="")
