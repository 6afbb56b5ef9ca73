"""Races between sessions: many calls at the same moment, or calls that wait for a lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from time import sleep
from typing import Any
from uuid import UUID

import psycopg

from tests.drivers.dag_faults import faults, unended
from tests.drivers.dags import Graph, create
from tests.drivers.engine import Driver, Record
from treadle.models import Claim

TIMES = 100
# The results of the sessions of a round: a value, or the SQLSTATE of an error.
Said = tuple[Any, ...]


@dataclass
class Case:
    """A DAG with the claims on its ready tasks."""

    graph: Graph
    claims: dict[str, Claim]

    def __getitem__(self, name: str) -> UUID:
        return self.graph[name]


Call = Callable[[Driver, Case], object]
Step = Callable[[Driver], object]


def cases(driver: Driver, nodes: Sequence[Record], **options: Any) -> list[Case]:
    """Create a number of DAGs of these tasks and claim their ready tasks."""
    made = [create(driver, nodes, **options) for _ in range(TIMES)]
    return claimed(driver, made)


def claimed(driver: Driver, made: Sequence[Graph]) -> list[Case]:
    """Claim all ready tasks; they are found by DAG and name."""
    found: dict[UUID, dict[str, Claim]] = {graph.id: {} for graph in made}
    while claims := driver.claim("a", 500):
        for claim in claims:
            assert claim.dag_id is not None
            found[claim.dag_id][str(claim.name)] = claim
    return [Case(graph, found[graph.id]) for graph in made]


def race(driver: Driver, races: Sequence[Case], *calls: Call) -> list[Said]:
    """Each case once, each call in a session of its own, all of them at the same moment."""
    sessions = [driver.another() for _ in calls]
    for session in sessions:
        session.rows("set deadlock_timeout = '20 ms'")
    gate = Barrier(len(calls))

    def run(number: int) -> list[object]:
        said: list[object] = []
        for turn, case in enumerate(races):
            gate.wait(timeout=60)
            # The sessions start in varying order.
            sleep((turn * 7 + number * 3) % 5 * 0.0004)
            try:
                said.append(calls[number](sessions[number], case))
            except psycopg.DatabaseError as error:
                said.append(error.sqlstate)
            except BaseException:
                gate.abort()
                raise
        return said

    with ThreadPoolExecutor(len(calls)) as threads:
        answers = list(zip(*threads.map(run, range(len(calls))), strict=True))
    assert "40P01" not in {said for answer in answers for said in answer}, "a deadlock"
    assert faults(driver) == []
    return answers


def finish(driver: Driver) -> None:
    """Complete the remaining tasks: nothing is stuck, and all DAGs end."""
    while claims := driver.claim("a", 500):
        driver.rows(
            "select * from treadle.complete_tasks(%s, %s)",
            *([claim.id for claim in claims], [claim.token for claim in claims]),
        )
    assert unended(driver) == {}
    assert faults(driver) == []


def complete(name: str) -> Call:
    return lambda session, case: session.complete(case.claims[name])


def cancel(name: str) -> Call:
    return lambda session, case: session.cancel(case[name])[0]


def cancel_dag(session: Driver, case: Case) -> int:
    return int(session.value("select treadle.cancel_dag(%s)", case.graph.id))


def give_up(name: str) -> Call:
    return lambda session, case: session.fail(case.claims[name], action="fail")


def standoff(driver: Driver, hold: Step, *calls: Step) -> list[object]:
    """One session holds a lock; the others start one by one and wait until it is released."""
    holder, judge = driver.another(), driver.another()
    sessions = [driver.another() for _ in calls]

    def answer(call: Step, session: Driver) -> object:
        try:
            return call(session)
        except psycopg.DatabaseError as error:
            return error.sqlstate

    with ThreadPoolExecutor(len(calls)) as threads:
        holder.rows("begin")
        hold(holder)
        begun: list[Future[object]] = []
        for call, session in zip(calls, sessions, strict=True):
            begun.append(threads.submit(answer, call, session))
            while not begun[-1].done() and not judge.value(
                "select pg_blocking_pids(%s) <> '{}'", session.conn.info.backend_pid
            ):
                pass
        holder.rows("commit")
        said = [each.result(timeout=30) for each in begun]
    assert "40P01" not in said, "a deadlock"
    assert faults(driver) == []
    return said
