"""The cost of a claim from a difficult table, as a ratio to an easy one in the same run.

Every case has its own database. The claims of all cases take turns, so that a slow moment of the
machine affects all of them. After each claim its tasks are completed and replaced, without being
timed, so that the number of ready tasks stays the same.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import psycopg
from rich.table import Table

from bench.common import BenchError, Journal, Server, bench_server, notes, out, verdict
from bench.engine import Engine

READY = 1_000
LANES = 100
BATCH = 100
OTHERS = 990
MATCHING = 10
BEHIND_GATE = 100_000
WARM_UP = 20

NOT_MINE = """
    select count(*)
    from generate_series(1, %s) as lane (n)
    cross join lateral treadle.enqueue_batch(
      'default', %s, array['{}'::jsonb], jsonb_build_object('capabilities', array['c' || lane.n])
    )
"""
CLOSED = """
    insert into treadle.gates (key, closed_until, closed_at, closed_by)
    values ('type:gated', clock_timestamp() + interval '1 day', clock_timestamp(), 'bench')
"""


@dataclass
class Case:
    """A state of the table, and the maximum ratio of a claim in it."""

    name: str
    goal: float | None
    ready: int = READY
    finished: int = 0
    types: int = 1
    # Lanes with tasks that need a capability the agent does not have.
    others: int = 0
    # Tasks behind a closed gate.
    behind_gate: int = 0
    times: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.times)


def claims(*, million: int, repeats: int, hold_s: float) -> None:
    """Measure all cases in turns, then with a snapshot; print the ratios."""
    cases = [
        Case(f"{READY:,} ready", None),
        Case(f"{million:,} ready", 1.3, ready=million),
        Case(f"{READY:,} ready, {million:,} finished", 1.2, finished=million),
        Case(f"{READY:,} ready in {LANES} lanes", 3.0, types=LANES),
        Case(
            f"{READY:,} ready in {MATCHING} lanes of {OTHERS + MATCHING:,}",
            4.0,
            types=MATCHING,
            others=OTHERS,
        ),
        Case(f"{READY:,} ready, {BEHIND_GATE:,} behind a gate", 1.2, behind_gate=BEHIND_GATE),
    ]
    journal = Journal("claims")
    try:
        with bench_server() as server:
            journal.add(kind="run", **server.facts(), million=million, repeats=repeats)
            take_turns(server, cases, repeats=repeats)
            easy, held = hold_snapshot(server, hold_s=hold_s)
    except psycopg.Error as error:
        raise BenchError(f"claims: {error}") from error
    table = Table(title=f"cost of a claim of {BATCH}, median of {repeats}, without its commit")
    table.add_column("tasks")
    for head in ("ms", "ratio", "goal", ""):
        table.add_column(head, justify="right")
    pairs = [(case, cases[0].median) for case in cases] + [(easy, easy.median), (held, easy.median)]
    for case, base in pairs:
        ratio = case.median / base
        shown = ["", "", ""]
        if case.goal is not None:
            shown = [f"{ratio:.2f}x", f"{case.goal}x", verdict(ratio, case.goal)]
        table.add_row(case.name, f"{case.median * 1000:.2f}", *shown)
        times = [round(seconds * 1000, 3) for seconds in case.times]
        journal.add(kind="measurement", case=case.name, ratio=ratio, goal=case.goal, ms=times)
    out.print(table)
    notes.print(f"raw figures: {journal.path}")


def take_turns(server: Server, cases: list[Case], *, repeats: int) -> None:
    with ExitStack() as stack:
        loaded = [
            (case, stack.enter_context(load(server, case, number)))
            for number, case in enumerate(cases)
        ]
        for turn in range(WARM_UP + repeats):
            for case, engine in loaded:
                seconds = claim_and_replace(engine)
                if turn >= WARM_UP:
                    case.times.append(seconds)


@contextmanager
def load(server: Server, case: Case, number: int) -> Iterator[Engine]:
    notes.print(f"claims: loading {case.name}")
    with server.database(f"claims_{number}") as url:
        engine = Engine(url, [f"noop{index}" for index in range(case.types)])
        try:
            if case.finished:
                engine.enqueue(case.finished)
                engine.live(case.finished)
            engine.conn.execute(NOT_MINE, (case.others, engine.types[0]))
            if case.behind_gate:
                engine.conn.execute("select treadle.define_type('gated')")
                engine.conn.execute(CLOSED)
                engine.timed("call public.bench_enqueue(%s, 1000, '{gated}')", case.behind_gate)
            engine.enqueue(case.ready, batch=min(1_000, case.ready // case.types))
            engine.settle()
            yield engine
        finally:
            engine.close()


def claim_and_replace(engine: Engine) -> float:
    """Time one claim, then replace its tasks."""
    seconds, ids, token = engine.claim(BATCH)
    if len(ids) != BATCH:
        raise BenchError(f"a claim of {BATCH} returned {len(ids)} tasks")
    engine.complete(ids, token)
    engine.enqueue(BATCH, batch=max(1, BATCH // len(engine.types)))
    return seconds


def hold_snapshot(server: Server, *, hold_s: float) -> tuple[Case, Case]:
    """Measure claims before another session holds a snapshot, and at its end."""
    easy = Case("before a snapshot is held", None)
    held = Case(f"after one was held for {hold_s:.0f} s under load", 2.0)
    with load(server, easy, 9) as engine:
        for _ in range(WARM_UP):
            claim_and_replace(engine)
        easy.times = [claim_and_replace(engine) for _ in range(WARM_UP * 5)]
        with psycopg.connect(engine.url) as other:
            other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            other.execute("select count(*) from treadle.tasks")
            notes.print(f"claims: holding a snapshot for {hold_s:.0f} s under load")
            until = time.monotonic() + hold_s
            times = []
            while time.monotonic() < until:
                times.append(claim_and_replace(engine))
            held.times = times[-WARM_UP * 5 :]
            other.rollback()
    return easy, held
