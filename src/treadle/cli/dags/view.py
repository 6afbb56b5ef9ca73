"""One DAG on a terminal: its progress, a drawing of its tasks, and its problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from treadle.cli import output
from treadle.cli.dags import graph
from treadle.cli.output import Record

if TYPE_CHECKING:
    from rich.text import Text

DIM = "bright_black"
BAR = 20
SPACED_UP_TO, DRAWN_UP_TO = 15, 200
MIN_NAME_WIDTH = 8
MAX_PROBLEMS = 5
ASCII_MARKS = {
    "created": ".", "pending": ".", "ready": "o", "claimed": ">", "running": ">",
    "validating": ">", "blocked": "?", "retrying": "~", "completed": "x", "dead_lettered": "!",
    "cancelled": "-", "open": "o", "failed": "!",
}  # fmt: skip


class DagView:
    """Draws a DAG for a terminal of this width, in Unicode or ASCII."""

    def __init__(self, *, width: int, unicode: bool = True) -> None:
        self._width = width
        self._unicode = unicode

    def lines(self, dag: Record, tasks: Sequence[Record]) -> Iterator[Text]:
        """The lines of the whole view."""
        yield from self._head(dag)
        yield output.plain("")
        if len(tasks) > DRAWN_UP_TO:
            yield from self._levels(tasks)
        else:
            yield from self._drawn(tasks) or self._listed(tasks)
        yield from self._foot(dag, tasks)

    def bar(self, done: int, total: int, size: int = BAR) -> str:
        """A progress bar."""
        full = done * size // total if total else 0
        marks = "█░" if self._unicode else "#."
        return marks[0] * full + marks[1] * (size - full)

    def _head(self, dag: Record) -> Iterator[Text]:
        mark, colour = self._mark(dag["status"])
        state = output.plain(f"{mark} {dag['status']}", colour)
        yield self._truncate(_join(state, output.plain(f"  {output.flat(dag['name'])}", "bold")))
        parts = [f"{dag['completed']} of {dag['tasks']} completed"]
        parts += [
            f"{dag[state]} {state.replace('_', ' ')}"
            for state in ("running", "ready", "blocked", "pending", "dead_lettered", "cancelled")
            if dag[state]
        ]
        bar = output.plain(self.bar(dag["completed"], dag["tasks"]), self._mark("completed")[1])
        yield self._truncate(_join(bar, output.plain(f"  {', '.join(parts)}")))
        facts = [f"id {dag['id']}"]
        if dag["duration_s"] is not None:
            facts.append(output.length(dag["duration_s"]))
        if dag["cost_usd"] or dag["budget_usd"] is not None:
            limit = f" of {money(dag['budget_usd'])}" if dag["budget_usd"] is not None else ""
            facts.append(f"{money(dag['cost_usd'] or 0)}{limit}")
        if dag["open_waits"]:
            facts.append(f"{dag['open_waits']} open {_plural('wait', dag['open_waits'])}")
        yield self._truncate(output.plain((" · " if self._unicode else ", ").join(facts), DIM))

    def _drawn(self, tasks: Sequence[Record]) -> list[Text]:
        """The drawing with its columns; empty if it is too wide."""
        by_id = {str(task["id"]): task for task in tasks}
        edges = [
            graph.Edge(str(edge["id"]), str(task["id"]), bool(edge["optional"]))
            for task in tasks
            for edge in task["depends_on"] or []
        ]
        rows = graph.draw(list(by_id), edges, spaced=len(tasks) <= SPACED_UP_TO)
        columns = self._columns(tasks)
        room = self._width - sum(2 + width for width in columns.values())
        lines = max((len(row.text) for row in rows), default=0)
        if lines + 1 + MIN_NAME_WIDTH > room:
            return []
        names = {row: _name(by_id[row.node]) for row in rows if row.node is not None}
        widest = max((len(row.text) + 1 + _cells(name) for row, name in names.items()), default=0)
        first = min(room, max(widest, len("task")))
        shown = [self._titles(first, columns)]
        for row in rows:
            if row.node is None:
                shown.append(output.plain(self._lines(row.text), DIM))
            else:
                shown.append(self._row(row, by_id[row.node], first, columns))
        if any(edge.optional for edge in edges):
            note = f"{graph.DASHED_DOWN} {graph.DASHED_ACROSS} optional dependency"
            shown.append(output.plain(f"\n{self._lines(note)}", DIM))
        return shown

    def _listed(self, tasks: Sequence[Record]) -> Iterator[Text]:
        """The tasks by level, each with the names of its dependencies."""
        columns = self._columns(tasks)
        room = max(MIN_NAME_WIDTH, self._width - sum(2 + width for width in columns.values()))
        yield self._titles(room, columns)
        for number, level in enumerate(levels(tasks), start=1):
            yield output.plain(f"level {number}", DIM)
            for task in level:
                yield self._row(graph.Row("  ●", str(task["id"]), 2), task, room, columns)
                before = [output.flat(edge["name"] or "?") for edge in task["depends_on"] or []]
                if before:
                    more = f" and {len(before) - 3} more" if len(before) > 3 else ""
                    yield self._truncate(
                        output.plain(f"    after {', '.join(before[:3])}{more}", DIM), self._width
                    )

    def _levels(self, tasks: Sequence[Record]) -> Iterator[Text]:
        """The progress of each level, for DAGs with many tasks."""
        for number, level in enumerate(levels(tasks), start=1):
            states = Counter(str(task["status"]) for task in level)
            done = states.pop("completed", 0)
            bar = output.plain(self.bar(done, len(level), BAR // 2), self._mark("completed")[1])
            others = ", ".join(f"{count} {state}" for state, count in states.most_common())
            counts = output.plain(f"  {done} of {len(level)}" + (others and f", {others}"))
            yield self._truncate(_join(output.plain(f"level {number:<4} ", DIM), bar, counts))

    def _foot(self, dag: Record, tasks: Sequence[Record]) -> Iterator[Text]:
        """Problems of the DAG, and the commands that solve them."""
        known = {str(task["id"]) for task in tasks}
        problems = []
        for task in tasks:
            if task["status"] == "dead_lettered":
                reason = output.last_line(task["failure_reason"]) or "no reason given"
                problems.append(f"{_name(task)} is a dead letter: {reason}")
            elif task["status"] == "pending" and any(
                not edge["met"] and str(edge["id"]) not in known
                for edge in task["depends_on"] or []
            ):
                problems.append(f"{_name(task)} depends on a task outside this DAG")
        for problem in problems[:MAX_PROBLEMS]:
            mark, colour = self._mark("failed")
            gap = "\n" if problem is problems[0] else ""
            yield self._truncate(
                _join(output.plain(f"{gap}{mark} ", colour), output.plain(problem))
            )
        if len(problems) > MAX_PROBLEMS:
            yield output.plain(f"  and {len(problems) - MAX_PROBLEMS} more", DIM)
        if dag["status"] == "failed":
            yield output.plain(f"\nretry it: treadle dags retry {str(dag['id'])[-8:]}", DIM)
        if dag["open_waits"]:
            yield output.plain("\nanswer its questions: treadle waits", DIM)
        if dag["status"] == "open":
            yield output.plain(f"\nstart it: treadle dags start {str(dag['id'])[-8:]}", DIM)

    # Parts of a row

    def _columns(self, tasks: Sequence[Record]) -> dict[str, int]:
        """The columns that have values, with their widths."""
        found = {}
        for title in ("state", "waited", "ran", "cost"):
            words = [cell(task, title) for task in tasks]
            if any(words):
                found[title] = max(len(title), *map(len, words))
        return found

    def _titles(self, first: int, columns: dict[str, int]) -> Text:
        text = "task".ljust(first)
        for title, width in columns.items():
            text += "  " + (title.ljust(width) if title == "state" else title.rjust(width))
        return output.plain(text.rstrip(), "bold")

    def _row(self, row: graph.Row, task: Record, first: int, columns: dict[str, int]) -> Text:
        mark, colour = self._mark(task["status"])
        lines = self._lines(row.text)
        shown = _join(
            output.plain(lines[: row.mark], DIM),
            output.plain(mark, colour),
            output.plain(f"{lines[row.mark + 1 :]} ", DIM),
            output.plain(_name(task)),
        )
        shown = self._truncate(shown, first)
        shown.append(" " * (first - shown.cell_len))
        for title, width in columns.items():
            word = cell(task, title)
            aligned = word.ljust(width) if title == "state" else word.rjust(width)
            shown.append_text(output.plain(f"  {aligned}", colour if title == "state" else ""))
        shown.rstrip()
        return shown

    def _mark(self, status: object) -> tuple[str, str]:
        mark, colour = output.MARKS.get(str(status), ("·", ""))
        return (mark if self._unicode else ASCII_MARKS.get(str(status), "*")), colour

    def _lines(self, text: str) -> str:
        return text if self._unicode else text.translate(graph.ASCII)

    def _truncate(self, text: Text, width: int | None = None) -> Text:
        room = self._width if width is None else width
        if text.cell_len > room:
            text.truncate(room - 1)
            text.rstrip()
            text.append("…" if self._unicode else "~")
        return text


def view() -> DagView:
    """The view for stdout."""
    terminal = output.console()
    return DagView(width=terminal.width, unicode="utf" in (terminal.encoding or "").lower())


def progress(value: object) -> Text:
    """A count such as `3/5` as a bar."""
    done, total = map(int, str(value).split("/"))
    bar = output.plain(view().bar(done, total, 10), output.STATES["completed"][1])
    return _join(bar, output.plain(f" {value}"))


def dollars(value: Any) -> str:
    """A cost; a dash for none."""
    return money(value) if value else "-"


def levels(tasks: Sequence[Record]) -> list[list[Record]]:
    """Tasks by the length of their longest chain of dependencies."""
    depth: dict[str, int] = {}
    waiting = list(tasks)
    known = {str(task["id"]) for task in tasks}
    while waiting:
        later = []
        for task in waiting:
            before = [str(edge["id"]) for edge in task["depends_on"] or []]
            inside = [each for each in before if each in known]
            if all(each in depth for each in inside):
                depth[str(task["id"])] = 1 + max((depth[each] for each in inside), default=-1)
            else:
                later.append(task)
        if len(later) == len(waiting):
            break
        waiting = later
    found: list[list[Record]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for task in tasks:
        if str(task["id"]) in depth:
            found[depth[str(task["id"])]].append(task)
    return found


def cell(task: Record, title: str) -> str:
    """The value of a column for a task."""
    if title == "state":
        tries = f" {task['attempt']}/{task['max_attempts']}"
        again = task["attempt"] > 1 and task["status"] in ("ready", "running", "retrying")
        return str(task["status"]) + (tries if again else "")
    if title == "cost":
        return money(task["cost_usd"]) if task["cost_usd"] else ""
    if title == "ran":
        return "" if task["run_s"] is None else output.length(task["run_s"])
    # The wait of a task that was cancelled before it ran says nothing.
    cancelled = task["completed_at"] is not None and task["run_s"] is None
    return "" if cancelled else output.length(task["wait_s"])


def money(value: Any) -> str:
    """Dollars; amounts below a cent with more digits."""
    amount = float(value)
    return f"${amount:.2f}" if amount == 0 or amount >= 0.01 else f"${amount:.4f}"


def _name(task: Record) -> str:
    return output.flat(task["name"] or task["title"] or task["type"])


def _join(*parts: Text) -> Text:
    """Texts joined, each in its own colour."""
    joined = output.plain("")
    for part in parts:
        joined.append_text(part)
    return joined


def _cells(text: str) -> int:
    return output.plain(text).cell_len


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
