"""In stricter isolation levels a call with an old snapshot fails completely or succeeds.

A caller in REPEATABLE READ or SERIALIZABLE looks at the tables first, then somebody else changes
them, then it calls: a serialization failure (40001), or the same result as if it came second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.drivers.dag_faults import faults
from tests.drivers.dag_races import Call, Case, cancel, cancel_dag, claimed, complete, finish
from tests.drivers.dags import add, after, create, depend, node, opened, shaped, spawn, suspend
from tests.drivers.engine import Driver

LEVELS = ["repeatable read", "serializable"]
OPTIONAL = {"task": "a", "optional": True}


def edge(task: str, needed: str) -> Call:
    return lambda session, case: depend(session, case[task], case[needed])


def more(session: Driver, case: Case) -> int:
    tasks = Jsonb([node("n", ["a"]), node("m", ["n"])])
    return len(session.rows("select treadle.add_tasks(%s, %s)", case.graph.id, tasks))


def outside(session: Driver, case: Case) -> str:
    """Another DAG depends on a task of this one."""
    return create(session, [node("n", [str(case["a"])])]).status


def alone(session: Driver, case: Case) -> str:
    """A task in no DAG depends on a task of this one."""
    return session.state_of(session.enqueue(**after(case["a"])))


def subtask(session: Driver, case: Case) -> int:
    return len(spawn(session, case.claims["a"], [node("child")]))


def wait_for_it(session: Driver, case: Case) -> str:
    return suspend(session, case.claims["p"], [case["a"]])


def retry(name: str, how: str = "retry") -> Call:
    return lambda session, case: session.retry(case[name], how)


def begin(session: Driver, case: Case) -> int:
    return int(session.value("select treadle.start_dag(%s)", case.graph.id))


# The DAG, the call of the other session, the call of the caller, and its outcome.
CASES: dict[str, tuple[dict[str, list[Any]], Call, Call, object]] = {
    # What waits for it already makes it as urgent as it can get: nothing is written for that.
    "new dependent, completion": (
        {"a": [], "b": ["x"], "x": [], "z": ["a"]},
        edge("b", "a"),
        complete("a"),
        "completed",
    ),
    "completion, new dependent": (
        {"a": [], "b": ["x"], "x": []},
        complete("a"),
        edge("b", "a"),
        True,
    ),
    "two parents": ({"c": ["a", "b"], "a": [], "b": []}, complete("a"), complete("b"), "completed"),
    "last two": ({"a": [], "b": []}, complete("a"), complete("b"), "completed"),
    "new tasks, completion": ({"a": [], "b": []}, more, complete("a"), "completed"),
    "end, new tasks": ({"a": []}, complete("a"), more, "TR102"),
    "new task elsewhere, completion": ({"a": [], "z": ["a"]}, outside, complete("a"), "completed"),
    "new task in no DAG, completion": ({"a": [], "z": ["a"]}, alone, complete("a"), "completed"),
    "completion, new task in no DAG": ({"a": []}, complete("a"), alone, "ready"),
    "cancellation, new task in no DAG": ({"a": []}, cancel("a"), alone, "TR102"),
    "new task elsewhere, cancellation": ({"a": []}, outside, cancel("a"), "cancelled"),
    "cancellation, new dependent": (
        {"a": [], "b": ["x"], "x": []},
        cancel("a"),
        edge("b", "a"),
        "TR102",
    ),
    "cancellation, completion": (
        {"a": [], "b": ["a"], "o": [OPTIONAL]},
        cancel("a"),
        complete("a"),
        "stale",
    ),
    "completion, cancellation": (
        {"a": [], "b": ["a"], "o": [OPTIONAL]},
        complete("a"),
        cancel("a"),
        "ended",
    ),
    "completion, cancelled dependent": (
        {"a": [], "b": ["a"]},
        complete("a"),
        cancel("b"),
        "cancelled",
    ),
    "waits, completion": ({"p": [], "a": [], "z": ["a"]}, wait_for_it, complete("a"), "completed"),
    "completion, waits": ({"p": [], "a": []}, complete("a"), wait_for_it, "ready"),
    "cancellation, waits": ({"p": [], "a": []}, cancel("a"), wait_for_it, "TR102"),
    "subtask, end": ({"a": [], "b": []}, subtask, complete("b"), "completed"),
    "subtask, cancellation": ({"a": [], "b": []}, subtask, cancel("a"), "cancelled"),
    "cancelled DAG, subtask": ({"a": [], "b": []}, cancel_dag, subtask, "TR101"),
    "cancelled DAG, completion": ({"a": [], "b": ["a"]}, cancel_dag, complete("a"), "stale"),
    "circle of two": ({"a": ["x"], "b": ["x"], "x": []}, edge("a", "b"), edge("b", "a"), "TR103"),
    "circle of four": (
        {"a": ["x"], "b": ["a"], "c": ["x"], "d": ["c"], "x": []},
        edge("a", "d"),
        edge("c", "b"),
        "TR103",
    ),
}


def insist(
    driver: Driver, level: str, other: Callable[[], object], call: Callable[[Driver], object]
) -> object:
    """What `call` says in the end; the other comes between its snapshot and its first try."""
    session = driver.another()
    for attempt in range(3):
        try:
            session.rows(f"begin isolation level {level}")
            session.rows("select count(*) from treadle.tasks, treadle.dags, treadle.dependencies")
            if attempt == 0:
                other()
            said = call(session)
            session.rows("commit")
        except psycopg.DatabaseError as error:
            session.rows("rollback")
            if error.sqlstate != "40001":
                return error.sqlstate
        else:
            return said
    raise AssertionError("it fails again and again")


@pytest.mark.requirement("F4")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", CASES)
def test_with_an_old_snapshot_a_call_fails_completely_or_succeeds(
    driver: Driver, name: str, level: str
) -> None:
    edges, other, call, wanted = CASES[name]
    [case] = claimed(driver, [shaped(driver, edges)])

    said = insist(driver, level, lambda: other(driver, case), lambda session: call(session, case))

    assert said == wanted
    assert faults(driver) == []
    for claim in case.claims.values():
        driver.complete(claim)
    finish(driver)


@pytest.mark.parametrize("level", LEVELS)
def test_a_task_is_not_revived_to_wait_for_one_that_was_cancelled(
    driver: Driver, level: str
) -> None:
    needed = driver.enqueue()
    graph = create(driver, [node("b", [str(needed)])])
    driver.cancel(graph["b"])

    said = insist(
        driver, level, lambda: driver.cancel(needed), lambda session: session.retry(graph["b"])
    )

    assert said == "TR102"
    assert faults(driver) == []
    finish(driver)


@pytest.mark.parametrize("level", LEVELS)
def test_a_dead_letter_that_is_cancelled_takes_new_dependents_along(
    driver: Driver, level: str
) -> None:
    dead = driver.enqueue()
    driver.fail(driver.claim_one("a"), action="fail")

    said = insist(
        driver,
        level,
        lambda: create(driver, [node("b", [str(dead)])]),
        lambda session: session.retry(dead, "cancel"),
    )

    assert said == "cancelled"
    assert faults(driver) == []
    finish(driver)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("other", "call"), [("add", "start"), ("start", "add"), ("add", "cancel"), ("start", "cancel")]
)
def test_an_open_dag_keeps_no_task_behind(
    driver: Driver, other: str, call: str, level: str
) -> None:
    graph = opened(driver)
    add(graph, node("a"))
    case = Case(graph, {})
    calls: dict[str, Call] = {"add": more, "start": begin, "cancel": cancel_dag}

    insist(
        driver,
        level,
        lambda: calls[other](driver, case),
        lambda session: calls[call](session, case),
    )

    assert faults(driver) == []
    finish(driver)
