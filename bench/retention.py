"""A worker beside the pruner: the cost of a claim, and the throughput.

The table has a million finished tasks, a tenth of them with a failed attempt and a tenth with
steps. A real worker processes a backlog all the time. The pruner process is started and ended, so
that intervals with and without it alternate until all old tasks are pruned. (SIGSTOP would not
work: the pruner pauses in proportion to the duration of a step, and a stopped step takes long.)
Before that, the same is measured without the pruner, so without dead rows for vacuum.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from rich.table import Table

from bench.common import ROOT, BenchError, Journal, Sample, bench_server, notes, out, verdict
from bench.engine import Engine
from treadle import Treadle

GOAL = 1.2
BACKLOG = 100_000
# Intervals of a turn, each with a full backlog. A starting pruner first passes over deleted rows.
ALONE = 6
PRUNING = 24
PROBES = 100
PAUSE_S = 0.05

FILL = """
    with filled as (
      insert into treadle.tasks (
        type, spec, output, status, lane_id, rank, attempt, created_at, claimed_at, started_at,
        completed_at, completed_by, last_token
      )
      select
        'noop', jsonb_build_object('i', n.i), jsonb_build_object('pages', n.i), 'completed',
        lanes.id, n.i, 1, old.at, old.at, old.at, old.at + interval '1 s', 'bench',
        gen_random_uuid()
      from generate_series(1, %(count)s) as n (i)
      cross join (select id from treadle.lanes where type = 'noop' limit 1) as lanes
      cross join (select clock_timestamp() - interval '2 days' as at) as old
      returning id
    ),

    numbered as (select id, row_number() over () as i from filled),

    failed as (
      insert into treadle.attempts (
        task_id, claim_token, attempt, agent_id, claimed_at, outcome, class, error
      )
      select id, gen_random_uuid(), 1, 'bench', clock_timestamp(), 'failed', 'error', 'boom'
      from numbered where i %% 10 = 0
    )

    insert into treadle.steps (task_id, name, seq, output, attempt)
    select id, 'draft', 1, '{"text": "a draft"}', 1 from numbered where i %% 10 = 5
"""
SIZES = """
    select
      pg_relation_size('treadle.tasks'), pg_indexes_size('treadle.tasks'),
      pg_total_relation_size('treadle.task_history'),
      (select n_dead_tup from pg_stat_user_tables where relid = 'treadle.tasks'::regclass)
