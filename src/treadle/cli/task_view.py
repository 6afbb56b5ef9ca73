"""One task for a person: where it is, why, and what happened to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from treadle.cli import output
from treadle.cli.artifacts import size
from treadle.cli.output import Column, Record
from treadle.cli.waits import wait_summary
from treadle.cli.why import print_reason
from treadle.reports import described as described_report

WAITING, RUNNING, BACKOFF = "░", "█", "·"
WIDTH = 32
MAX_ERROR_LINES = 40

ATTEMPTS = [
    Column("attempt", "attempt", right=True),
    Column("outcome", "outcome", output.state),
    Column("agent", "agent_id"),
    Column("claimed", "claimed_at", output.ago, extra=True),
    Column("took", "took", output.length, right=True),
    Column("cost", "cost", right=True),
    Column("model", "model", extra=True),
    Column("class", "class"),
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
        Column("took", "run_s", output.length, right=True, extra=True),
        Column("cost", "cost", right=True),
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
_FIELDS = [
    "id", "queue", "type", "name", "title", "status", "priority", "effective_priority", "attempt",
    "max_attempts", "poison_pill", "models", "agent_id", "progress", "tags", "capabilities",
    "assigned_agent", "idempotency_key", "consumer", "created_by", "source", "parent_id",
    "forked_from", "dag_id",
    "depends_on", "timeout_s", "deadline_at", "run_at", "retry_at", "lease_until", "created_at",
    "claimed_at", "started_at", "completed_at", "cost_usd", "notes",
]  # fmt: skip


def print_task(
    task: Record,
    attempts: Sequence[Record],
    reasons: Sequence[Record],
    parts: Mapping[str, Sequence[Record]] | None = None,
) -> None:
    """Everything about a task, on a terminal; `parts` are what belongs to it."""
    from rich.table import Table

    terminal = output.console()
    title = output.plain(f"  {task['title'] or task['type']}", "bold")
    terminal.print(output.state(task["status"]), title, sep="")
    terminal.print(output.plain(timeline(task, attempts)))
    for each in reasons:
        print_reason(each)
    terminal.print()
    grid = Table.grid(padding=(0, 2))
    for name in _FIELDS:
        value = task.get(name)
        if (
            value is not None
            and value is not False
            and value != []
            and not (parts and name == "depends_on")
        ):
            shown = (
                f"{output.moment(value)} ({output.ago(value)})"
                if isinstance(value, datetime)
                else output.line(value)
            )
            grid.add_row(output.plain(name, "bright_black"), output.plain(shown))
    terminal.print(grid)
    print_json("spec", task["spec"])
    if task.get("output") is not None:
        print_json("output", task["output"])
    if task.get("decision_report") is not None:
        terminal.print(output.plain("\ndecision report", "bright_black"))
        terminal.print(output.plain(described_report(task["decision_report"])))
    print_parts(parts or {})
    print_attempts(attempts)


def print_parts(parts: Mapping[str, Sequence[Record]]) -> None:
    """What a task depends on, its subtasks, steps and waits: a table for each that there is."""
    terminal = output.console()
    spawned = {each["id"] for each in parts.get("subtasks", ())}
    for name, columns in PARTS.items():
        rows = parts.get(name, ())
        if name == "dependencies":
            # It waits for subtasks too, and they have a table of their own.
            rows = [each for each in rows if each["id"] not in spawned]
        if rows:
            terminal.print()
            terminal.print(output.plain(name, "bright_black"))
            output.print_table([{**each, **_shown(name, each)} for each in rows], columns)


def _shown(part: str, row: Record) -> dict[str, Any]:
    """What a row of a part says in its table besides its columns."""
    if part == "waits":
        return wait_summary(row)
    if part == "artifacts":
        return {}
    if part == "steps":
        return {"cost": dollars(row["cost_usd"])}
    return {"about": row["title"] or row["type"]}


def print_attempts(attempts: Sequence[Record]) -> None:
    """The attempts as a table, then the error of the last that has one."""
    if not attempts:
        return
    terminal = output.console()
    terminal.print()
    known = any(each.get("model") for each in attempts)
    output.print_table(
        [{**each, "took": _took(each), "cost": dollars(each["cost_usd"])} for each in attempts],
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
    """A JSON value under its name."""
    terminal = output.console()
    terminal.print()
    terminal.print(output.plain(name, "bright_black"))
    terminal.print(
        output.plain(json.dumps(value, default=output.jsonable, indent=2, ensure_ascii=False))
    )


def dollars(value: float | None) -> str | None:
    """A cost; nothing where there is none."""
    return f"${value:.4f}" if value else None


def last_line(text: str | None) -> str | None:
    """What a traceback says in its last line."""
    lines = (text or "").strip().splitlines()
    return lines[-1] if lines else None


def timeline(task: Record, attempts: Sequence[Record]) -> str:
    """The life of a task as a bar: waiting, running, backing off, and how it ended."""
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


def _took(attempt: Record) -> float | None:
    began = attempt["started_at"] or attempt["claimed_at"]
    if began is None or attempt["ended_at"] is None:
        return None
    seconds: float = (attempt["ended_at"] - began).total_seconds()
    return seconds
