"""`treadle gates`: rate limits and slow-downs that tasks pass before they start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun, add_create_and_update
from treadle.cli.output import Column

if TYPE_CHECKING:
    from treadle.db.database import Database

Key = Annotated[str, typer.Argument(metavar="KEY", help="Gate; type:NAME is the gate of a type.")]


def _amount(value: float | None) -> str:
    return "-" if value is None else f"{value:.6f}".rstrip("0").rstrip(".")


COLUMNS = [
    Column("gate", "key"),
    Column("state", "state", output.state),
    Column("closed_until", "closed_until", output.ago),
    Column("used", "used", _amount, right=True),
    Column("limit", "limit", _amount, right=True),
    Column("unit", "unit"),
    Column("per_s", "per_s", _amount, right=True),
    Column("slowdowns", "slowdowns", right=True, extra=True),
    Column("types", "types", extra=True),
    Column("reason", "reason"),
]

gates = Noun(
    "gates",
    """List gates with their rate limits; create, update, close and open them.

    \b
    Examples:
      treadle gates
      treadle gates create anthropic --limit 50 --per 60
    """,
)


@gates.verb("list")
def list_gates() -> None:
    """List gates with their state and how much of each limit is used.

    \b
    Example:
      treadle gates list --json
    """
    rows = common.call_db(lambda db: db.gates.list())
    output.show(rows, COLUMNS, empty="no gates; create one: treadle gates create --help")


def gate_settings(
    limit: Annotated[
        float | None, typer.Option(metavar="N", help="Units allowed in each period.")
    ] = None,
    per: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Length of the period.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(metavar="UNIT", help="starts (the default), tokens or usd.")
    ] = None,
    no_limit: Annotated[bool, typer.Option("--no-limit", help="Remove the limit.")] = False,
) -> dict[str, Any]:
    """The settings of a gate that were given."""
    if no_limit and (limit, per, unit) != (None, None, None):
        raise typer.BadParameter("--no-limit cannot be combined with other options")
    if no_limit:
        return {"limit": None}
    return common.named({"limit": limit, "per_s": per, "unit": unit})


async def _define(db: Database, key: str, settings: dict[str, Any]) -> tuple[bool, None]:
    return await db.gates.define(key, settings), None


add_create_and_update(
    gates,
    "gate",
    _define,
    gate_settings,
    create="""Create a gate; a type creates the gates that it names.

    \b
    Examples:
      treadle gates create anthropic --limit 50 --per 60
      treadle gates create anthropic --limit 400000 --per 60 --unit tokens
    """,
    update="""Change the named settings of a gate.

    \b
    Examples:
      treadle gates update anthropic --limit 50
      treadle gates update anthropic --no-limit
    """,
    get=lambda db, key: db.gates.get(key),
    argument=Key,
)


@gates.verb("close")
def close_gate(
    key: Key,
    seconds: Annotated[
        float, typer.Option("--for", metavar="SECONDS", help="Time to stay closed.")
    ] = 3600,
    reason: common.Reason = None,
) -> None:
    """Stop starting tasks behind a gate for a while; running tasks continue.

    \b
    Example:
      treadle gates close anthropic --for 600 --reason "provider incident"
    """
    until = common.call_db(lambda db: db.gates.close(key, seconds, reason))
    text = f"gate {key} is closed until {output.moment(until)}; open it: treadle gates open {key}"
    output.print_done(text, name=key, status="closed", closed_until=until)


@gates.verb("open")
def open_gate(key: Key) -> None:
    """Open a closed gate early; its rate limit stays in force.

    \b
    Example:
      treadle gates open anthropic
    """
    was_closed = common.call_db(lambda db: db.gates.open(key))
    text = f"gate {key} {'is' if was_closed else 'was already'} open"
    output.print_done(text, name=key, status="open", changed=was_closed)
