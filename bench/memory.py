"""The peak resident size of one busy worker process with 100 slots."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from bench.common import OWN, BenchError, Journal, analyze, bench_server, notes, show, verdict
from bench.runner import ask

SLOTS = 100
GOAL_MB = 120.0


def memory(peers: Sequence[str], *, n: int) -> None:
    """Let each system work through n jobs and read its peak from the operating system."""
    journal = Journal("memory")
    problems: dict[str, str] = {}
    table = Table(title=f"peak memory of a worker, {SLOTS} slots, {n:,} no-op jobs")
    table.add_column("system")
    table.add_column("MB", justify="right")
    table.add_column(f"goal: under {GOAL_MB:.0f}", justify="right")
    with bench_server() as server:
        journal.add(kind="run", **server.facts(), n=n)
        for name in (OWN, *peers):
            notes.print(f"memory: {name}")
            try:
                with server.database(name) as url:
                    ask(name, "enqueue", url=url, n=n, slots=SLOTS)
                    analyze(url)
                    peak = ask(name, "work", url=url, n=n, slots=SLOTS)["peak_mb"]
            except BenchError as error:
                problems[name] = str(error)
                continue
            journal.add(kind="measurement", system=name, peak_mb=peak)
            table.add_row(name, f"{peak:.0f}", verdict(peak, GOAL_MB) if name == OWN else "")
    show(table, problems, journal)
