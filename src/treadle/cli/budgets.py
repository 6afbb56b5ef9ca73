"""`treadle budget`: what may be spent, what is, and who waits for money."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.output import Column, Record
from treadle.errors import InvalidArgument

if TYPE_CHECKING:
    from rich.text import Text

    from treadle.app import Treadle

BAR = 12
Scope = Annotated[
    str,
    typer.Argument(
        metavar="SCOPE",
        help="agent:ID, dag:ID, project:NAME, type:NAME, or all.",
        show_default=False,
    ),
]
Period = Annotated[
    str | None,
    typer.Option(metavar="PERIOD", help="hour, day, week or month (UTC); else for good."),
]
By = Annotated[str, typer.Option(metavar="WHAT", help="agent, model, type, project or day.")]


def dollars(value: Any) -> str:
    """Dollars and cents, and more digits where there are some."""
    if value is None:
        return "-"
    cents = round(value, 2)
    return f"${cents:.2f}" if cents == value else f"${value.normalize():f}"


def bar(row: Record) -> Text:
    """How much of a budget is spent, and reserved, as a bar with its colour."""
    limit = float(row["limit_usd"])
    spent, reserved = float(row["spent_usd"]), float(row["reserved_usd"])
    full = round(BAR * min(1.0, spent / limit)) if limit else BAR
    held = round(BAR * min(1.0, (spent + reserved) / limit)) - full if limit else 0
    share = 1.0 if not limit else (spent + reserved) / limit
    colour = "red" if share >= 1 else "yellow" if share >= 0.8 else "green"
    part = 100 if not limit else round(100 * spent / limit)
    return output.plain(f"{'█' * full}{'▒' * held}{'░' * (BAR - full - held)} {part:3}%", colour)


def waiting(row: Record) -> str:
    """Who waits for more money."""
    parked = row["parked_tasks"]
    words = f"{parked} task{'s' if parked != 1 else ''} waiting" if parked else ""
    asks = f"asks: treadle answer {output.short(row['open_wait'])}" if row["open_wait"] else ""
    return ", ".join(each for each in (words, asks) if each) or "-"


COLUMNS = [
    Column("of", "of"),
    Column("per", "period"),
    Column("used", "used", lambda row: bar(row)),
    Column("spent", "spent_usd", dollars, right=True),
    Column("reserved", "reserved_usd", dollars, right=True, extra=True),
    Column("limit", "limit_usd", dollars, right=True),
    Column("left", "left_usd", dollars, right=True),
    Column("overrun", "overrun_usd", dollars, right=True, extra=True),
    Column("then", "on_exhausted", extra=True),
    Column("waiting", "waiting"),
]


def _list(as_json: bool, database_url: str | None) -> None:
    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.budgets.list()

    rows = common.call(work, database_url)
    if not as_json:
        people = output.console().is_terminal
        rows = [
            {
                **row,
                "of": _name(row),
                "used": row if people else None,
                "waiting": waiting(row) if people else row["parked_tasks"],
            }
            for row in rows
        ]
    output.show(rows, COLUMNS, as_json=as_json, empty="there is no budget: anything may be spent")


budget = common.group(
    """See what is spent and left; set and remove budgets.

    \b
    Examples:
      treadle budget
      treadle budget set agent:coder-1 20 --period day --on-exhausted fail
      treadle budget spend --days 7 --by model
    """,
    alone=_list,
)


@budget.command("list")
def list_budgets(as_json: common.JsonFlag = False, database_url: common.DatabaseUrl = None) -> None:
    """List the budgets with what is spent, reserved and left; the same as `treadle budget`.

    \b
    Example:
      treadle budget list --json
    """
    _list(as_json, database_url)


@budget.command("set")
def set_budget(
    scope: Scope,
    usd: Annotated[str, typer.Argument(metavar="USD", help="The limit in dollars.")],
    period: Period = None,
    on_exhausted: Annotated[
        str | None,
        typer.Option("--on-exhausted", metavar="POLICY", help="ask (a person) or fail (tasks)."),
    ] = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Say what an agent, a DAG, a project, a type or all may spend, or change that.

    \b
    Examples:
      treadle budget set agent:coder-1 20 --period day --on-exhausted fail
      treadle budget set all 500 --period month
    """
    limit = _usd(usd)
    kind, key = _scope(scope)
    common.call_db(
        lambda db: db.budgets.set(kind, key, limit, period=period, on_exhausted=on_exhausted),
        database_url,
    )
    text = f"{scope} may spend {dollars(limit)}{f' each {period}' if period else ''}"
    output.print_done(text, as_json, name=scope, status="set", limit_usd=limit, period=period)


@budget.command()
def remove(
    scope: Scope,
    period: Period = None,
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Remove a budget; tasks that waited for it go on.

    \b
    Example:
      treadle budget remove agent:coder-1 --period day
    """
    kind, key = _scope(scope)
    common.call_db(lambda db: db.budgets.remove(kind, key, period=period), database_url)
    text = f"the budget of {scope} is removed"
    output.print_done(text, as_json, name=scope, status="removed", period=period)


@budget.command()
def spend(
    days: Annotated[int, typer.Option(min=1, max=3650, help="So many, today included.")] = 7,
    by: By = "agent",
    as_json: common.JsonFlag = False,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Show what was spent in the last days, by agent, model, type, project or day (UTC).

    \b
    Example:
      treadle budget spend --days 30 --by model --json
    """
    from treadle.db.budgets import KINDS

    if by not in KINDS:
        raise InvalidArgument(f"cannot sum up by {by!r}", hint=f"Use one of: {', '.join(KINDS)}")

    async def work(app: Treadle) -> list[dict[str, Any]]:
        return await app.db.budgets.spending(by, days)

    columns = [
        Column(by, by),
        Column("usd", "usd", dollars, right=True),
        Column("calls", "calls", right=True),
        Column("input_tokens", "input_tokens", right=True),
        Column("output_tokens", "output_tokens", right=True),
    ]
    rows = common.call(work, database_url)
    output.show(rows, columns, as_json=as_json, empty=f"nothing was spent in {days} days")


def _name(row: Record) -> str:
    return "all" if row["scope"] == "all" else f"{row['scope']}:{row['name'] or row['key']}"


def _scope(text: str) -> tuple[str, str | None]:
    """What a text like agent:coder-1 means."""
    kind, _, key = text.partition(":")
    return kind, key or None


def _usd(text: str) -> Decimal:
    try:
        return Decimal(text.lstrip("$"))
    except InvalidOperation:
        raise InvalidArgument(f"{text!r} is no amount of dollars", argument="usd") from None
