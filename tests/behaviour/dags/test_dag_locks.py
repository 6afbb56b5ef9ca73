"""Locks are taken in one order: three concurrent sessions wait without a deadlock.

One session holds a row, two others begin and come to wait, then the first lets go.
"""

from datetime import timedelta
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.dag_faults import faults
from tests.drivers.dag_races import Step, claimed, standoff
from tests.drivers.dags import Graph, create, depend, node, shaped, spawn, suspend
from tests.drivers.engine import Driver, Record
from tests.drivers.races import while_held
from treadle.models import Claim

OPTIONAL = {"task": "b", "optional": True}


def task(*ids: UUID) -> Step:
    query = "select from treadle.tasks where id = any (%s) for update"
    return lambda session: session.rows(query, list(ids))


def dag(graph: Graph) -> Step:
    query = "select from treadle.dags where id = %s for update"
    return lambda session: session.rows(query, graph.id)


def adding(graph: Graph, *tasks: Record) -> Step:
    query = "select count(*) from treadle.add_tasks(%s, %s)"
    return lambda session: session.value(query, graph.id, Jsonb(list(tasks)))


def completing(*claims: Claim) -> Step:
    query = "select verdict from treadle.complete_tasks(%s, %s)"
    pair = [claim.id for claim in claims], [claim.token for claim in claims]
    return lambda session: [row[0] for row in session.rows(query, *pair)]


def claims_of(driver: Driver, *made: Graph) -> list[dict[str, Claim]]:
    return [case.claims for case in claimed(driver, made)]


@pytest.mark.requirement("F4")
def test_tasks_are_added_again_while_one_of_them_is_completed(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "z": []})
    [claims] = claims_of(driver, graph)

    said = standoff(
        driver,
        dag(graph),
        adding(graph, node("a"), node("b", ["a"])),
        completing(claims["a"]),
    )

    assert said == [2, ["completed"]]
    assert graph.states()["b"] == "ready"


@pytest.mark.parametrize("held", [0, 1])
def test_two_dags_are_counted_in_one_order(driver: Driver, held: int) -> None:
    first = shaped(driver, {"x": [], "a": []})
    second = create(driver, [node("y", [str(first["x"])]), node("b")], on_dead_letter="cancel")
    assert first.id < second.id
    [of_first, of_second] = claims_of(driver, first, second)

    said = standoff(
        driver,
        dag([first, second][held]),
        completing(of_first["a"], of_second["b"]),
        lambda session: session.fail(of_first["x"], action="fail"),
    )

    assert said == [["completed", "completed"], "dead_lettered"]
    assert second.states()["y"] == "cancelled"


@pytest.mark.requirement("F5")
def test_a_subtask_depends_on_a_task_that_is_cancelled_with_its_parent(driver: Driver) -> None:
    graph = shaped(driver, {"t": [], "p": []})
    [claims] = claims_of(driver, graph)

    said = standoff(
        driver,
        task(graph["t"]),
        lambda session: session.cancel(graph["t"], graph["p"]),
        lambda session: spawn(session, claims["p"], [node("c", ["t"])]),
    )

    assert said == [["cancelled", "cancelled"], "TR101"]


@pytest.mark.requirement("F5")
def test_two_tasks_start_subtasks_that_depend_on_each_other(driver: Driver) -> None:
    graph = shaped(driver, {"p": [], "q": []})
    [claims] = claims_of(driver, graph)

    standoff(
        driver,
        task(graph["p"], graph["q"]),
        lambda session: spawn(session, claims["q"], [node("x", ["p"])]),
        lambda session: spawn(session, claims["p"], [node("y", ["q"])]),
    )

    assert graph.states() == {"p": "running", "q": "running", "x": "pending", "y": "pending"}


def test_an_optional_dependent_further_down_is_locked_in_order_too(driver: Driver) -> None:
    graph = create(driver, [node("c", [OPTIONAL]), node("a"), node("b", ["a"])])

    standoff(
        driver,
        task(graph["b"]),
        lambda session: session.cancel(graph["a"]),
        lambda session: session.cancel(graph["c"], graph["b"]),
    )

    assert set(graph.states().values()) == {"cancelled"}


