"""A fork is a new task that keeps the steps before a given one and runs the rest again."""

from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.drivers.engine import Driver
from tests.drivers.races import while_held
from tests.drivers.steps import (
    completed,
    cost,
    depend,
    fork,
    refer,
    resolve,
    save_step,
    spend,
    step_names,
    steps,
    written,
)

pytestmark = pytest.mark.requirement("B1")

OPTIONS: dict[str, Any] = {
    "priority": 7,
    "timeout_s": 60.0,
    "max_attempts": 5,
    "ageing_rate": 0.5,
    "title": "a report",
    "tags": ["x"],
    "retry": {"strategy": "fixed", "retry_on": None},
    "capabilities": ["git"],
    "assigned_agent": "coder",
    "max_cost_usd": 3,
    "project_id": str(uuid4()),
    "notes": "by hand",
    "consumer": "me",
}


def ended(driver: Driver, end: str) -> UUID:
    """Such a task in this state."""
    claim = written(driver)
    match end:
        case "completed":
            driver.complete(claim)
        case "dead_lettered":
            driver.fail(claim, action="fail")
        case "cancelled":
            driver.cancel(claim.id)
        case "ready":
            driver.fail(claim)
    assert driver.state_of(claim.id) == end
    return claim.id


def rest(driver: Driver, task_id: UUID) -> list[str]:
    """End the task if it has not ended, and say in whose hands the next one is."""
    driver.cancel(task_id)
    return [step["name"] for step in driver.claim_one("b").steps or []]


@pytest.mark.parametrize("end", ["running", "completed", "dead_lettered", "cancelled", "ready"])
def test_a_task_in_any_state_can_be_forked_and_stays_as_it_is(driver: Driver, end: str) -> None:
    task_id = ended(driver, end)
    before = driver.task(task_id), steps(driver, task_id)

    made = fork(driver, task_id, "check")

    assert (driver.task(task_id), steps(driver, task_id)) == before
    assert driver.state_of(made) == "ready"
    assert driver.task(made)["forked_from"] == task_id
    assert rest(driver, task_id) == ["outline", "draft"]


def test_a_fork_keeps_the_steps_before_and_pays_nothing_for_them(driver: Driver) -> None:
    claim = written(driver)

    made = fork(driver, claim.id, "check")

    old, new = steps(driver, claim.id), steps(driver, made)
    for name in ("name", "seq", "kind", "output", "input", "input_hash", "saved_at", "started_at"):
        assert [step[name] for step in new] == [step[name] for step in old[:2]], name
    assert [(step["cost_usd"], step["attempt"]) for step in new] == [(0, 0), (0, 0)]
    assert [step["claim_token"] for step in new] == [None, None]
    assert cost(driver, made) == (Decimal(0), 0, 0)
    assert spend(driver, made) == []


def test_a_fork_from_the_first_step_keeps_none(driver: Driver) -> None:
    claim = written(driver)

    made = fork(driver, claim.id, "outline")

    assert steps(driver, made) == []
    assert driver.task(made)["durable"] is False
    driver.complete(claim)
    assert driver.claim_one("b").steps is None


def test_a_fork_continues_at_the_forked_step(driver: Driver) -> None:
    claim = written(driver)
    made = fork(driver, claim.id, "draft")
    driver.complete(claim)
    again = driver.claim_one("b")

    assert again.id == made
    assert save_step(driver, again, "outline", "another") == ("outline of cats", False)
    assert save_step(driver, again, "draft", "another") == ("another", True)

    assert step_names(driver, made) == ["outline", "draft"]
    assert [step["seq"] for step in steps(driver, made)] == [1, 2]


def test_a_fork_can_be_forked(driver: Driver) -> None:
    claim = written(driver)
    made = fork(driver, claim.id, "check")

    again = fork(driver, made, "draft")

    assert step_names(driver, again) == ["outline"]
    assert driver.task(again)["forked_from"] == made


def test_changes_are_merged_into_the_spec_and_the_options(driver: Driver) -> None:
    claim = written(driver)
    changes = {"spec": {"tone": "warm", "length": 3}, "priority": 1, "type": "test"}

    made = fork(driver, claim.id, "draft", changes)

    task = driver.task(made)
    assert task["spec"] == {"topic": "cats", "tone": "warm", "length": 3}
    assert (task["priority"], task["type"]) == (1, "test")
    [event] = [each for each in driver.events(made) if each["kind"] == "task.forked"]
    assert (event["actor"], event["queue"]) == ("tester", "default")
    assert event["data"] == {
        "from": str(claim.id), "step": "draft", "kept": 1, "changes": changes,
    }  # fmt: skip


def test_a_fork_has_the_options_of_the_task_and_nothing_of_its_history(driver: Driver) -> None:
    driver.agent("coder", capabilities=["git"])
    claim = written(driver, agent="coder", key="k", **OPTIONS)
    driver.fail(claim)
    old = driver.task(claim.id)

    new = driver.task(fork(driver, claim.id, "draft"))

    for name in (*OPTIONS, "queue", "type", "lane_id", "spec"):
        assert new[name] == old[name], name
    for name in ("idempotency_key", "dag_id", "parent_id", "run_at", "claimed_at", "failure_class"):
        assert new[name] is None, name
    assert (new["attempt"], new["created_by"]) == (0, "tester")


def test_a_fork_of_a_task_that_people_retried_has_the_attempts_of_one_round(
    driver: Driver,
) -> None:
    claim = written(driver)
    given = driver.task(claim.id)["max_attempts"]
    driver.fail(claim, action="fail")
    driver.retry(claim.id)

    assert driver.task(claim.id)["max_attempts"] == given + 1
    assert driver.task(fork(driver, claim.id, "draft"))["max_attempts"] == given


@pytest.mark.requirement("F22")
def test_a_fork_takes_its_inputs_from_the_same_tasks_unless_they_are_changed(
    driver: Driver,
) -> None:
    source = completed(driver, {"a": 1, "b": 2})
    claim = written(driver)
    refer(driver, claim.id, {"a": f"task:{source}:output.a", "b": f"task:{source}:output.b"})

    made = fork(driver, claim.id, "draft", {"spec": {"b": 5}})

    assert resolve(driver, made) == ({"topic": "cats", "tone": "dry", "a": 1, "b": 5}, None)


@pytest.mark.requirement("F22")
def test_a_fork_also_skips_the_optional_inputs_that_its_task_skipped(driver: Driver) -> None:
    gone = driver.enqueue()
    driver.cancel(gone)
    claim = written(driver)
    refer(driver, claim.id, {"brief": f"task:{gone}:output"})
    depend(driver, claim.id, gone, optional=True, met=True)

    made = fork(driver, claim.id, "draft")

    spec, problem = resolve(driver, made)
    assert (spec["brief"], problem) == (None, None)


def test_a_fork_waits_for_nothing(driver: Driver) -> None:
    claim = written(driver)
    other = driver.enqueue()
    depend(driver, claim.id, other, optional=False, met=False)

    made = driver.task(fork(driver, claim.id, "draft"))

    assert (made["status"], made["blocked_count"]) == ("ready", 0)


def test_a_concurrently_saved_step_does_not_block_a_fork(driver: Driver) -> None:
    claim = written(driver)

    made = while_held(
        driver,
        lambda first: save_step(first, claim, "last", 1),
        lambda second: fork(second, claim.id, "check"),
        waits=False,
    )

    assert step_names(driver, made) == ["outline", "draft"]
