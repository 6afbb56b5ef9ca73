"""An open DAG: held until it starts, extended while it runs, closed at its end."""

from uuid import uuid4

import pytest

from tests.drivers.dags import add, depend, node, opened, shaped, start
from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged


@pytest.mark.requirement("F3")
def test_tasks_of_an_open_dag_stay_created_until_it_starts(driver: Driver) -> None:
    graph = opened(driver)
    add(graph, node("a"))
    add(graph, node("b", ["a"]))
    driver.agent("a")

    assert graph.states() == {"a": "created", "b": "created"}
    assert driver.claim("a") == []
    assert graph.status == "open"

    assert start(graph) == 2
    assert graph.states() == {"a": "ready", "b": "pending"}
    assert graph.status == "running"


def test_a_complete_dag_can_be_held_too(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"]}, hold=True)

    assert graph.status == "open"
    assert graph.states() == {"a": "created", "b": "created"}
    assert start(graph) == 2
    assert graph.states() == {"a": "ready", "b": "pending"}
    assert graph.events() == ["dag.started"]


def test_starting_twice_changes_nothing(driver: Driver) -> None:
    graph = opened(driver)
    add(graph, node("a"))
    start(graph)

    with unchanged(driver):
        assert start(graph) == 1


def test_held_tasks_of_an_open_dag_are_not_released_one_by_one(driver: Driver) -> None:
    graph = opened(driver)
    task_id = add(graph, node("a"))

    verdicts = driver.rows("select verdict from treadle.release_held_tasks(%s)", [task_id])

    assert verdicts == [("created",)]
    assert graph.states() == {"a": "created"}


def test_a_task_added_to_a_running_dag_is_released_at_once(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})

    add(graph, node("b", ["a"]))
    add(graph, node("c"))

    assert graph.states() == {"a": "ready", "b": "pending", "c": "ready"}
    assert graph.row["tasks"] == 3
    graph.complete("a", "b", "c")
    assert graph.status == "completed"


def test_a_name_added_twice_is_one_task(driver: Driver) -> None:
    graph = opened(driver)

    assert add(graph, node("a")) == add(graph, node("a"))
    assert graph.row["tasks"] == 1


def test_nothing_is_added_to_a_dag_that_has_ended(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})
    graph.complete("a")

    with unchanged(driver), refused("TR102", "is completed, and no tasks can be added"):
        add(graph, node("b"))


def test_a_build_that_is_repeated_after_the_end_finds_its_tasks(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})
    graph.complete("a")

    with unchanged(driver):
        assert add(graph, node("a")) == graph["a"]


def test_an_empty_dag_cannot_start(driver: Driver) -> None:
    graph = opened(driver)

    with unchanged(driver), refused("TR001", "has no tasks"):
        start(graph)


def test_an_open_dag_can_be_cancelled(driver: Driver) -> None:
    graph = opened(driver)
    add(graph, node("a"))

    assert driver.value("select treadle.cancel_dag(%s, 'no')", graph.id) == 1
    assert graph.status == "cancelled"
    assert graph.states() == {"a": "cancelled"}


@pytest.mark.parametrize(
    "call",
    [
        'add_task(%s, \'{"type": "code"}\')',
        "start_dag(%s)",
        "cancel_dag(%s)",
        "retry_dag(%s)",
    ],
)
def test_an_unknown_dag_is_refused(driver: Driver, call: str) -> None:
    with refused("TR205", "no DAG"):
        driver.rows(f"select treadle.{call}", uuid4())


def test_a_ready_task_that_gets_a_dependency_waits_again(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": []})

    assert depend(driver, graph["b"], graph["a"])
    assert graph.states() == {"a": "ready", "b": "pending"}
    assert not depend(driver, graph["b"], graph["a"])
    graph.complete("a")
    assert graph.ready() == {"b"}


def test_a_task_that_runs_gets_no_dependency(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": []})
    graph.claim("b")

    with unchanged(driver), refused("TR102", "is running"):
        depend(driver, graph["b"], graph["a"])


@pytest.mark.requirement("F3")
def test_dependencies_may_cross_dags_and_tasks_without_one(driver: Driver) -> None:
    alone = driver.enqueue()
    first, second = shaped(driver, {"a": []}), shaped(driver, {"b": []})

    depend(driver, second["b"], first["a"])
    depend(driver, alone, second["b"])

    assert driver.state_of(alone) == "pending"
    first.complete("a")
    second.complete("b")
    assert driver.state_of(alone) == "ready"


def test_a_plain_insert_into_a_dag_is_counted(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})

    driver.rows("insert into treadle.tasks (type, dag_id) values ('code', %s)", graph.id)

    assert graph.row["tasks"] == 2


def test_a_plain_insert_into_an_open_dag_is_held(driver: Driver) -> None:
    graph = opened(driver)

    insert = "insert into treadle.tasks (type, dag_id, name) values ('code', %s, 'x')"
    driver.rows(insert, graph.id)

    assert graph.states() == {"x": "created"}


def test_an_unmet_dependency_on_what_does_not_exist_is_refused(driver: Driver) -> None:
    task_id = driver.enqueue()

    with unchanged(driver), refused("TR201"):
        depend(driver, task_id, uuid4())
    with unchanged(driver), refused("TR201"):
        depend(driver, uuid4(), task_id)
