"""The cost of DAGs with a thousand and ten thousand tasks: create, finish, and per task.

Creating is one call of create_dag. Finishing is claim, commit, complete, commit, 200 at a time, by
one session without handlers; in a chain only one task is ready at a time. Ten times the tasks
should cost ten times as much, and one completion the same in a DAG of any size.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg
from rich.table import Table

from bench.common import BenchError, Journal, Server, bench_server, notes, out, verdict
from bench.engine import Engine

Tasks = list[dict[str, Any]]

SLACK = 1.2
COMPLETION_GOAL = 1.5
FEW = 10
WIDTH = 100
PARENTS = 3
STANDALONE = 100
WARM_UP = 20

# complete_tasks without what it does for DAGs, to see what that costs a task without one.
PLAIN = "public.bench_complete"
EDGES = (
    "perform treadle.lock_with_dependents(p_ids);",
    "perform treadle.propagate_completed(\n"
    "    v_done.ids, v_done.dags, v_done.durable, v_done.counted, v_now\n  );",
)


def chain(n: int) -> Tasks:
    """Return a chain: each task depends on the previous one."""
    return [task(i, [i - 1] if i else []) for i in range(n)]


def fan_out(n: int) -> Tasks:
    """Return a fan: a root, n - 2 tasks that depend on it, and one that depends on all of those."""
    return [task(0, []), *(task(i, [0]) for i in range(1, n - 1)), task(n - 1, range(1, n - 1))]


def layered(n: int) -> Tasks:
    """Return layers of a hundred; each task depends on three random ones of the previous layer."""
    dice = random.Random(n)
    return [
        task(i, dice.sample(range(i - i % WIDTH - WIDTH, i - i % WIDTH), PARENTS))
        if i >= WIDTH
        else task(i, [])
        for i in range(n)
    ]


SHAPES: dict[str, Callable[[int], Tasks]] = {
    "chain": chain,
    "fan-out": fan_out,
    "layered": layered,
}


def task(i: int, after: Any) -> dict[str, Any]:
    return {"name": f"t{i}", "type": "noop", "after": [f"t{before}" for before in after]}


@dataclass
class Cost:
    """Measurements of the small and of the large DAG, taken in turns."""

    what: str
    goal: float | None
    small: list[float] = field(default_factory=list)
    large: list[float] = field(default_factory=list)

    @property
    def medians(self) -> tuple[float, float]:
        return statistics.median(self.small), statistics.median(self.large)

    @property
    def ratio(self) -> float:
        small, large = self.medians
        return large / small


def dags(*, sizes: tuple[int, int], rounds: int, repeats: int) -> None:
    """Measure all of it and print the ratios."""
    if not WIDTH < sizes[0] < sizes[1]:
        raise BenchError(f"--sizes: two numbers above {WIDTH}, the smaller first")
    journal = Journal("dags")
    try:
        with bench_server() as server:
            journal.add(kind="run", **server.facts(), sizes=sizes, rounds=rounds, repeats=repeats)
            lives = [cost for shape in SHAPES for cost in live(server, shape, sizes, rounds)]
            single = [complete(server, shape, sizes[1], repeats) for shape in ("chain", "fan-out")]
            alone = standalone(server, repeats)
    except psycopg.Error as error:
        raise BenchError(f"dags: {error}") from error
    small, large = sizes
    show(
        f"DAGs, median of {rounds} round(s)", lives, journal,
        heads=(f"{small:,} tasks, s", f"{large:,} tasks, s"), scale=1, digits=3,
    )  # fmt: skip
    show(
        f"one completion, median of {repeats}, without its commit", single, journal,
        heads=(f"DAG of {FEW}, µs", f"DAG of {large:,}, µs"), scale=1e6, digits=0,
    )  # fmt: skip
    show(
        f"completion of {STANDALONE} tasks without a DAG in one call, median of {repeats}",
        [alone], journal,
        heads=("edges left out, µs", "as it is, µs"), scale=1e6, digits=1,
    )  # fmt: skip
    notes.print(f"raw figures: {journal.path}")


def show(
    title: str, costs: list[Cost], journal: Journal, *, heads: tuple[str, str], scale: float,
    digits: int,
) -> None:  # fmt: skip
    table = Table(title=title)
    table.add_column("what")
    for head in (*heads, "ratio", "goal", ""):
        table.add_column(head, justify="right")
    for cost in costs:
        figures = [f"{seconds * scale:,.{digits}f}" for seconds in cost.medians]
        goal = [] if cost.goal is None else [f"{cost.goal:g}x", verdict(cost.ratio, cost.goal)]
        table.add_row(cost.what, *figures, f"{cost.ratio:.2f}x", *goal)
        times = {"small_s": cost.small, "large_s": cost.large}
        journal.add(kind="measurement", what=cost.what, ratio=cost.ratio, goal=cost.goal, **times)
    out.print(table)


def live(server: Server, shape: str, sizes: tuple[int, int], rounds: int) -> list[Cost]:
    """Create a DAG of each size and finish them, each in its own database.

    They take turns: a slice of the large one as big as a small one, then a small one. So a slow
    moment of the machine hits both.
    """
    small, large = sizes
    goal = SLACK * large / small
    making, finishing = Cost(f"make a {shape}", goal), Cost(f"finish a {shape}", goal)
    for number in range(rounds):
        notes.print(f"dags: {shape}, round {number + 1} of {rounds}")
        with ExitStack() as stack:
            few = stack.enter_context(warm_engine(server, "dags_small"))
            many = stack.enter_context(warm_engine(server, "dags_large"))
            made: list[float] = []
            lived: list[float] = []
            slices: list[float] = []
            making.large.append(create(many, SHAPES[shape](large)))
            for done in range(0, large, small):
                made.append(create(few, SHAPES[shape](small)))
                lived.append(few.live(small))
                slices.append(many.live(min(small, large - done)))
        making.small.append(statistics.median(made))
        finishing.small.append(statistics.mean(lived))
        finishing.large.append(sum(slices))
    return [making, finishing]


def complete(server: Server, shape: str, large: int, repeats: int) -> Cost:
    """Complete tasks one by one, in many small DAGs and in the middle of a large one, in turns."""
    notes.print(f"dags: single completions in a {shape}")
    cost = Cost(f"a task in a {shape}", COMPLETION_GOAL)
    with ExitStack() as stack:
        few = stack.enter_context(warm_engine(server, "dags_few"))
        many = stack.enter_context(warm_engine(server, "dags_many"))
        create(many, SHAPES[shape](large))
        many.live(large // 2)
        turns = min(repeats, large // 2 - 1)
        for turn in range(turns):
            if turn % FEW == 0:
                create(few, SHAPES[shape](FEW))
            cost.small.append(complete_one(few))
            cost.large.append(complete_one(many))
    return Cost(cost.what, cost.goal, cost.small[WARM_UP:], cost.large[WARM_UP:])


def standalone(server: Server, repeats: int) -> Cost:
    """Complete tasks without a DAG, with and without the DAG code of complete_tasks; per task."""
    notes.print("dags: completions without a DAG")
    cost = Cost("a task without a DAG", None)
    calls = (("treadle.complete_tasks", cost.large), (PLAIN, cost.small))
    with warm_engine(server, "dags_none") as engine:
        engine.conn.execute(without_edges(engine).encode())
        for turn in range(WARM_UP + repeats):
            for function, times in calls:
                engine.enqueue(STANDALONE)
                _, ids, token = engine.claim(STANDALONE)
                seconds = timed_complete(engine, ids, token, function)
                if turn >= WARM_UP:
                    times.append(seconds / STANDALONE)
    return cost


def without_edges(engine: Engine) -> str:
    query = "select pg_get_functiondef('treadle.complete_tasks'::regproc)"
    row = engine.conn.execute(query).fetchone()
    text = str(row and row[0]).replace("treadle.complete_tasks", PLAIN, 1)
    for part in (PLAIN, *EDGES):
        if part not in text:
            raise BenchError(f"complete_tasks has changed: no `{part}` in it")
    for part in EDGES:
        text = text.replace(part, "")
    return text


@contextmanager
def warm_engine(server: Server, name: str) -> Iterator[Engine]:
    """Open a session on a new database that has run a small DAG of each shape."""
    with server.database(name) as url:
        server.settle()
        engine = Engine(url)
        try:
            for shape in SHAPES.values():
                create(engine, shape(WIDTH + FEW))
                engine.live(WIDTH + FEW)
            yield engine
        finally:
            engine.close()


def create(engine: Engine, tasks: Tasks) -> float:
    """Create a DAG; return the seconds of the call with its commit."""
    return engine.timed(
        "select dag_id from treadle.create_dag(%s)", json.dumps({"name": "bench", "tasks": tasks})
    )


def complete_one(engine: Engine) -> float:
    _, ids, token = engine.claim(1)
    if not ids:
        raise BenchError("no task of the DAG was ready")
    return timed_complete(engine, ids, token, "treadle.complete_tasks")


def timed_complete(engine: Engine, ids: list[UUID], token: UUID, function: str) -> float:
    """Complete in a transaction and commit; return the seconds of the statement alone."""
    query = f"select count(*) from {function}(%s, %s)".encode()
    with engine.conn.transaction():
        started = time.perf_counter()
        engine.conn.execute(query, (ids, [token] * len(ids)))
        return time.perf_counter() - started
