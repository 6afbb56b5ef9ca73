"""`treadle keys`: how many tasks of a concurrency key may be under way at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.output import Column

if TYPE_CHECKING:
    from treadle.app import Treadle

COLUMNS = [
    Column("key", "key"),
    Column("held", "held", right=True),
    Column("limit", "max", right=True),
    Column("waiting", "waiting", right=True),
    Column("oldest", "oldest_waiting_at", output.ago),
]


def _list(as_json: bool, database_url: str | None) -> None:
    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.keys.list()

    rows = common.call(work, database_url)
    output.show(rows, COLUMNS, as_json=as_json, empty="no task has a concurrency key")


keys = common.group(
    """See which concurrency keys are full; set how many tasks of a key may run at once.

    \b
    Examples:
      treadle keys
      treadle keys set repo:42 3
    """,
    alone=_list,
)


@keys.command("list")
def list_keys(as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None) -> None:
    """List the keys with how many tasks hold a slot and how many wait for one.

    \b
    Example:
      treadle keys list --json
    """
    _list(as_json, database_url)


@keys.command("set")
def set_key(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The concurrency key.")],
    limit: Annotated[int, typer.Argument(metavar="N", help="Tasks at once; 0 holds all back.")],
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Let so many tasks of a key be under way at once; what runs, runs on.

    \b
    Example:
      treadle keys set repo:42 3
    """
    common.call_db(lambda db: db.keys.set(key, limit), database_url)
    text = f"key {key} has {limit} slot{'' if limit == 1 else 's'}"
    output.print_done(text, as_json, name=key, status="set", max=limit)
