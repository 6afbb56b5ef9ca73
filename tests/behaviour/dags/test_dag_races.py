"""Hundreds of concurrent calls about one DAG lose nothing and leave nothing stuck.

After each race all counts are taken again from the rows; then the rest is worked off, and every
DAG has to end.
"""

from dataclasses import replace

import pytest
from psycopg.types.json import Jsonb

from tests.drivers import dags
from tests.drivers.dag_faults import faults
from tests.drivers.dag_races import (
    TIMES,
    Case,
    cancel,
    cancel_dag,
    cases,
    claimed,
    complete,
    finish,
    give_up,
    race,
)
from tests.drivers.dags import depend, node, spawn, suspend
from tests.drivers.engine import Driver, Record

PARENTS = [f"p{number}" for number in range(8)]
pytestmark = pytest.mark.requirement("F4")


def optional(name: str) -> Record:
    return {"task": name, "optional": True}


def test_parents_that_are_completed_at_once_release_their_child(driver: Driver) -> None:
    made = cases(driver, [node("child", PARENTS), *[node(name) for name in PARENTS]])

    said = race(driver, made, *[complete(name) for name in PARENTS])

    assert set(said) == {("completed",) * 8}
    assert {case.graph.states()["child"] for case in made} == {"ready"}
    finish(driver)


def test_parents_that_are_completed_in_one_call_are_counted_each(driver: Driver) -> None:
    graph = dags.shaped(driver, {"c": ["a", "b"], "a": [], "b": []})
    claims = driver.claim("a", 2)

    driver.rows(
        "select * from treadle.complete_tasks(%s, %s)",
        *([claim.id for claim in claims], [claim.token for claim in claims]),
    )

    assert graph.ready() == {"c"}
    finish(driver)


def test_of_the_last_two_tasks_one_ends_the_dag(driver: Driver) -> None:
    made = cases(driver, [node("a"), node("b")])

    race(driver, made, complete("a"), complete("b"))

    for case in made:
        assert case.graph.status == "completed"
        assert case.graph.events().count("dag.completed") == 1


def test_a_task_is_completed_or_cancelled_and_its_dependents_follow(driver: Driver) -> None:
    made = cases(driver, [node("d", ["a"]), node("o", [optional("a")]), node("a")])

    said = race(driver, made, complete("a"), cancel("a"))

    for case, answer in zip(made, said, strict=True):
        done = answer == ("completed", "ended")
        assert done or answer == ("stale", "cancelled")
        assert case.graph.states() == {
            "a": "completed" if done else "cancelled",
            "d": "ready" if done else "cancelled",
            "o": "ready",
        }
    finish(driver)


def test_a_parent_is_completed_while_its_child_is_cancelled(driver: Driver) -> None:
    made = cases(driver, [node("child", ["a"]), node("a"), node("grandchild", ["child"])])

    said = race(driver, made, complete("a"), cancel("child"))

    assert set(said) == {("completed", "cancelled")}
    assert {case.graph.status for case in made} == {"cancelled"}
    finish(driver)


def test_a_task_is_completed_while_its_dag_is_cancelled(driver: Driver) -> None:
    made = cases(driver, [node("child", ["a"]), node("a"), node("o", [optional("a")])])

    said = race(driver, made, complete("a"), cancel_dag)

    assert {answer[0] for answer in said} <= {"completed", "stale"}
    assert {case.graph.status for case in made} == {"cancelled"}
    finish(driver)


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("end", ["complete", "cancel"])
def test_a_dag_does_not_end_before_subtasks_that_are_being_started(
    driver: Driver, end: str
) -> None:
    made = cases(driver, [node("a"), node("b")])

    def grow(session: Driver, case: Case) -> str:
        spawn(session, case.claims["a"], [node("c", ["a"])])
        return session.complete(case.claims["a"])

    said = race(driver, made, grow, complete("b") if end == "complete" else cancel_dag)

    if end == "complete":
        assert set(said) == {("completed", "completed")}
        assert {(case.graph.status, case.graph.row["tasks"]) for case in made} == {("running", 3)}
    else:
        assert {answer[0] for answer in said} <= {"completed", "stale", "TR101"}
        assert {case.graph.states()["b"] for case in made} == {"cancelled"}
    finish(driver)


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("loose", [False, True])
def test_a_parent_that_begins_to_wait_misses_no_end_of_its_subtasks(
    driver: Driver, loose: bool
) -> None:
    made = cases(driver, [node("p")])
    children = [spawn(driver, case.claims["p"], [node("x"), node("y")]) for case in made]
    for case, again in zip(made, claimed(driver, [case.graph for case in made]), strict=True):
        case.claims |= again.claims
    wanted = {case.graph.id: ids for case, ids in zip(made, children, strict=True)}

    said = race(
        driver,
        made,
        lambda session, case: suspend(
            session, case.claims["p"], wanted[case.graph.id], optional=loose
        ),
        complete("x"),
        give_up("y") if loose else complete("y"),
    )

    assert {answer[0] for answer in said} <= {"pending", "ready"}
    assert {case.graph.states()["p"] for case in made} == {"ready"}
    while claims := driver.claim("a", 500):
        for claim in claims:
            assert driver.complete(claim) == "completed"
    assert faults(driver) == []
    driver.rows(
        "select treadle.retry_task(id, 'cancel') from treadle.tasks where status = 'dead_lettered'"
    )
    finish(driver)


