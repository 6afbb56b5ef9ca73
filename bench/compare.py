"""Compare treadle with other queues: no-op jobs through one worker process, and bulk enqueue.

Every measurement has its own database. The systems take turns within a round, and every second
round is in reverse order, so that a slow minute of the machine affects all of them. Ratios are
calculated within a round; the result is their median.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from bench import lifecycle
from bench.common import OWN, BenchError, Journal, Sample, Server, analyze, bench_server, notes, out
from bench.install import catalogue, ensure_installed
from bench.runner import ask

DEFAULT_PEERS = "pgqueuer,procrastinate,pgmq"
CEILING = "in-server ceiling"


@dataclass
class Row:
    """The figures of one system; the keys of `process` are slots."""

    name: str
    version: str = ""
    problem: str = ""
    enqueue: Sample = field(default_factory=Sample)
    process: dict[int, Sample] = field(default_factory=dict)


def compare(
    peers: Sequence[str],
    *,
    n: int,
    slots: Sequence[int],
    rounds: int,
    style: str = "table",
) -> None:
    """Measure, print and store the results."""
    unknown = set(peers) - set(catalogue())
    if unknown:
        raise BenchError(f"no such peer: {', '.join(sorted(unknown))}; see bench/peers.txt")
    rows = {name: Row(name, process={s: Sample() for s in slots}) for name in (OWN, *peers)}
    for name in peers:
        try:
            ensure_installed(catalogue()[name])
        except BenchError as error:
            rows[name].problem = f"not installed: {error}"
    ceiling = Row(CEILING, process={s: Sample() for s in slots})
    journal = Journal("peers")
    with bench_server() as server:
        facts = {**server.facts(), "n": n, "rounds": rounds}
        journal.add(kind="run", **facts)
        for number in range(rounds):
            order = [row for row in rows.values() if not row.problem]
            for row in order if number % 2 == 0 else reversed(order):
                for count in slots:
                    notes.print(f"round {number + 1} of {rounds}: {row.name}, {count} slots")
                    measure(server, row, n=n, slots=count, journal=journal, number=number)
            measure_ceiling(server, ceiling, n=n, journal=journal, number=number)
    rows[CEILING] = ceiling
    show(rows, facts, style)
    notes.print(f"raw figures: {journal.path}")
    if rows[OWN].problem:
        raise BenchError("treadle itself could not be measured")


def measure(server: Server, row: Row, *, n: int, slots: int, journal: Journal, number: int) -> None:
    """One fresh database: install, enqueue, analyse, work."""
    if row.problem:
        return
    try:
        with server.database(row.name) as url:
            server.settle()
            sent = ask(row.name, "enqueue", url=url, n=n, slots=slots)
            analyze(url)
            done = ask(row.name, "work", url=url, n=n, slots=slots)
    except BenchError as error:
        row.problem = f"failed: {error}"
        journal.add(kind="problem", system=row.name, round=number, problem=row.problem)
        return
    row.version = sent["version"]
    row.enqueue.values.append(n / sent["enqueue_s"])
    row.process[slots].values.append(n / done["done_s"])
    journal.add(
        kind="measurement",
        system=row.name,
        round=number,
        slots=slots,
        n=n,
        **{**sent, **done},
        enqueue_per_s=round(n / sent["enqueue_s"], 1),
        process_per_s=round(n / done["done_s"], 1),
    )


def measure_ceiling(server: Server, row: Row, *, n: int, journal: Journal, number: int) -> None:
    """The same lifecycle inside the server; it has no slots, so one figure stands for all."""
    if row.problem:
        return
    try:
        rates = lifecycle.measure(server, n=n)
    except BenchError as error:
        row.problem = f"failed: {error}"
        return
    row.enqueue.values.append(rates["enqueue_per_s"])
    for sample in row.process.values():
        sample.values.append(rates["process_per_s"])
    journal.add(kind="measurement", system=row.name, round=number, n=n, **rates)


def ratio(own: Sample, other: Sample) -> float | None:
    """How many times the other treadle is; the other may have fewer values, after a failure."""
    if not own or not other:
        return None
    if len(own.values) == len(other.values):
        return statistics.median(a / b for a, b in zip(own.values, other.values, strict=True))
    return own.median / other.median


def show(rows: dict[str, Row], facts: dict[str, Any], style: str) -> None:
    """The table for a person, for the docs or for a program."""
    if style == "json":
        print(json.dumps({"run": facts, "rows": [as_dict(row) for row in rows.values()]}))
        return
    heads = ["system", "enqueue/s", "ratio"]
    for count in rows[OWN].process:
        heads += [f"process/s, {count} slots", "ratio"]
    lines = [cells(row, rows[OWN]) for row in rows.values()]
    problems = [f"{row.name} {row.problem}" for row in rows.values() if row.problem]
    about = (
        f"{facts['n']:,} no-op jobs, {facts['rounds']} round(s), PostgreSQL "
        f"{facts['server_version']}, fsync {facts['fsync']}, {facts['cpus']} CPUs, "
        f"{facts['at'][:10]}. Median, ± half the range; ratio: treadle is so many times faster."
    )
    if style == "markdown":
        print(f"{about}\n\n| {' | '.join(heads)} |\n|---|{'---:|' * (len(heads) - 1)}")
        print("\n".join(f"| {' | '.join(line)} |" for line in lines))
        print("".join(f"\n{problem}" for problem in problems))
        return
    table = Table(caption=about, caption_justify="left")
    for index, head in enumerate(heads):
        table.add_column(head, justify="left" if index == 0 else "right")
    for line in lines:
        table.add_row(*line)
    out.print(table)
    for problem in problems:
        out.print(problem, markup=False)


def cells(row: Row, own: Row) -> list[str]:
    pairs = [(own.enqueue, row.enqueue)]
    pairs += [(own.process[count], row.process[count]) for count in own.process]
    shown = [f"{row.name} {row.version}".strip()]
    for mine, theirs in pairs:
        value = None if row is own else ratio(mine, theirs)
        shown += [str(theirs), "" if value is None else f"{value:.2f}x"]
    return shown


def as_dict(row: Row) -> dict[str, Any]:
    return {
        "system": row.name,
        "version": row.version,
        "problem": row.problem or None,
        "enqueue_per_s": [round(value, 1) for value in row.enqueue.values],
        "process_per_s": {
            count: [round(value, 1) for value in sample.values]
            for count, sample in row.process.items()
        },
    }
