"""What a dead letter means for its dependents: wait, cancel, or continue without it."""

import pytest

from tests.drivers.dags import Graph, create, node, shaped, spawn, suspend
from tests.drivers.engine import Driver

CHAIN = {"a": [], "b": ["a"], "c": ["b"]}


def test_dependents_wait_for_a_person_by_default(driver: Driver) -> None:
    graph = shaped(driver, CHAIN)

    graph.give_up("a")

    assert graph.states() == {"a": "dead_lettered", "b": "pending", "c": "pending"}
    assert graph.status == "failed"
    assert graph.events()[-1] == "dag.failed"


@pytest.mark.requirement("F4")
def test_a_dead_letter_that_is_retried_lets_the_dag_continue(driver: Driver) -> None:
    graph = shaped(driver, CHAIN)
    graph.give_up("a")

    driver.retry(graph["a"])

    assert graph.status == "running"
    graph.complete("a", "b", "c")
    assert graph.status == "completed"


def test_a_dead_letter_that_is_cancelled_takes_its_dependents_along(driver: Driver) -> None:
    graph = shaped(driver, CHAIN)
    graph.give_up("a")

    driver.retry(graph["a"], "cancel")

    assert set(graph.states().values()) == {"cancelled"}
    assert graph.status == "cancelled"
    assert "depends on a, which was cancelled" in driver.task(graph["b"])["failure_reason"]


def test_the_policy_cancel_cancels_dependents_at_once(driver: Driver) -> None:
    graph = shaped(driver, CHAIN, on_dead_letter="cancel")

    graph.give_up("a")

    assert graph.states() == {"a": "dead_lettered", "b": "cancelled", "c": "cancelled"}
    reason = driver.task(graph["b"])["failure_reason"]
    assert reason == "it depends on a, which was dead-lettered: boom"
    assert graph.status == "failed"


def loose(driver: Driver, policy: str) -> Graph:
    """C depends on a, optionally, and on b."""
    return create(
        driver,
        [node("a"), node("b"), node("c", [{"task": "a", "optional": True}, "b"])],
        on_dead_letter=policy,
    )


@pytest.mark.parametrize("policy", ["continue", "cancel"])
def test_over_an_optional_edge_the_dependent_continues(driver: Driver, policy: str) -> None:
    graph = loose(driver, policy)

    graph.give_up("a")
    graph.complete("b")

    assert graph.ready() == {"c"}


def test_the_policy_continue_still_waits_over_other_edges(driver: Driver) -> None:
    graph = loose(driver, "continue")

    graph.give_up("b")
    graph.complete("a")

    assert graph.states()["c"] == "pending"


def test_the_policy_wait_waits_over_optional_edges_too(driver: Driver) -> None:
    graph = loose(driver, "wait")

    graph.give_up("a")
    graph.complete("b")
    assert graph.states()["c"] == "pending"

    driver.retry(graph["a"], "cancel")
    assert graph.ready() == {"c"}


def test_an_edge_is_counted_once_when_the_dead_letter_is_done_after_all(driver: Driver) -> None:
    graph = loose(driver, "continue")
    graph.give_up("a")
    driver.retry(graph["a"])

    graph.complete("a")

    assert driver.task(graph["c"])["blocked_count"] == 1
    graph.complete("b", "c")
    assert graph.status == "completed"


def test_a_reaped_last_attempt_counts_like_any_other_end(driver: Driver) -> None:
    graph = shaped(driver, CHAIN, on_dead_letter="cancel", defaults={"max_attempts": 1})

    driver.expire(graph.claim("a"))

    assert graph.states() == {"a": "dead_lettered", "b": "cancelled", "c": "cancelled"}


def test_a_failed_attempt_with_a_retry_does_not_change_dependents(driver: Driver) -> None:
    graph = shaped(driver, CHAIN, on_dead_letter="cancel")

    assert driver.fail(graph.claim("a")) == "retrying"

    assert graph.states() == {"a": "retrying", "b": "pending", "c": "pending"}
    assert graph.status == "running"


def test_a_parent_waits_for_a_subtask_that_gave_up(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})
    parent = graph.claim("a")
    [child] = spawn(driver, parent, [node("child")])
    graph.ids["child"] = child
    suspend(driver, parent, [child])

    graph.give_up("child")
    assert driver.state_of(graph["a"]) == "pending"
    driver.retry(child)
    graph.complete("child")
    assert driver.state_of(graph["a"]) == "ready"


def test_a_parent_that_accepts_failures_resumes_after_them(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})
    parent = graph.claim("a")
    children = spawn(driver, parent, [node("x"), node("y"), node("z")])
    graph.ids.update(zip("xyz", children, strict=True))
    suspend(driver, parent, children, optional=True)

    graph.give_up("x")
    driver.cancel(graph["y"])
    assert driver.state_of(graph["a"]) == "pending"
    graph.complete("z")

    assert driver.state_of(graph["a"]) == "ready"