"""

app = Treadle()


@app.task()
async def noop(i: int) -> None:
    """The handler of the worker."""


@dataclass
class Part:
    """Measurements of one kind: tasks per second, and the times of claims."""

    name: str
    rates: list[float] = field(default_factory=list)
    claims: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return Sample(self.rates).median

    @property
    def claim_ms(self) -> float:
        return Sample(self.claims).median * 1000


def retention(*, million: int, moment_s: float, before: int) -> None:
    """Fill, measure alone, then in turns with the pruner; print the ratios."""
    journal = Journal("retention")
    parts = {name: Part(name) for name in ("before", "alone", "pruning")}
    try:
        with bench_server() as server, server.database("retention") as url:
            journal.add(kind="run", **server.facts(), million=million, load=os.getloadavg())
            engine = Engine(url)
            fill(engine, million)
            sizes = [engine.conn.execute(SIZES).fetchone()]
            with process(url, "worker", "bench.retention:app", "--slots", "100"):
                work(engine, Part("warm-up"), moment_s)
                for _ in range(before):
                    work(engine, parts["before"], moment_s)
                pruned_s = in_turns(engine, url, parts, moment_s)
            sizes.append(engine.conn.execute(SIZES).fetchone())
            engine.conn.execute("vacuum treadle.tasks")
            sizes.append(engine.conn.execute(SIZES).fetchone())
            archived = count(engine, "select count(*) from treadle.task_history")
            engine.close()
    except psycopg.Error as error:
        raise BenchError(f"retention: {error}") from error
    if archived != million:
        raise BenchError(f"{archived:,} of {million:,} tasks were archived")
    for part in parts.values():
        journal.add(kind="measurement", part=part.name, rates=part.rates, claims=part.claims)
    journal.add(kind="pruned", tasks=million, seconds=pruned_s, sizes=sizes)
    report(list(parts.values()), million / pruned_s, sizes)
    notes.print(f"raw figures: {journal.path}")


def fill(engine: Engine, million: int) -> None:
    notes.print(f"retention: filling in {million:,} finished tasks")
    engine.conn.execute("select treadle.define_queue('probe')")
    engine.conn.execute("""select treadle.define_queue('default', '{"keep_completed_s": 86400}')""")
    engine.enqueue(1)
    with engine.conn.transaction():
        # The rows have their lane, and no notification is sent for them.
        engine.conn.execute("set local session_replication_role = replica")
        for _ in range(0, million, 100_000):
            engine.conn.execute(FILL, {"count": min(million, 100_000)})
    engine.settle()
    top_up(engine)


def in_turns(engine: Engine, url: str, parts: dict[str, Part], moment_s: float) -> float:
    """Alternate with and without the pruner until nothing is left; return the seconds with it."""
    had = 0.0
    alone, pruning = parts["alone"], parts["pruning"]
    while count(engine, "select count(*) from (select from treadle.prunable_tasks limit 1)"):
        for _ in range(ALONE):
            work(engine, alone, moment_s)
        with process(url, "pruner"):
            # The start of the pruner is not measured.
            time.sleep(2)
            had += 2 + sum(work(engine, pruning, moment_s) for _ in range(PRUNING))
        left = count(engine, "select count(*) from treadle.prunable_tasks")
        beside = Sample(pruning.rates[-PRUNING:]).median
        notes.print(
            f"retention: {Sample(alone.rates[-ALONE:]).median:,.0f} tasks/s alone, "
            f"{beside:,.0f} beside the pruner, {left:,} old tasks left"
        )
    return had


def work(engine: Engine, part: Part, moment_s: float) -> float:
    """Measure one interval of the worker, with claims in between; return the seconds."""
    began = time.perf_counter()
    top_up(engine)
    waiting, start = backlog(engine), time.perf_counter()
    while (now := time.perf_counter()) < start + moment_s:
        part.claims.append(probe(engine))
        time.sleep(PAUSE_S)
    part.rates.append((waiting - backlog(engine)) / (now - start))
    return time.perf_counter() - began


def probe(engine: Engine) -> float:
    """A claim of a hundred in a queue of its own, timed without its commit."""
    seconds, ids, token = engine.claim(PROBES, queue="probe")
    if len(ids) != PROBES:
        raise BenchError(f"a claim of {PROBES} returned {len(ids)} tasks")
    engine.complete(ids, token)
    engine.conn.execute(
        "select count(*) from treadle.enqueue_batch('probe', 'noop', "
        "array(select '{}'::jsonb from generate_series(1, %s)))",
        (PROBES,),
    )
    return seconds


def top_up(engine: Engine) -> None:
    """Keep enough tasks ready that the worker never runs out."""
    missing = BACKLOG - backlog(engine)
    if missing > 0:
        engine.enqueue(missing)
    query = "select count(*) from treadle.tasks where status = 'ready' and queue = 'probe'"
    if count(engine, query) < PROBES:
        engine.conn.execute(
            "select count(*) from treadle.enqueue_batch('probe', 'noop', "
            "array(select '{}'::jsonb from generate_series(1, 1000)))"
        )


def backlog(engine: Engine) -> int:
    return count(engine, "select count(*) from treadle.tasks where status = 'ready'")


def count(engine: Engine, query: str) -> int:
    row = engine.conn.execute(query.encode()).fetchone()
    return int(row[0]) if row else 0


@contextmanager
def process(url: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a treadle process until the block ends."""
    environment = {**os.environ, "TREADLE_DATABASE_URL": url, "TREADLE_LOG_LEVEL": "error"}
    child = subprocess.Popen([sys.executable, "-m", "treadle", *words], cwd=ROOT, env=environment)
    try:
        yield child
        if child.poll() is not None:
            raise BenchError(f"treadle {words[0]} ended with code {child.returncode}")
    finally:
        child.send_signal(signal.SIGCONT)
        child.terminate()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()


def turns(part: Part, moments: int) -> list[float]:
    """Return the median of the measurements of each turn."""
    starts = range(0, len(part.rates), moments)
    return [Sample(part.rates[start : start + moments]).median for start in starts]


def report(parts: list[Part], per_s: float, sizes: list[Any]) -> None:
    alone, pruning = parts[1], parts[2]
    table = Table(title="one worker with 100 slots and claims of 100, beside the pruner and alone")
    table.add_column("moments")
    for head in ("n", "tasks/s", "claim, ms", "throughput", "claim", "goal", ""):
        table.add_column(head, justify="right")
    # Compare neighbouring turns, so that a slow moment of the machine affects both.
    pairs = zip(turns(alone, ALONE), turns(pruning, PRUNING), strict=True)
    slower = Sample([without / beside for without, beside in pairs]).median
    dearer = pruning.claim_ms / alone.claim_ms
    for part in parts:
        shown = [""] * 4
        if part is pruning:
            shown = [f"{slower:.2f}x", f"{dearer:.2f}x", f"{GOAL}x"]
            shown.append(verdict(max(slower, dearer), GOAL))
        figures = [f"{len(part.rates)}", f"{part.rate:,.0f}", f"{part.claim_ms:.2f}"]
        table.add_row(part.name, *figures, *shown)
    out.print(table)
    out.print(f"pruned: {per_s:,.0f} tasks/s while it was let; load {os.getloadavg()[0]:.1f}")
    for when, row in zip(("before", "after", "after vacuum"), sizes, strict=True):
        heap, indexes, history = (f"{value / 2**20:,.0f} MB" for value in row[:3])
        out.print(f"{when}: tasks {heap}, indexes {indexes}, history {history}, {row[3]:,} dead")
