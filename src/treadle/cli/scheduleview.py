"""A schedule for a person: in plain English, its next times on two clocks, its last runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import typer

from treadle.cli import out
from treadle.cli.out import Column, Record
from treadle.cron import Cron
from treadle.errors import InvalidArgument, MissingExtra

SHOWN = 5
RUNS = [
    Column("nominal", "nominal_at", lambda value: _minute(value)),
    Column("fired", "fired_at", out.ago),
    Column("status", "status"),
    Column("now", "now", lambda value: out.state(value) if value else "-"),
    Column("task", "task_id", out.short),
    Column("dag", "dag_id", out.short, extra=True),
    Column("error", "error"),
]
TIMES = [
    Column("local", "local"),
    Column("utc", "utc"),
    Column("when", "at", out.ago),
]


def words(cron: str) -> str:
    """What a line says; the line itself where it cannot be read."""
    try:
        return Cron(cron).explain()
    except (InvalidArgument, MissingExtra):
        return cron


def preview(cron: str, timezone: str, count: int, *, as_json: bool) -> None:
    """What a line means and when it comes."""
    calendar = Cron(cron, timezone)
    times = _times(calendar, calendar.next_times(datetime.now(tz=UTC), count))
    if as_json:
        out.document({"text": calendar.explain(), "timezone": timezone, "next_times": times})
        return
    typer.echo(f"{calendar.explain()}, {timezone}")
    out.show(times, TIMES, as_json=False)


def show(found: Record, runs: Sequence[Record], *, as_json: bool) -> None:
    """All about one schedule."""
    times = next_times(found)
    if as_json:
        out.document(
            {**found, "text": words(found["cron"]), "next_times": times, "runs": list(runs)}
        )
        return
    terminal = out.console().is_terminal
    for name, value in _facts(found):
        if terminal:
            typer.echo(f"{name:<12}{out.line(value)}")
        else:
            out.separated([name, value])
    if times:
        typer.echo()
        out.show(times, TIMES, as_json=False)
    typer.echo()
    out.show(runs, RUNS, as_json=False, empty="it has not run yet")


def next_times(found: Record) -> list[dict[str, Any]]:
    """Its next five times; what it is to make next is the first of them."""
    if found["state"] == "stopped":
        return []
    calendar = Cron(found["cron"], found["timezone"])
    first: datetime | None = found["next_at"] if found["state"] == "active" else None
    if first is None:
        return _times(calendar, calendar.next_times(datetime.now(tz=UTC), SHOWN))
    return _times(calendar, [first, *calendar.next_times(first, SHOWN - 1)])


def _times(calendar: Cron, times: Sequence[datetime]) -> list[dict[str, Any]]:
    zone = ZoneInfo(calendar.timezone)
    return [
        {
            "local": f"{time.astimezone(zone):%Y-%m-%d %H:%M %Z}",
            "utc": _minute(time),
            "at": time,
        }
        for time in times
    ]


def _minute(value: datetime | None) -> str:
    return "-" if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M}Z"


def _facts(found: Record) -> Iterator[tuple[str, Any]]:
    yield "schedule", found["name"]
    yield "state", found["state"]
    if found["paused_at"] is not None:
        why = found["paused_reason"] or "no reason given"
        yield "paused", f"{out.moment(found['paused_at'])} by {found['paused_by']}: {why}"
    yield "when", f"{words(found['cron'])}, {found['timezone']}"
    yield "cron", found["cron"]
    yield "makes", found["template"]
    yield "jitter", f"up to {found['jitter_s']} s" if found["jitter_s"] else "none"
    yield "catch-up", f"{found['catch_up']}, of what is {found['grace_s']} s late"
    yield "overlap", found["overlap"]
    yield "last", found["last_at"]
    yield "last status", found["last_status"]
    if found["last_error"]:
        yield "last error", found["last_error"]
    if found["last_task"]:
        yield "last task", found["last_queue_id"] or found["last_task"]
    if found["last_dag"]:
        yield "last DAG", found["last_dag"]
    yield "defined", f"{'in code' if found['in_code'] else 'by hand'}, by {found['created_by']}"
