"""Cancelling a task also cancels its dependents and its subtasks."""

import pytest

from tests.drivers.dags import create, node, shaped, spawn, suspend
from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged


@pytest.mark.requirement("R4")
def test_a_cancellation_takes_the_dependents_along_with_its_reason(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"], "c": ["b"], "other": []})

    verdicts = driver.rows(
        "select id, verdict from treadle.cancel_tasks(%s, 'client left')", [graph["a"]]
    )

    assert dict(verdicts) == {
        graph["a"]: "cancelled",
        graph["b"]: "cascaded",
        graph["c"]: "cascaded",
    }
    assert graph.states() == {
        "a": "cancelled",
        "b": "cancelled",
        "c": "cancelled",
        "other": "ready",
    }
    assert driver.task(graph["c"])["failure_reason"] == "client left"
    assert driver.events(graph["c"])[-1]["data"]["cascaded"] is True
    assert graph.status == "running"


def test_a_dependent_continues_over_an_optional_edge(driver: Driver) -> None:
    graph = create(
        driver, [node("a"), node("b"), node("c", [{"task": "a", "optional": True}, "b"])]
    )

    driver.cancel(graph["a"])
    assert graph.states()["c"] == "pending"
    graph.complete("b")
    assert graph.ready() == {"c"}


def test_finished_tasks_are_not_changed(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"], "c": ["a", "b"]})
    graph.complete("a")

    driver.cancel(graph["b"])

    assert graph.states() == {"a": "completed", "b": "cancelled", "c": "cancelled"}
    assert graph.status == "cancelled"


def test_a_dependent_that_was_cancelled_before_is_counted_once(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"]})
    driver.cancel(graph["b"], reason="first")

    driver.cancel(graph["a"], reason="second")

    assert (graph.row["cancelled"], graph.status) == (2, "cancelled")
    assert driver.task(graph["b"])["failure_reason"] == "first"


def test_a_dag_ends_when_its_last_task_is_cancelled(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": []})
    graph.complete("a")

    driver.cancel(graph["b"])

    # Something came out at a leaf.
    assert graph.status == "completed"
    assert graph.events()[-1] == "dag.completed"


def test_subtasks_fall_with_the_task_that_spawned_them(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})
    parent = graph.claim("a")
    [child] = spawn(driver, parent, [{"type": "code"}])

    driver.cancel(graph["a"])

    assert driver.state_of(child) == "cancelled"
    assert graph.status == "cancelled"


def test_a_waiting_parent_is_cancelled_with_its_subtask(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})
    parent = graph.claim("a")
    [child] = spawn(driver, parent, [{"type": "code"}])
    suspend(driver, parent, [child])

    driver.cancel(child, reason="no")

    assert driver.state_of(graph["a"]) == "cancelled"


def test_cancelling_a_dag_ends_it_with_all_it_has(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": [], "dead": [], "c": ["a", "b"]})
    graph.give_up("dead")
    claim = graph.claim("b")

    assert driver.value("select treadle.cancel_dag(%s, 'too dear', 'boss')", graph.id) == 4

    assert set(graph.states().values()) == {"cancelled"}
    assert graph.status == "cancelled"
    assert driver.complete(claim) == "stale"
    assert driver.heartbeat(claim) == "cancelled"


def test_a_task_whose_dependency_was_cancelled_is_not_revived_alone(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"]})
    driver.cancel(graph["a"])

    with unchanged(driver), refused("TR102", "depends on a, which was cancelled"):
        driver.retry(graph["b"])

    driver.retry(graph["a"])
    assert driver.retry(graph["b"]) == "pending"
    assert graph.status == "running"
    graph.complete("a", "b")
    assert graph.status == "completed"


def test_a_whole_dag_is_revived(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"], "c": ["b"], "dead": []})
    graph.complete("a")
    graph.give_up("dead")
    driver.cancel(graph["b"])
    assert graph.status == "failed"

    assert driver.value("select treadle.retry_dag(%s)", graph.id) == 3

    assert graph.states() == {"a": "completed", "b": "ready", "c": "pending", "dead": "ready"}
    assert graph.status == "running"
    graph.complete("b", "c", "dead")
    assert graph.status == "completed"


def test_reopening_an_ended_dag_emits_an_event(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})
    driver.cancel(graph["a"])
    assert graph.status == "cancelled"

    driver.retry(graph["a"])

    assert graph.status == "running"
    assert graph.row["ended_at"] is None
    assert graph.events()[-1] == "dag.reopened"


def test_a_handler_that_cancels_its_task_takes_the_dependents_along(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"]})

    assert driver.fail(graph.claim("a"), "not wanted", action="cancel") == "cancelled"

    assert driver.state_of(graph["b"]) == "cancelled"
    assert graph.status == "cancelled"


def test_dependents_in_other_dags_do_not_change_how_a_dag_ended(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": []})
    create(driver, [node("later", [str(graph["a"])])])
    graph.complete("a")

    driver.cancel(graph["b"])

    assert graph.status == "completed"
    [overview] = driver.records("select * from treadle.dag_overview where id = %s", graph.id)
    assert overview["leaves"] == [graph["a"], graph["b"]]


def test_the_end_of_a_subtask_does_not_complete_the_dag(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})
    parent = graph.claim("a")
    graph.ids["child"] = spawn(driver, parent, [node("child")])[0]
    graph.complete("child")

    driver.cancel(graph["a"])

    assert graph.status == "cancelled"
    [overview] = driver.records("select * from treadle.dag_overview where id = %s", graph.id)
    assert (overview["roots"], overview["leaves"]) == ([graph["a"]], [graph["a"]])
