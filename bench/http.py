"""Compare treadle's server with a bare one: FastAPI with one `select 1` for each request.

Writes of treadle are durable and wait for the disk. So they are compared with a bare server that
inserts one row, and also without fsync, which shows the cost of the servers themselves.

Both run in their own processes on the same PostgreSQL, with the same server settings and pools of
the same size. One load generator measures them in turns, and every second round is in reverse
order. The result is the median of the ratios of requests per second within each round.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from bench.common import (
    ROOT,
    BenchError,
    Journal,
    Sample,
    Server,
    bench_server,
    notes,
    show,
)
from bench.engine import AGENT, Engine
from bench.runner import last_line
from bench.servers import Place, started, treadle_server

GOAL = 0.5
BARE = "bare: select 1"
BARE_WRITE = "bare: insert"
# Above this CPU usage, the load generator itself may be the limit.
BUSY = 0.85


@dataclass(frozen=True)
class Scenario:
    """A kind of load."""

    name: str
    flow: str
    limit: int = 1
    # Whether each connection has its own agent.
    fleet: bool = False
    # Tasks to enqueue before the measurement, per second of it.
    needs_per_s: int = 0

    @property
    def is_bare(self) -> bool:
        return self.name in (BARE, BARE_WRITE)


SCENARIOS = [
    Scenario(BARE, "look"),
    Scenario(BARE_WRITE, "keep"),
    Scenario("POST /v1/tasks", "enqueue"),
    Scenario("claim 1 + complete", "work", needs_per_s=2_000),
    Scenario("the same, a fleet", "work", fleet=True, needs_per_s=2_000),
    Scenario("claim 50 + complete 50", "batches", limit=50, needs_per_s=40_000),
]
WITH_GOAL = {each.name for each in SCENARIOS if not each.is_bare and each.limit == 1}


@dataclass
class Row:
    """The figures of a scenario, one of each per round."""

    requests: Sample = field(default_factory=Sample)
    tasks: Sample = field(default_factory=Sample)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    generator: list[float] = field(default_factory=list)


def http(*, connections: int, pool: int, fsync: bool, seconds: float, rounds: int) -> None:
    """Measure, print and store the results."""
    journal = Journal("http")
    rows = {scenario.name: Row() for scenario in SCENARIOS}
    with bench_server() as server, ExitStack() as stack:
        if not fsync:
            stack.enter_context(without_fsync(server))
        facts = server.facts()
        sizes = {"connections": connections, "pool": pool, "rounds": rounds}
        journal.add(kind="run", **facts, **sizes, seconds=seconds)
        ceiling = generator_ceiling(connections=connections, seconds=seconds)
        journal.add(kind="generator", **ceiling)
        url = stack.enter_context(server.database("http"))
        engine = Engine(url)
        stack.callback(engine.close)
        bare = stack.enter_context(started(sys.executable, "-m", "bench.bare", url, str(pool)))
        own = stack.enter_context(treadle_server(url, engine, pool=pool))
        for agent in fleet(connections):
            engine.conn.execute("select treadle.register_agent(%s)", (agent,))
        memory = [own.resident_mb()]
        for number in range(rounds):
            order = SCENARIOS if number % 2 == 0 else SCENARIOS[::-1]
            for scenario in order:
                notes.print(f"round {number + 1} of {rounds}: {scenario.name}")
                prepare(server, engine, scenario, seconds=seconds)
                place = bare if scenario.is_bare else own
                found = measure(place, scenario, connections=connections, seconds=seconds)
                journal.add(kind="measurement", scenario=scenario.name, round=number, **found)
                add(rows[scenario.name], found)
            memory.append(own.resident_mb())
        journal.add(kind="memory", resident_mb=memory)
    print_all(rows, {**facts, **sizes, "ceiling": ceiling["requests_per_s"]}, memory, journal)


def fleet(size: int) -> list[str]:
    """Return the names of a number of agents."""
    return [f"{AGENT}-{number}" for number in range(size)]


@contextmanager
def without_fsync(server: Server) -> Iterator[None]:
    """Turn off fsync; for measurements only."""
    reload = "select pg_reload_conf(), pg_sleep(0.5)"
    with server.connect() as conn:
        conn.execute("alter system set fsync = off")
        conn.execute(reload)
        try:
            yield
        finally:
            conn.execute("alter system reset fsync")
            conn.execute(reload)


def prepare(server: Server, engine: Engine, scenario: Scenario, *, seconds: float) -> None:
    """Empty the table and enqueue the tasks that the scenario needs."""
    engine.conn.execute("truncate treadle.tasks cascade")
    if scenario.needs_per_s:
        engine.enqueue(int(scenario.needs_per_s * (seconds + 1)))
    engine.settle()
    server.settle()


def measure(
    place: Place, scenario: Scenario, *, connections: int, seconds: float
) -> dict[str, Any]:
    """Measure one scenario once."""
    before = place.cpu_s()
    found = load(
        url=place.url, token=place.token, flow=scenario.flow, limit=scenario.limit,
        agents=fleet(connections) if scenario.fleet else [AGENT],
        connections=connections, seconds=seconds,
    )  # fmt: skip
    # CPU time does not depend on other load of the machine.
    found["cpu_ms"] = round(1000 * (place.cpu_s() - before) / max(found["answers"], 1), 3)
    bad = {status: n for status, n in found["statuses"].items() if not status.startswith("2")}
    if bad or not found["requests"]:
        raise BenchError(f"{scenario.name}: answers {found['statuses']}")
    if found["ended"]:
        raise BenchError(f"{scenario.name}: all tasks were done before the time was over")
    return found


def load(**order: Any) -> dict[str, Any]:
    """Run the load generator to its end."""
    words = [sys.executable, "-m", "bench.load"]
    env = {**os.environ, "BENCH": json.dumps(order)}
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    if not done.stdout.startswith("BENCH "):
        raise BenchError(f"the load generator: {last_line(done.stderr)}")
    answer: dict[str, Any] = json.loads(done.stdout.removeprefix("BENCH "))
    return answer


def generator_ceiling(*, connections: int, seconds: float) -> dict[str, Any]:
    """Measure how much the generator can send to a server that does nothing."""
    with started(sys.executable, "-m", "bench.bare", "raw") as raw:
        return load(url=raw.url, flow="look", connections=connections, seconds=min(seconds, 2))


def add(row: Row, found: dict[str, Any]) -> None:
    row.requests.values.append(found["requests_per_s"])
    row.tasks.values.append(found["tasks_per_s"])
    row.p50.append(found["p50_ms"])
    row.p99.append(found["p99_ms"])
    row.cpu_ms.append(found["cpu_ms"])
    row.generator.append(found["generator_cpu"])


def ratio(row: Row, other: Row) -> float:
    """Return the ratio of the requests of both servers, for each round."""
    pairs = zip(row.requests.values, other.requests.values, strict=True)
    return statistics.median(mine / theirs for mine, theirs in pairs)


def print_all(
    rows: dict[str, Row], facts: dict[str, Any], memory: list[float], journal: Journal
) -> None:
    table = Table(
        title=f"HTTP, {facts['connections']} connections, pools of {facts['pool']}, "
        f"{facts['rounds']} round(s)",
        caption=f"PostgreSQL {facts['server_version']}, fsync {facts['fsync']}, {facts['cpus']} "
        f"CPUs. CPU of the server for a request; of the generator as a share, alone it sends "
        f"{facts['ceiling']:,.0f} requests/s. Memory of the server at its start and after each "
        f"round, MB: {', '.join(map(str, memory))}",
        caption_justify="left",
    )
    heads = ["", "req/s", "tasks/s", "p50 ms", "p99 ms", "CPU ms", "gen.", "/insert", "/select"]
    for head in (*heads, f"goal {GOAL}"):
        table.add_column(head, justify="right" if head else "left", no_wrap=True)
    for name, row in rows.items():
        ratios = [ratio(row, rows[BARE_WRITE]), ratio(row, rows[BARE])]
        goal = "[green]reached[/]" if ratios[-1] >= GOAL else "[red]missed[/]"
        table.add_row(
            name,
            str(row.requests),
            str(row.tasks) if row.tasks.best else "",
            f"{statistics.median(row.p50):.1f}",
            f"{statistics.median(row.p99):.1f}",
            f"{statistics.median(row.cpu_ms):.2f}",
            f"{statistics.median(row.generator):.0%}",
            *("" if name in (BARE, BARE_WRITE) else f"{each:.2f}" for each in ratios),
            # A batch does the work of many requests; what counts there is tasks.
            "" if name not in WITH_GOAL else goal,
        )
    busy = {
        name: "the load generator was short of CPU; the figure is a lower bound"
        for name, row in rows.items()
        if max(row.generator) > BUSY
    }
    show(table, busy, journal)
