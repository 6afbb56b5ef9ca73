"""How results are printed: a table on a terminal, tab-separated text in a pipe, or JSON.

Results go to stdout. A terminal gets relative times, short ids and progress bars; a pipe gets full
times and ids.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import typer

from treadle.cli import common
from treadle.cli.common import note, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Record = Mapping[str, Any]

# The mark and the colour of each state, shown beside the word.
STATES = {
    "created": ("○", "bright_black"),
    "pending": ("◷", "bright_black"),
    "ready": ("●", "cyan"),
    "claimed": ("▷", "blue"),
    "running": ("▶", "blue"),
    "validating": ("▣", "blue"),
    "blocked": ("◌", "bright_black"),
    "retrying": ("↻", "yellow"),
    "completed": ("✓", "green"),
    "dead_lettered": ("†", "magenta"),
    "cancelled": ("⊘", "bright_black"),
}
# The same for the outcomes of attempts, and for waits, agents, queues, checks and migrations.
MARKS = {
    **STATES,
    "failed": ("✕", "red"),
    "rate_limited": ("↻", "yellow"),
    "released": ("○", "bright_black"),
    "suspended": ("◌", "bright_black"),
    "answered": ("✓", "green"),
    "expired": ("✕", "red"),
    "active": ("●", "green"),
    "draining": ("◌", "yellow"),
    "offline": ("○", "bright_black"),
    "paused": ("⏸", "yellow"),
    "open": ("●", "green"),
    "closed": ("✕", "yellow"),
    "breaker open": ("✕", "red"),
    "breaker half-open": ("◌", "yellow"),
    "ok": ("✓", "green"),
    "warn": ("!", "yellow"),
    "fail": ("✕", "red"),
    "applied": ("✓", "green"),
    "changed": ("✕", "red"),
    "unknown": ("✕", "red"),
}
# The last column may be truncated to this width.
MIN_LAST_WIDTH = 24
_C1 = re.compile("[\x7f-\x9f]")


@dataclass(frozen=True)
class Column:
    """A column of a table; a narrow terminal drops `extra` columns."""

    title: str
    key: str
    format: Callable[[Any], str | Text] = lambda value: line(value)
    right: bool = False
    extra: bool = False


def show(rows: Sequence[Record], columns: Sequence[Column], *, empty: str | None = None) -> None:
    """Print a list; `empty` is the message on stderr where there are no rows."""
    if common.options.json:
        document({"items": rows})
    elif not console().is_terminal:
        separated([column.title for column in columns])
        for row in rows:
            separated(row.get(column.key) for column in columns)
    elif rows:
        print_table(rows, columns)
    if not rows and empty and not common.options.json:
        note(empty)


def print_table(rows: Sequence[Record], columns: Sequence[Column]) -> None:
    """A table for a terminal; a narrow one drops extra columns, then truncates the last."""
    from rich.table import Table
    from rich.text import Text

    cells = {}
    for column in columns:
        shown = [column.format(row.get(column.key)) for row in rows]
        cells[column] = [each if isinstance(each, Text) else plain(each) for each in shown]
    kept = _fit_columns(cells, console().width)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column, width in kept.items():
        table.add_column(
            column.title.upper(),
            justify="right" if column.right else "left",
            overflow="ellipsis",
            no_wrap=True,
            min_width=width,
            max_width=width,
        )
    for number in range(len(rows)):
        table.add_row(*(cells[column][number] for column in kept))
    console().print(table)


def _fit_columns(cells: Mapping[Column, Sequence[Text]], room: int) -> dict[Column, int]:
    """The columns that fit, with their widths."""
    widths = {
        column: max(len(column.title), *(each.cell_len for each in shown))
        for column, shown in cells.items()
    }
    for column in [None, *(each for each in reversed(list(widths)) if each.extra)]:
        if column is not None:
            del widths[column]
        last = list(widths)[-1]
        left = room - sum(width + 2 for each, width in widths.items() if each is not last)
        if left >= min(widths[last], MIN_LAST_WIDTH):
            break
    widths[last] = max(1, min(widths[last], left))
    return widths


def print_record(record: Record) -> None:
    """One record: names and values, or a JSON document."""
    if common.options.json:
        document(record)
    elif console().is_terminal:
        print_grid((name, flat(value)) for name, value in record.items() if value is not None)
    else:
        for name, value in record.items():
            separated([name, value])


def print_grid(pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values in two columns, for a terminal."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for name, value in pairs:
        grid.add_row(plain(name, "bright_black"), plain(value))
    console().print(grid)


def print_ids(rows: Sequence[Record], key: str = "id") -> None:
    """One id per line, for another command to read."""
    for row in rows:
        typer.echo(row[key])


def print_new(new: object, text: str, /, **facts: object) -> None:
    """The id of what was created: alone in a pipe, followed by `text` on a terminal."""
    if common.options.json:
        document(facts)
    elif console().is_terminal:
        console().print(plain(f"{new}  {text}"))
    else:
        typer.echo(new)


def separated(values: Iterable[Any]) -> None:
    """One line of tab-separated text."""
    typer.echo("\t".join(flat(value) for value in values))


def document(value: object) -> None:
    """One JSON document: times in RFC 3339 and UTC, ids and keys as text, durations in seconds."""
    ascii_only = "utf" not in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    text = json.dumps(value, default=jsonable, indent=2, ensure_ascii=ascii_only)
    typer.echo(_C1.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def jsonable(value: object) -> Any:
    """The JSON form of a value that JSON has no type for."""
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, timedelta):
        return round(value.total_seconds(), 3)
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, UUID | Path):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def moment(value: datetime) -> str:
    """RFC 3339 in UTC."""
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def flat(value: object) -> str:
    """A value on one line, in full: nested values as JSON, None as an empty string."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = ", ".join(value)
    elif isinstance(value, dict | list):
        value = json.dumps(value, default=jsonable, ensure_ascii=False)
    elif not isinstance(value, str):
        simple = value if isinstance(value, int | float) else jsonable(value)
        value = str(simple)
    return printable(value).replace("\t", "\\t").replace("\n", "\\n")


