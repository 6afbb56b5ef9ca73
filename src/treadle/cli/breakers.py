"""`treadle breakers`: types that are kept back because their tasks failed in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.output import Column

if TYPE_CHECKING:
    from rich.text import Text

    from treadle.app import Treadle

Type = Annotated[str, typer.Argument(metavar="TYPE", help="The task type.")]
# Here it is the closed one that lets tasks through.
_MARKS = {"closed": ("●", "green"), "open": ("✕", "red"), "half_open": ("◌", "yellow")}


def _state(value: object) -> Text:
    mark, colour = _MARKS[str(value)]
    return output.plain(f"{mark} {value}", colour)


COLUMNS = [
    Column("type", "type"),
    Column("state", "state", _state),
    Column("failures", "failures", right=True),
    Column("threshold", "threshold", right=True),
    Column("opened", "opened_at", output.ago),
    Column("probe", "probe_at", output.ago),
    Column("by", "opened_by", extra=True),
    Column("last_failure", "last_failure_at", output.ago, extra=True),
    Column("last_error", "last_error"),
]


def _list(as_json: bool, database_url: str | None, *, everything: bool = False) -> None:
    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.breakers.list()

    rows = common.call(work, database_url)
    shown = [row for row in rows if everything or row["state"] != "closed" or row["failures"]]
    output.show(shown, COLUMNS, as_json=as_json, empty="no type is kept back")


breakers = common.group(
    """See which types are kept back because their tasks fail; trip and reset breakers.

    \b
    Examples:
      treadle breakers
      treadle breakers reset deploy
    """,
    alone=_list,
)


@breakers.command("list")
def list_breakers(
    everything: Annotated[
        bool, typer.Option("--all", help="Also types whose tasks do not fail.")
    ] = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """List breakers that are open or count failures, and when one task is tried next.

    \b
    Example:
      treadle breakers list --all
    """
    _list(as_json, database_url, everything=everything)


@breakers.command()
def trip(
    type: Type,
    seconds: Annotated[
        float | None,
        typer.Option("--for", metavar="S", help="Until one task is tried; as set for the type."),
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why; shown to who looks.")] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Let no task of a type start; after a while one is tried.

    \b
    Example:
      treadle breakers trip deploy --for 600 --reason "the cluster is being moved"
    """
    probe_at = common.call_db(lambda db: db.breakers.trip(type, seconds, reason), database_url)
    text = f"the breaker of {type} is open; one task is tried at {probe_at:%H:%M:%S %Z}"
    output.print_done(text, as_json, name=type, status="open", probe_at=probe_at)


@breakers.command()
def reset(
    type: Type, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Let tasks of a type start again and forget its failures.

    \b
    Example:
      treadle breakers reset deploy
    """
    was_open = common.call_db(lambda db: db.breakers.reset(type), database_url)
    text = f"the breaker of {type} {'is' if was_open else 'was'} closed"
    output.print_done(text, as_json, name=type, status="closed", changed=was_open)
