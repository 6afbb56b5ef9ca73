"""`treadle budgets`: spending limits, and what was spent."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun
from treadle.cli.output import Column, Record
from treadle.errors import InvalidArgument

if TYPE_CHECKING:
    from rich.text import Text

BAR_WIDTH = 12
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
    typer.Option(metavar="PERIOD", help="hour, day, week or month in UTC; default: no period."),
]


def dollars(value: Decimal | None) -> str:
    """Dollars and cents, with more digits where the amount has them."""
    if value is None:
        return "-"
    cents = round(value, 2)
    return f"${cents:.2f}" if cents == value else f"${value.normalize():f}"


def usage_bar(row: Record) -> Text:
    """The spent and the reserved part of a budget as a coloured bar."""
    limit = float(row["limit_usd"])
    spent, reserved = float(row["spent_usd"]), float(row["reserved_usd"])
    full = round(BAR_WIDTH * min(1.0, spent / limit)) if limit else BAR_WIDTH
    held = round(BAR_WIDTH * min(1.0, (spent + reserved) / limit)) - full if limit else 0
    share = 1.0 if not limit else (spent + reserved) / limit
    colour = "red" if share >= 1 else "yellow" if share >= 0.8 else "green"
    percent = 100 if not limit else round(100 * spent / limit)
    free = BAR_WIDTH - full - held
    return output.plain(f"{'█' * full}{'▒' * held}{'░' * free} {percent:3}%", colour)


def waiting(row: Record) -> str:
    """How many tasks wait for the budget, and the command that answers its question."""
    parked, wait = row["parked_tasks"], row["open_wait"]
    words = f"{parked} task{'s' if parked != 1 else ''} waiting" if parked else ""
    command = f"treadle waits answer {output.short(wait)}" if wait else ""
    return ": ".join(each for each in (words, command) if each) or "-"


COLUMNS = [
    Column("scope", "scope_name"),
    Column("period", "period"),
    Column("used", "used", lambda row: usage_bar(row)),
    Column("spent", "spent_usd", dollars, right=True),
    Column("reserved", "reserved_usd", dollars, right=True, extra=True),
    Column("limit", "limit_usd", dollars, right=True),
    Column("left", "left_usd", dollars, right=True),
    Column("overrun", "overrun_usd", dollars, right=True, extra=True),
    Column("on_exhausted", "on_exhausted", extra=True),
    Column("waiting", "waiting"),
]

budgets = Noun(
    "budgets",
    """List budgets with what is spent and left; set and delete them.

    \b
    Examples:
      treadle budgets
      treadle budgets set agent:coder-1 20 --period day --on-exhausted fail
      treadle budgets costs --days 7 --group-by model
    """,
)


@budgets.verb("list")
def list_budgets() -> None:
    """List budgets with what is spent, reserved and left.

    \b
    Example:
      treadle budgets list --json
    """
    rows = common.call_db(lambda db: db.budgets.list())
    if not common.options.json:
        terminal = output.console().is_terminal
        rows = [
            {
                **row,
                "scope_name": _scope_name(row),
                "used": row if terminal else None,
                "waiting": waiting(row) if terminal else row["parked_tasks"],
            }
            for row in rows
        ]
    empty = "no budgets, so spending is not limited; create one: treadle budgets set --help"
    output.show(rows, COLUMNS, empty=empty)


@budgets.verb("set")
def set_budget(
    scope: Scope,
    usd: Annotated[str, typer.Argument(metavar="USD", help="Limit in dollars.")],
    period: Period = None,
    on_exhausted: Annotated[
        str | None,
        typer.Option(
            "--on-exhausted", metavar="POLICY", help="ask a person (the default), or fail tasks."
        ),
    ] = None,
) -> None:
    """Create the budget of an agent, DAG, project, type or of all, or change one.

    \b
    Examples:
      treadle budgets set agent:coder-1 20 --period day --on-exhausted fail
      treadle budgets set all 500 --period month
    """
    limit = _amount(usd)
    kind, key = _parse_scope(scope)
    common.call_db(
        lambda db: db.budgets.set(kind, key, limit, period=period, on_exhausted=on_exhausted)
    )
    text = f"{scope} may spend {dollars(limit)}{f' per {period}' if period else ''}"
    output.print_done(text, name=scope, status="set", limit_usd=limit, period=period)


@budgets.verb("delete")
def delete_budget(scope: Scope, period: Period = None, yes: common.Yes = False) -> None:
    """Delete a budget; tasks that waited for it continue.

    \b
    Example:
      treadle budgets delete agent:coder-1 --period day --yes
    """
    common.confirm(f"delete budget {scope}{f' per {period}' if period else ''}", yes=yes)
    kind, key = _parse_scope(scope)
    common.call_db(lambda db: db.budgets.remove(kind, key, period=period))
    output.print_done(f"budget {scope} is deleted", name=scope, status="deleted", period=period)


@budgets.verb()
def costs(
    days: Annotated[
        int, typer.Option(metavar="N", min=1, max=3650, help="Number of days, including today.")
    ] = 7,
    group_by: Annotated[
        str, typer.Option(metavar="FIELD", help="agent, model, type, project or day.")
    ] = "agent",
) -> None:
    """List what was spent in the last days by agent, model, type, project or day (UTC).

    \b
    Example:
      treadle budgets costs --days 30 --group-by model --json
    """
    from treadle.db.budgets import KINDS

    if group_by not in KINDS:
        raise InvalidArgument(
            f"costs cannot be grouped by {group_by!r}", hint=f"Use one of: {', '.join(KINDS)}"
        )
    columns = [
        Column(group_by, group_by),
        Column("usd", "usd", dollars, right=True),
        Column("calls", "calls", right=True),
        Column("input_tokens", "input_tokens", right=True),
        Column("output_tokens", "output_tokens", right=True),
    ]
    rows = common.call_db(lambda db: db.budgets.spending(group_by, days))
    output.show(rows, columns, empty=f"nothing was spent in the last {days} days")


def _scope_name(row: Record) -> str:
    return "all" if row["scope"] == "all" else f"{row['scope']}:{row['name'] or row['key']}"


def _parse_scope(text: str) -> tuple[str, str | None]:
    """The kind and the key of a scope such as agent:coder-1."""
    kind, _, key = text.partition(":")
    return kind, key or None


def _amount(text: str) -> Decimal:
    try:
        return Decimal(text.lstrip("$"))
    except InvalidOperation:
        raise InvalidArgument(f"{text!r} is not an amount in dollars", argument="usd") from None