def test_a_dependency_is_added_while_it_is_completed(driver: Driver) -> None:
    made = cases(driver, [node("d"), node("a"), node("e")])
    for case in made:
        assert driver.release(case.claims.pop("d")) == "released"

    said = race(
        driver,
        made,
        lambda session, case: depend(session, case["d"], case["a"]),
        complete("a"),
        lambda session, case: depend(session, case["d"], case["e"]),
        complete("e"),
    )

    assert set(said) == {(True, "completed", True, "completed")}
    assert {case.graph.states()["d"] for case in made} == {"ready"}
    finish(driver)


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_task_is_added_while_its_dag_starts(driver: Driver, cancelled: bool) -> None:
    made = [Case(dags.opened(driver), {}) for _ in range(TIMES)]
    for case in made:
        dags.add(case.graph, node("a"))

    def add(session: Driver, case: Case) -> str:
        tasks = Jsonb([node("a"), node("b", ["a"]), node("c")])
        rows = session.rows("select id from treadle.add_tasks(%s, %s)", case.graph.id, tasks)
        return session.cancel(rows[2][0])[0] if cancelled else "added"

    race(driver, made, add, lambda session, case: dags.start(replace(case.graph, driver=session)))

    for case in made:
        third = "cancelled" if cancelled else "ready"
        assert case.graph.states() == {"a": "ready", "b": "pending", "c": third}
    finish(driver)


def test_a_dag_whose_tasks_were_all_cancelled_ends_when_it_starts(driver: Driver) -> None:
    graph = dags.opened(driver)
    driver.cancel(dags.add(graph, node("a")))

    dags.start(graph)

    assert graph.status == "cancelled"
    assert faults(driver) == []


@pytest.mark.parametrize("status", ["open", "running", "failed"])
def test_tasks_added_while_a_dag_is_cancelled_are_cancelled_too(
    driver: Driver, status: str
) -> None:
    made = [Case(dags.opened(driver), {}) for _ in range(TIMES)]
    if status != "open":
        made = cases(driver, [node("a", max_attempts=1)])
    if status == "failed":
        for case in made:
            driver.fail(case.claims["a"])

    def add(session: Driver, case: Case) -> str:
        session.rows("select treadle.add_task(%s, %s)", case.graph.id, Jsonb(node("b")))
        return "added"

    said = race(driver, made, add, cancel_dag)

    assert {answer[0] for answer in said} <= {"added", "TR102"}
    assert {case.graph.status for case in made} <= {"cancelled"}
    finish(driver)


@pytest.mark.parametrize("policy", ["wait", "cancel", "continue"])
def test_one_parent_gives_up_while_the_other_is_completed(driver: Driver, policy: str) -> None:
    tasks = [node("c", ["x", "y"]), node("o", [optional("x"), "y"]), node("x"), node("y")]
    made = cases(driver, tasks, on_dead_letter=policy)

    said = race(driver, made, give_up("x"), complete("y"))

    assert set(said) == {("dead_lettered", "completed")}
    expected = {
        "wait": {"c": "pending", "o": "pending"},
        "cancel": {"c": "cancelled", "o": "ready"},
        "continue": {"c": "pending", "o": "ready"},
    }
    for case in made:
        states = case.graph.states()
        assert {name: states[name] for name in "co"} == expected[policy]
    driver.rows("select treadle.retry_task(id) from treadle.tasks where status = 'dead_lettered'")
    finish(driver)
