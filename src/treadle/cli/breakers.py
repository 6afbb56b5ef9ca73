"""`treadle breakers`: circuit breakers, which stop types whose tasks keep failing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun
from treadle.cli.output import Column

if TYPE_CHECKING:
    from rich.text import Text

Type = Annotated[str, typer.Argument(metavar="TYPE", help="Task type.")]
# A closed breaker lets tasks start, as in an electric circuit; a closed gate does not.
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
    Column("next_probe", "probe_at", output.ago),
    Column("opened_by", "opened_by", extra=True),
    Column("last_failure", "last_failure_at", output.ago, extra=True),
    Column("last_error", "last_error"),
]

breakers = Noun(
    "breakers",
    """List circuit breakers; trip and reset them.

    \b
    Examples:
      treadle breakers
      treadle breakers reset deploy
    """,
)


@breakers.verb("list")
def list_breakers(
    everything: Annotated[
        bool, typer.Option("--all", help="Include closed breakers without failures.")
    ] = False,
) -> None:
    """List breakers that are open or count failures, with the time of the next probe.

    \b
    Example:
      treadle breakers list --all
    """
    rows = common.call_db(lambda db: db.breakers.list())
    shown = [row for row in rows if everything or row["state"] != "closed" or row["failures"]]
    output.show(shown, COLUMNS, empty="no breaker is open; see all: treadle breakers list --all")


@breakers.verb()
def trip(
    type: Type,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--for", metavar="SECONDS", help="Time until the first probe; default: of the type."
        ),
    ] = None,
    reason: common.Reason = None,
) -> None:
    """Open a breaker: no task of the type starts until a probe succeeds.

    \b
    Example:
      treadle breakers trip deploy --for 600 --reason "cluster maintenance"
    """
    probe_at = common.call_db(lambda db: db.breakers.trip(type, seconds, reason))
    text = (
        f"breaker {type} is open; the next probe is at {output.moment(probe_at)};"
        f" close it: treadle breakers reset {type}"
    )
    output.print_done(text, name=type, status="open", probe_at=probe_at)


@breakers.verb()
def reset(type: Type) -> None:
    """Close a breaker and set its failure count to zero.

    \b
    Example:
      treadle breakers reset deploy
    """
    was_open = common.call_db(lambda db: db.breakers.reset(type))
    text = f"breaker {type} {'is' if was_open else 'was already'} closed"
    output.print_done(text, name=type, status="closed", changed=was_open)
