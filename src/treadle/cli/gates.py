"""`treadle gates`: what tasks have to pass to start: rate limits and slow-downs by key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.output import Column

if TYPE_CHECKING:
    from treadle.app import Treadle

Key = Annotated[str, typer.Argument(metavar="KEY", help="The gate; type:NAME is that of a type.")]


def _amount(value: float | None) -> str:
    return "-" if value is None else f"{value:.6f}".rstrip("0").rstrip(".")


COLUMNS = [
    Column("gate", "key"),
    Column("state", "state", output.state),
    Column("opens", "closed_until", output.ago),
    Column("used", "used", _amount, right=True),
    Column("limit", "limit", _amount, right=True),
    Column("unit", "unit"),
    Column("per_s", "per_s", _amount, right=True),
    Column("slowdowns", "slowdowns", right=True, extra=True),
    Column("types", "types", extra=True),
    Column("reason", "reason"),
]


def _list(as_json: bool, database_url: str | None) -> None:
    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.gates.list()

    rows = common.call(work, database_url)
    output.show(rows, COLUMNS, as_json=as_json, empty="no gate is defined, limited or closed")


gates = common.group(
    """See which gates are closed and how much of a rate limit is used; define, close, open them.

    \b
    Examples:
      treadle gates
      treadle gates define anthropic --limit 50 --per 60
    """,
    alone=_list,
)


@gates.command("list")
def list_gates(as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None) -> None:
    """List the gates: open or closed, until when and why, and what of a limit is used.

    \b
    Example:
      treadle gates list --json
    """
    _list(as_json, database_url)


@gates.command()
def define(
    key: Key,
    limit: Annotated[
        float | None, typer.Option(metavar="N", help="So many may pass in each period.")
    ] = None,
    per: Annotated[float | None, typer.Option(metavar="S", help="The period, in seconds.")] = None,
    unit: Annotated[
        str | None, typer.Option(metavar="UNIT", help="starts (the default), tokens or usd.")
    ] = None,
    no_limit: Annotated[bool, typer.Option("--no-limit", help="Take the limit away.")] = False,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Make a gate, or change its limit; what is not named stays as it is.

    \b
    Examples:
      treadle gates define anthropic --limit 50 --per 60
      treadle gates define anthropic --limit 400000 --per 60 --unit tokens
      treadle gates define anthropic --no-limit
    """
    if no_limit and (limit, per, unit) != (None, None, None):
        raise typer.BadParameter("--no-limit goes with no other option")
    settings: dict[str, Any] = {"limit": limit, "per_s": per, "unit": unit}
    named = {name: value for name, value in settings.items() if value is not None}
    if no_limit:
        named = {"limit": None}
    common.call_db(lambda db: db.gates.define(key, named), database_url)
    output.print_done(f"gate {key} is defined", as_json, name=key, status="defined")


@gates.command("close")
def close_gate(
    key: Key,
    seconds: Annotated[
        float, typer.Option("--for", metavar="S", help="For so many seconds.")
    ] = 3600,
    reason: Annotated[str | None, typer.Option(help="Why; shown to who looks.")] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Let no task behind a gate start for a while; what runs, runs on.

    \b
    Example:
      treadle gates close anthropic --for 600 --reason "they have an incident"
    """
    until = common.call_db(lambda db: db.gates.close(key, seconds, reason), database_url)
    text = f"gate {key} is closed until {until:%Y-%m-%d %H:%M:%S %Z}"
    output.print_done(text, as_json, name=key, status="closed", closed_until=until)


@gates.command("open")
def open_gate(
    key: Key, as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None
) -> None:
    """Let tasks behind a gate start again, before its time; a rate limit stays in force.

    \b
    Example:
      treadle gates open anthropic
    """
    was_closed = common.call_db(lambda db: db.gates.open(key), database_url)
    text = f"gate {key} {'is' if was_closed else 'was'} open"
    output.print_done(text, as_json, name=key, status="open", changed=was_closed)