def line(value: object) -> str:
    """A value on one line, with a dash for None."""
    return flat(value) or "-"


def ago(value: datetime | None) -> str:
    """A time relative to now."""
    if value is None:
        return "-"
    seconds = (datetime.now(tz=UTC) - value).total_seconds()
    return f"{length(seconds)} ago" if seconds >= 0 else f"in {length(-seconds)}"


def length(value: float | timedelta | None) -> str:
    """A duration in one or two units."""
    if value is None:
        return "-"
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if seconds < 1:
        return f"{max(0.0, seconds) * 1000:.0f}ms"
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = int(seconds)
    for size, unit, smaller, word in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "m"),
        (60, "m", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size}{unit}" + (f" {rest}{word}" if rest else "")
    return f"{whole}s"


def cost(value: float | Decimal | None) -> str:
    """A cost in dollars; a dash for none."""
    return f"${value:.4f}" if value else "-"


def short(value: object) -> str:
    """The end of an id, enough to refer to it."""
    return f"…{str(value)[-8:]}" if value else "-"


def state(value: object) -> Text:
    """A state as mark, word and colour."""
    mark, colour = MARKS.get(str(value), ("·", ""))
    return plain(f"{mark} {value}", colour)


def plain(text: str, style: str = "") -> Text:
    """Text without markup and control characters."""
    from rich.text import Text

    return Text(printable(text), style=style)


def console() -> Console:
    """The terminal, or the pipe, behind stdout."""
    from rich.console import Console

    plain_console = Console(highlight=False, soft_wrap=False)
    # NO_COLOR: no escape codes at all, bold and dim included.
    return Console(highlight=False, color_system=None) if plain_console.no_color else plain_console


def print_done(text: str, /, **facts: object) -> None:
    """Print what was done: a sentence on stderr, or the facts as JSON on stdout."""
    if common.options.json:
        document(facts)
    else:
        note(text)


@contextmanager
def progress_bar(word: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show progress on stderr while the block runs; call the function with the count so far."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True, highlight=False)
    columns = (
        TextColumn(word),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
    )
    started = time.monotonic()
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with progress:
        line = progress.add_task("", total=total, speed="")

        def update(done: int) -> None:
            speed = f"{done / max(time.monotonic() - started, 0.001):,.0f}/s"
            progress.update(line, completed=done, total=max(total, done), speed=speed)

        yield update


def last_line(text: str | None) -> str | None:
    """The last line of a text, such as the message of a traceback."""
    lines = (text or "").strip().splitlines()
    return lines[-1] if lines else None
