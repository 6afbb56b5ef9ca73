"""The time from an enqueue call to the start of its handler, on an otherwise idle worker."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.table import Table

from bench.common import (
    OWN,
    BenchError,
    Journal,
    Server,
    bench_server,
    notes,
    percentile,
    show,
    verdict,
)
from bench.runner import ask, serving

WARM_UP = 10
PAUSE_S = 0.05
GRACE_S = 2.0
P50_GOAL_MS = 5.0
P99_GOAL_MS = 20.0


def latency(peers: Sequence[str], *, samples: int) -> None:
    """Measure treadle and the peers one after the other; print the percentiles."""
    journal = Journal("latency")
    problems: dict[str, str] = {}
    table = Table(title=f"enqueue to handler start, idle worker, {samples} jobs, ms")
    table.add_column("system")
    for head in ("p50", "p90", "p99", "highest", "goal: p50 < 5, p99 < 20"):
        table.add_column(head, justify="right")
    with bench_server() as server:
        journal.add(kind="run", **server.facts(), samples=samples)
        for name in (OWN, *peers):
            notes.print(f"latency: {name}")
            try:
                waits = measure(server, name, samples=samples)
            except BenchError as error:
                problems[name] = str(error)
                continue
            journal.add(kind="measurement", system=name, waits_ms=[round(w, 3) for w in waits])
            p50, p99 = percentile(waits, 50), percentile(waits, 99)
            figures = [p50, percentile(waits, 90), p99, max(waits)]
            both = max(p50 / P50_GOAL_MS, p99 / P99_GOAL_MS)
            goal = verdict(both, 1) if name == OWN else ""
            table.add_row(name, *(f"{figure:.2f}" for figure in figures), goal)
    show(table, problems, journal)


def measure(server: Server, name: str, *, samples: int) -> list[float]:
    """The waits in milliseconds, in order of sending."""
    n = samples + WARM_UP
    with server.database(name) as url:
        ask(name, "enqueue", url=url, n=0)
        with serving(name, url=url) as worker:
            sent = ask(name, "produce", url=url, n=n, pause_s=PAUSE_S)["sent"]
            time.sleep(GRACE_S)
            starts = dict(worker.stop()["starts"])
    missing = [number for number, _ in sent if number not in starts]
    if missing:
        raise BenchError(f"{name}: {len(missing)} of {n} jobs had not started at the end")
    return [(starts[number] - moment) * 1000 for number, moment in sent[WARM_UP:]]