def test_the_reaper_ends_a_subtask_while_its_parent_is_cancelled(driver: Driver) -> None:
    graph = shaped(driver, {"p": []})
    [claims] = claims_of(driver, graph)
    [child] = spawn(driver, claims["p"], [node("c", max_attempts=1)])
    suspend(driver, claims["p"], [child], optional=True)
    driver.age_claim(driver.claim_one("a").id, timedelta(hours=1))

    standoff(driver, task(graph["p"]), lambda session: session.cancel(graph["p"]), Driver.reap)

    assert graph.states()["p"] == "cancelled"
    assert graph.states()["c"] in ("cancelled", "dead_lettered")


def test_lanes_are_made_after_tasks_are_locked(driver: Driver) -> None:
    graph = shaped(driver, {"t": [], "u": []})
    new = node("n", [str(graph["t"])], capabilities=["new"])

    said = standoff(
        driver,
        task(graph["t"]),
        adding(graph, new),
        lambda session: create(session, [new]).status,
    )

    assert said == [1, "running"]


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_a_dependent_that_came_while_the_end_of_a_task_waited_is_locked_in_order(
    driver: Driver, end: str
) -> None:
    for number in range(10):
        graph = shaped(driver, {"d": [], "t": [], "x": []}, on_dead_letter="cancel")
        _meet(driver, graph, end, late=number % 2 == 0)


def _meet(driver: Driver, graph: Graph, end: str, *, late: bool) -> None:
    [claims] = claims_of(driver, graph)
    driver.release(claims["d"])
    ends: dict[str, Step] = {
        "complete": completing(claims["t"]),
        "fail": lambda session: session.fail(claims["t"], action="fail"),
        "cancel": lambda session: session.cancel(graph["t"]),
    }
    calls = [ends[end], lambda session: session.cancel(graph["d"], graph["t"])]

    standoff(
        driver,
        lambda session: depend(session, graph["d"], graph["t"]),
        *(calls[::-1] if late else calls),
    )

    driver.cancel(*graph.ids.values())


def test_a_completion_locks_its_dependents_in_order(driver: Driver) -> None:
    graph = shaped(driver, {"child": ["t"], "t": [], "x": []})
    [claims] = claims_of(driver, graph)

    standoff(
        driver,
        task(graph["t"]),
        completing(claims["t"]),
        lambda session: session.cancel(graph["child"], graph["t"]),
    )

    assert graph.states()["child"] == "cancelled"


def test_the_successors_of_an_optional_dependent_do_not_change(driver: Driver) -> None:
    edges = [node("b", ["t"]), node("c", [OPTIONAL]), node("e", ["c", "x"])]
    graph = create(driver, [node("t"), node("x"), *edges])
    [claims] = claims_of(driver, graph)
    driver.fail(claims["t"], action="fail")

    said = standoff(
        driver,
        dag(graph),
        lambda session: session.retry(graph["t"], "cancel"),
        completing(claims["x"]),
    )

    assert said == ["cancelled", ["completed"]]
    assert graph.ready() == {"c"}


def test_a_dag_is_retried_while_one_of_its_tasks_is_cancelled(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": []})
    driver.cancel(graph["a"], graph["b"])

    said = standoff(
        driver,
        task(graph["b"]),
        lambda session: session.cancel(graph["b"]),
        lambda session: session.value("select treadle.retry_dag(%s)", graph.id),
    )

    assert said == [["already"], 2]


def test_a_task_cancelled_through_two_paths_is_counted_once(driver: Driver) -> None:
    graph = shaped(driver, {"c": ["a", "b"], "a": [], "b": []})

    while_held(driver, lambda held: held.cancel(graph["a"]), lambda late: late.cancel(graph["b"]))

    assert graph.row["cancelled"] == 3
    assert faults(driver) == []


@pytest.mark.requirement("F5")
def test_a_subtask_spawned_while_its_parent_is_cancelled_is_cancelled_too(driver: Driver) -> None:
    graph = shaped(driver, {"p": []})
    [claims] = claims_of(driver, graph)

    while_held(
        driver,
        lambda held: spawn(held, claims["p"], [node("c")]),
        lambda late: late.cancel(graph["p"]),
    )

    assert graph.states() == {"p": "cancelled", "c": "cancelled"}
    assert graph.status == "cancelled"
