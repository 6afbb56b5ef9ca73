"""`treadle keys`: how many tasks with the same concurrency key may run at once."""

from __future__ import annotations

from typing import Annotated

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun
from treadle.cli.output import Column

COLUMNS = [
    Column("key", "key"),
    Column("running", "held", right=True),
    Column("limit", "max", right=True),
    Column("waiting", "waiting", right=True),
    Column("oldest_waiting", "oldest_waiting_at", output.ago),
]

keys = Noun(
    "keys",
    """List concurrency keys and set how many tasks of a key may run at once.

    \b
    Examples:
      treadle keys
      treadle keys set repo:42 3
    """,
)


@keys.verb("list")
def list_keys() -> None:
    """List concurrency keys with their running and waiting tasks.

    \b
    Example:
      treadle keys list --json
    """
    rows = common.call_db(lambda db: db.keys.list())
    output.show(rows, COLUMNS, empty="no task has a concurrency key; set a limit: treadle keys set")


@keys.verb("set")
def set_key(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Concurrency key.")],
    limit: Annotated[
        int, typer.Argument(metavar="N", help="Tasks that may run at once; 0 stops new ones.")
    ],
) -> None:
    """Set how many tasks of a key may run at once; running tasks continue.

    \b
    Example:
      treadle keys set repo:42 3
    """
    common.call_db(lambda db: db.keys.set(key, limit))
    text = f"key {key} has {limit} slot{'' if limit == 1 else 's'}"
    output.print_done(text, name=key, status="set", max=limit)
