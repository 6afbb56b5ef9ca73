"""Subtasks: spawned once by a running task, which waits without a claim, slot or attempt."""

import pytest

from tests.drivers.dags import node, shaped, spawn, suspend
from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged


@pytest.mark.requirement("F5")
def test_a_running_task_starts_others_in_its_dag_and_carries_on(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})
    parent = graph.claim("a")

    [first, second] = spawn(driver, parent, [node("x"), node("y", ["x"])])

    child = driver.task(first)
    assert (child["parent_id"], child["dag_id"], child["status"]) == (parent.id, graph.id, "ready")
    assert driver.state_of(second) == "pending"
    assert graph.row["tasks"] == 3
    assert driver.complete(parent) == "completed"
    assert graph.status == "running"


def test_a_repeat_starts_nothing_and_returns_the_same_tasks(driver: Driver) -> None:
    driver.agent("a")
    driver.enqueue()
    parent = driver.claim_one("a")

    assert spawn(driver, parent, [{"type": "test"}]) == spawn(driver, parent, [{"type": "test"}])
    assert driver.value("select count(*) from treadle.tasks where type = 'test'") == 1


def test_the_next_attempt_gets_the_same_subtasks(driver: Driver) -> None:
    driver.agent("a")
    task_id = driver.enqueue(retry={"strategy": "immediate"})
    first = driver.claim_one("a")
    children = spawn(driver, first, [node("x", priority=90)])
    driver.fail(first)

    second = driver.claim_one("a")

    assert second.id == task_id
    assert spawn(driver, second, [node("x", priority=90)]) == children


def test_a_superseded_claim_starts_nothing(driver: Driver) -> None:
    driver.agent("a")
    driver.enqueue()
    parent = driver.claim_one("a")
    driver.expire(parent)

    with unchanged(driver), refused("TR101"):
        spawn(driver, parent, [{"type": "code"}])


@pytest.mark.requirement("F5")
def test_a_parent_waits_without_claim_or_attempt_and_resumes_when_all_have_ended(
    driver: Driver,
) -> None:
    graph = shaped(driver, {"a": [], "after": ["a"]})
    parent = graph.claim("a")
    children = spawn(driver, parent, [node("x"), node("y")])
    graph.ids.update(zip("xy", children, strict=True))

    assert suspend(driver, parent, children) == "pending"

    row = driver.task(parent.id)
    assert (row["status"], row["attempt"], row["claim_token"]) == ("pending", 0, None)
    graph.complete("x")
    assert driver.state_of(parent.id) == "pending"
    graph.complete("y")
    assert driver.state_of(parent.id) == "ready"
    again = graph.claim("a")
    assert again.attempt == 1
    assert [step["name"] for step in again.steps or []] == ["spawn:1"]
    driver.complete(again)
    assert graph.ready() == {"after"}


def test_a_wait_for_finished_subtasks_resumes_at_once(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})
    parent = graph.claim("a")
    [child] = spawn(driver, parent, [node("x")])
    graph.ids["x"] = child
    graph.complete("x")

    assert suspend(driver, parent, [child]) == "ready"


def test_a_repeated_suspension_returns_already(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})
    parent = graph.claim("a")
    children = spawn(driver, parent, [node("x")])
    suspend(driver, parent, children)

    with unchanged(driver):
        assert suspend(driver, parent, children) == "already"


def test_a_result_after_the_suspension_is_stale(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})
    parent = graph.claim("a")
    suspend(driver, parent, spawn(driver, parent, [node("x")]))

    with unchanged(driver):
        assert driver.complete(parent) == "stale"
        assert driver.fail(parent) == "stale"
        assert driver.heartbeat(parent) == "lost"


def test_the_token_of_a_suspended_claim_is_not_given_again(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})
    parent = graph.claim("a")
    suspend(driver, parent)
    assert driver.state_of(graph["a"]) == "ready"

    assert driver.claim("a", token=parent.token) == []
    assert driver.claim_one("a").id == graph["a"]


def test_a_suspended_task_waits_for_its_moment(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})
    parent = graph.claim("a")

    status = driver.value(
        "select treadle.suspend_task(%s, %s, p_run_at => now() + interval '2 hours')",
        *(parent.id, parent.token),
    )

    assert status == "pending"
    driver.fall_due(graph["a"])
    assert graph.claim("a").attempt == 1


def test_suspensions_are_in_the_history_but_not_among_the_failures(driver: Driver) -> None:
    graph = shaped(driver, {"a": []})
    parent = graph.claim("a")
    suspend(driver, parent)

    [attempt] = driver.attempts(graph["a"])
    assert (attempt["outcome"], attempt["class"]) == ("suspended", None)
    claim = graph.claim("a")
    driver.fail(claim)
    driver.fall_due(graph["a"])
    [told] = graph.claim("a").previous or []
    assert told["outcome"] == "failed"
