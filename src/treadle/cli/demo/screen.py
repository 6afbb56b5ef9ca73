"""The output of `treadle demo`: events in lines, a live picture below them, tables at the end.

Without a terminal there is no animation, only lines.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from treadle.cli import output
from treadle.cli.demo.batch import Batch, recovered, retries, title_of
from treadle.db.calls import Record
from treadle.models import TERMINAL

LINE_EVERY_S = 2.0
SHOWN = ("ready", "pending", "claimed", "running", "retrying", "completed", "dead_lettered")
Attempts = Mapping[UUID, Sequence[Record]]


class Screen:
    """Prints the demo."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._animated = console.is_terminal and not console.is_dumb_terminal
        self._live: Live | None = None
        self._printed_at = 0.0
        self._started = time.monotonic()

    def title(self, text: str) -> None:
        """Print a heading."""
        self._console.print()
        if self._animated:
            self._console.print(Rule(f"[bold]{escape(text)}[/]", align="left", style="dim"))
        else:
            self._console.print(f"== {text}", markup=False)

    def event(self, mark: str, text: str, style: str = "") -> None:
        """Print an event with its time; `text` may have markup."""
        seconds = f"{time.monotonic() - self._started:5.1f}s"
        self.line(f"[dim]{seconds}[/] [{style or 'default'}]{mark}[/] {text}")

    def note(self, text: str) -> None:
        """Print a line without a time."""
        self.line(f"         {text}")

    def line(self, text: str) -> None:
        """Print text with markup, truncated to one line on a terminal."""
        cut = {"no_wrap": True, "overflow": "ellipsis"} if self._animated else {"soft_wrap": True}
        self._console.print(text, **cut)

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show the picture while the block runs."""
        if not self._animated:
            yield
            return
        with Live(console=self._console, refresh_per_second=12, transient=True) as self._live:
            yield
        self._live = None

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Show a spinner while the block runs."""
        if not self._animated:
            yield
            return
        with self._console.status(text):
            yield

    def picture(self, tasks: Mapping[UUID, Record], processes: Mapping[str, bool]) -> None:
        """Update the picture of processes and progress."""
        states = Counter(str(row["status"]) for row in tasks.values())
        ended = sum(states[status] for status in TERMINAL)
        if self._live is not None:
            self._live.update(_picture(tasks, processes, states, ended))
        elif not self._animated and time.monotonic() - self._printed_at >= LINE_EVERY_S:
            self._printed_at = time.monotonic()
            words = ", ".join(f"{states[name]} {name}" for name in SHOWN if states[name])
            self.event("…", f"{ended} of {len(tasks)} ended: {words}")

    def recovered(self, tasks: Mapping[UUID, Record], attempts: Attempts) -> None:
        """Print the tasks that lost their worker, with their attempts."""
        table = _table("type", "task", ">attempt", "worker", "outcome", "reason")
        for task_id, tried in attempts.items():
            if recovered(list(tried)):
                task = tasks[task_id]
                named = (output.plain(str(task["type"])), output.plain(title_of(task)))
                for number, attempt in enumerate(tried):
                    table.add_row(*(("", "") if number else named), *_cells(attempt))
        self._show(table)

    def history(self, task: Record, tried: Sequence[Record]) -> None:
        """Print the attempts of one task."""
        self.line(f"  {task['type']} [bold]{title_of(task)}[/] [dim]{task['id']}[/]")
        table = _table(">attempt", "worker", "outcome", "reason")
        for attempt in tried:
            table.add_row(*_cells(attempt))
        self._show(table)

    def summary(self, batch: Batch, tasks: Mapping[UUID, Record], attempts: Attempts) -> None:
        """Print the counts of each type."""
        table = _table("type", ">enqueued", ">completed", ">retries", ">recovered", ">dead letters")
        sums: Counter[str] = Counter()
        for kind in dict.fromkeys(str(row["type"]) for row in tasks.values()):
            ids = [task_id for task_id in batch.ids if tasks[task_id]["type"] == kind]
            counts = {
                "enqueued": len(ids),
                "completed": sum(tasks[each]["status"] == "completed" for each in ids),
                "retries": sum(retries(list(attempts[each])) for each in ids),
                "recovered": sum(recovered(list(attempts[each])) for each in ids),
                "dead": sum(tasks[each]["status"] == "dead_lettered" for each in ids),
            }
            sums.update(counts)
            table.add_row(kind, *(_count(value) for value in counts.values()))
        table.add_section()
        total = (f"[bold]{sums[name]}[/]" for name in ("enqueued", "completed", "retries"))
        rest = (f"[bold]{sums[name]}[/]" for name in ("recovered", "dead"))
        table.add_row("[bold]all[/]", *total, *rest)
        self._show(table)

    def commands(self, lines: Sequence[tuple[str, str]]) -> None:
        """Print commands to try, each with its purpose."""
        for purpose, command in lines:
            self._console.print(f"  [dim]# {escape(purpose)}[/]", soft_wrap=True)
            self._console.print(Text(f"  {command}", style="bold cyan"), soft_wrap=True)

    def _show(self, table: Table) -> None:
        self._console.print(Padding(table, (0, 0, 0, 2), expand=False))


def _picture(
    tasks: Mapping[UUID, Record],
    processes: Mapping[str, bool],
    states: Counter[str],
    ended: int,
) -> RenderableType:
    held = Counter(str(row["agent_id"]) for row in tasks.values() if row["agent_id"])
    line = Table.grid(padding=(0, 3, 0, 0))
    cells = []
    for name, alive in processes.items():
        mark = "[green]●[/]" if alive else "[red]✕[/]"
        busy = f" [blue]{'▮' * held[name]}[/]" if alive and held[name] else ""
        cells.append(f"{mark} {name}{'' if alive else ' [red]killed[/]'}{busy}")
    line.add_row(*cells)
    bar = Table.grid(padding=(0, 2, 0, 0))
    bar.add_row(
        ProgressBar(total=len(tasks), completed=ended, width=48),
        f"[bold]{ended}[/] of {len(tasks)}",
    )
    counts = Text("   ").join(
        Text(f"{output.STATES[name][0]} {name} {states[name]}", style=output.STATES[name][1])
        for name in SHOWN
        if states[name]
    )
    return Padding(Group(line, bar, counts), (1, 0, 0, 2))


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title in titles:
        right = title.startswith(">")
        table.add_column(
            title.removeprefix(">"),
            justify="right" if right else "left",
            overflow="ellipsis",
            no_wrap=title != "reason",
        )
    return table


def _cells(attempt: Record) -> tuple[RenderableType, ...]:
    return (
        str(attempt["attempt"]),
        str(attempt["agent_id"]),
        output.state(attempt["outcome"]),
        output.plain(_reason(attempt), "dim"),
    )


def _reason(attempt: Record) -> str:
    if attempt["reason"] == "heartbeat_timeout":
        return "no heartbeat for 3 s"
    if attempt["reason"] == "claim_expired":
        return "not started within 3 s"
    error: Any = attempt["error"]
    return str(error).strip().rpartition("\n")[2] if error else ""


def _count(value: int) -> str:
    return str(value) if value else "[dim]·[/]"
