"""One task on a terminal: its state, the reasons for it, and its history."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from treadle.cli import output
from treadle.cli.artifacts import size
from treadle.cli.output import Column, Record
from treadle.cli.waits import wait_summary
from treadle.fields import detail_fields
from treadle.models import described as described_report

WAITING, RUNNING, BACKOFF = "░", "█", "·"
WIDTH = 32
MAX_ERROR_LINES = 40

ATTEMPTS = [
    Column("attempt", "attempt", right=True),
    Column("outcome", "outcome", output.state),
    Column("agent", "agent_id"),
    Column("claimed", "claimed_at", output.ago, extra=True),
    Column("duration", "took", output.length, right=True),
    Column("cost", "cost_usd", output.cost, right=True),
    Column("failure_class", "class"),
    Column("model", "model", extra=True),
    Column("reason", "reason"),
]
_TASKS = [
    Column("id", "id", output.short),
    Column("name", "name"),
    Column("status", "status", output.state),
    Column("about", "about"),
]
PARTS = {
    "dependencies": _TASKS,
    "subtasks": _TASKS,
    "steps": [
        Column("kind", "kind"),
        Column("saved", "saved_at", output.ago),
        Column("duration", "run_s", output.length, right=True, extra=True),
        Column("cost", "cost_usd", output.cost, right=True),
        Column("name", "name"),
    ],
    "waits": [
        Column("id", "id", output.short),
        Column("status", "status", output.state),
        Column("answer", "answered"),
        Column("question", "asks"),
    ],
    "artifacts": [
        Column("id", "id", output.short),
        Column("status", "status"),
        Column("size", "bytes", size, right=True),
        Column("attempt", "attempt", right=True),
        Column("name", "name"),
    ],
}
# Printed after the fields, or in tables of their own.
_APART = {"spec", "output", "decision_report", "artifacts", "attempt_notes"}

# Reasons that need no attention are not yellow.
REASON_COLOURS = {
    "claimable": "green",
    "running": "blue",
    "claimed": "blue",
    "validating": "blue",
    "position": "cyan",
    "completed": "green",
    "cancelled": "bright_black",
    "dead_lettered": "magenta",
}


def print_reason(reason: Record) -> None:
    """Print one reason why a task is in its state."""
    mark = output.plain("● ", REASON_COLOURS.get(reason["reason"], "yellow"))
    output.console().print(mark, output.plain(reason["sentence"]), sep="")


def print_task(
    task: Record,
    attempts: Sequence[Record],
    reasons: Sequence[Record],
    parts: Mapping[str, Sequence[Record]] | None = None,
) -> None:
    """Print everything about a task; `parts` are its dependencies, steps, waits and so on."""
    terminal = output.console()
    title = output.plain(f"  {task['title'] or task['type']}", "bold")
    terminal.print(output.state(task["status"]), title, sep="")
    terminal.print(output.plain(timeline(task, attempts)))
    for each in reasons:
        print_reason(each)
    terminal.print()
    facts = []
    apart = _APART | ({"depends_on", "blocked_by"} if parts else set())
    for field in detail_fields():
        name, value = field.wire, task.get(field.wire)
        empty = value is None or value is False or value == [] or value == {}
        # A zero is worth a line only where lists show it too.
        if not (empty or name in apart or (value == 0 and not field.has("list"))):
            shown = (
                f"{output.moment(value)} ({output.ago(value)})"
                if isinstance(value, datetime)
                else output.line(value)
            )
            facts.append((name, shown))
    output.print_grid(facts)
    print_json("spec", task["spec"])
    if task.get("output") is not None:
        print_json("output", task["output"])
    if task.get("decision_report") is not None:
        terminal.print(output.plain("\ndecision report", "bright_black"))
        terminal.print(output.plain(described_report(task["decision_report"])))
    print_parts(parts or {})
    print_attempts(attempts)


def print_parts(parts: Mapping[str, Sequence[Record]]) -> None:
    """Print a table for each part that has rows."""
    terminal = output.console()
    spawned = {each["id"] for each in parts.get("subtasks", ())}
    for name, columns in PARTS.items():
        rows = parts.get(name, ())
        if name == "dependencies":
            # Subtasks are dependencies too, and have a table of their own.
            rows = [each for each in rows if each["id"] not in spawned]
        if rows:
            terminal.print()
            terminal.print(output.plain(name, "bright_black"))
            output.print_table([{**each, **_shown(name, each)} for each in rows], columns)


def _shown(part: str, row: Record) -> dict[str, Any]:
    """The values of a row that its table computes."""
    if part == "waits":
        return wait_summary(row)
    if part in ("artifacts", "steps"):
        return {}
    return {"about": row["title"] or row["type"]}


def print_attempts(attempts: Sequence[Record]) -> None:
    """Print the attempts, and the error of the last attempt that failed."""
    if not attempts:
        return
    terminal = output.console()
    terminal.print()
    known = any(each.get("model") for each in attempts)
    output.print_table(
        [{**each, "took": _duration(each)} for each in attempts],
        [column for column in ATTEMPTS if known or column.key != "model"],
    )
    failed = [each for each in attempts if each.get("error")]
    if failed:
        terminal.print()
        terminal.print(output.plain(f"error of attempt {failed[-1]['attempt']}", "bright_black"))
        lines = str(failed[-1]["error"]).rstrip().splitlines()
        if len(lines) > MAX_ERROR_LINES:
            lines = [f"… {len(lines) - MAX_ERROR_LINES} lines …", *lines[-MAX_ERROR_LINES:]]
        terminal.print(output.plain("\n".join(lines)))


def print_json(name: str, value: Any) -> None:
    """Print a JSON value below its name."""
    terminal = output.console()
    terminal.print()
    terminal.print(output.plain(name, "bright_black"))
    terminal.print(
        output.plain(json.dumps(value, default=output.jsonable, indent=2, ensure_ascii=False))
    )


def progress_text(progress: Any) -> str | None:
    """Progress in a few words: 50% step=upload."""
    if not isinstance(progress, dict):
        return None if progress is None else output.flat(progress)
    value, detail = progress.get("value"), {**progress}
    words = []
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        del detail["value"]
        words.append(f"{value:.0%}")
    words += [f"{name}={output.flat(each)}" for name, each in detail.items()]
    return " ".join(words)


def timeline(task: Record, attempts: Sequence[Record]) -> str:
    """The history of a task as a bar: waiting, running, backing off, and its end."""
    parts = [(mark, max(0.0, seconds)) for mark, seconds in _spans(task, attempts)]
    total = sum(seconds for _, seconds in parts) or 1.0
    bar = "".join(mark * max(1, round(seconds / total * WIDTH)) for mark, seconds in parts)
    ended = task["status"] in ("completed", "dead_lettered", "cancelled")
    return bar + (output.STATES[task["status"]][0] if ended else "")


def _spans(task: Record, attempts: Sequence[Record]) -> Iterator[tuple[str, float]]:
    now = datetime.now(tz=UTC)
    reached, waiting = task["created_at"], WAITING
    for attempt in attempts:
        if attempt["claimed_at"] is None:
            continue
        ended = attempt["ended_at"] or now
        yield waiting, (attempt["claimed_at"] - reached).total_seconds()
        yield RUNNING, (ended - attempt["claimed_at"]).total_seconds()
        reached, waiting = ended, BACKOFF
    if task["completed_at"] is None and not any(a["ended_at"] is None for a in attempts):
        yield waiting, (now - reached).total_seconds()


def _duration(attempt: Record) -> float | None:
    if attempt["started_at"] is None or attempt["ended_at"] is None:
        return None
    seconds: float = (attempt["ended_at"] - attempt["started_at"]).total_seconds()
    return seconds
