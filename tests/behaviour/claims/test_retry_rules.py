"""Which failures are retried, and how often."""

import re
from typing import Any

import pytest

from tests.drivers.engine import Driver

pytestmark = pytest.mark.requirement("F12")

CLASSES = (
    "timeout",
    "crash",
    "invalid_output",
    "error",
    "auth_failure",
    "budget_exceeded",
    "refused",
    "unavailable",
)
FOR_GOOD = {"auth_failure", "budget_exceeded", "refused"}


def test_the_functions_and_the_table_know_the_same_classes(driver: Driver) -> None:
    listed = driver.value("select treadle.failure_classes()")
    stored = driver.value(
        "select pg_get_constraintdef(oid) from pg_constraint where conname = 'attempts_class_check'"
    )

    assert set(re.findall("'([a-z_]+)'", stored)) == set(listed) == {*CLASSES, "rate_limit"}


def fail_once(driver: Driver, failure_class: str, retry: dict[str, Any] | None = None) -> str:
    """What becomes of a new task whose first attempt fails like this."""
    driver.enqueue(retry=retry or {})
    return driver.fail(driver.claim_one("a"), failure_class=failure_class)


@pytest.mark.parametrize("failure_class", CLASSES)
def test_by_default_all_classes_are_retried_except_permanent_ones(
    driver: Driver, failure_class: str
) -> None:
    verdict = fail_once(driver, failure_class)

    assert verdict == ("dead_lettered" if failure_class in FOR_GOOD else "retrying")


def test_with_retry_on_only_those_classes_are_retried(driver: Driver) -> None:
    policy = {"retry_on": ["timeout", "crash"]}

    verdicts = {each: fail_once(driver, each, policy) for each in CLASSES}

    assert {each for each, verdict in verdicts.items() if verdict == "retrying"} == {
        "timeout",
        "crash",
    }


def test_no_retry_on_wins_over_retry_on(driver: Driver) -> None:
    policy = {"retry_on": ["error"], "no_retry_on": ["error"]}

    assert fail_once(driver, "error", policy) == "dead_lettered"


def test_an_empty_no_retry_on_retries_everything(driver: Driver) -> None:
    verdicts = {fail_once(driver, each, {"no_retry_on": []}) for each in CLASSES}

    assert verdicts == {"retrying"}


def test_the_reapers_failures_go_by_the_same_rules(driver: Driver) -> None:
    driver.enqueue(retry={"no_retry_on": ["crash"]})

    assert driver.expire(driver.claim_one("a")).status == "dead_lettered"


def test_a_handler_that_raises_fail_is_not_retried(driver: Driver) -> None:
    driver.enqueue()

    assert driver.fail(driver.claim_one("a"), action="fail") == "dead_lettered"


def test_a_handler_that_raises_retry_is_retried_regardless_of_the_class(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")

    assert driver.fail(claim, failure_class="auth_failure", action="retry") == "retrying"


def test_a_handler_that_raises_retry_does_not_get_more_attempts(driver: Driver) -> None:
    driver.enqueue(max_attempts=1)

    assert driver.fail(driver.claim_one("a"), action="retry") == "dead_lettered"


def test_a_handler_that_raises_cancel_cancels_its_task(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")

    assert driver.fail(claim, "not wanted", action="cancel") == "cancelled"
    task = driver.task(claim.id)
    assert (task["status"], task["failure_reason"]) == ("cancelled", "not wanted")
    assert [each["outcome"] for each in driver.attempts(claim.id)] == ["cancelled"]


def test_after_its_last_attempt_a_task_is_dead(driver: Driver) -> None:
    driver.enqueue(max_attempts=3, retry={"strategy": "immediate"})

    verdicts = [driver.fail(driver.claim_one("a")) for _ in range(3)]

    assert verdicts == ["ready", "ready", "dead_lettered"]


@pytest.mark.requirement("R2")
def test_the_last_error_is_kept_on_the_task(driver: Driver) -> None:
    driver.enqueue(retry={"strategy": "immediate"})
    driver.fail(driver.claim_one("a"), "first error", failure_class="timeout")
    claim = driver.claim_one("a")
    driver.fail(claim, "second error")

    task = driver.task(claim.id)
    assert (task["failure_class"], task["failure_reason"]) == ("error", "second error")


def test_a_task_that_is_completed_in_the_end_has_no_failure(driver: Driver) -> None:
    driver.enqueue(retry={"strategy": "immediate"})
    driver.fail(driver.claim_one("a"))
    claim = driver.claim_one("a")
    driver.complete(claim)

    task = driver.task(claim.id)
    assert (task["failure_class"], task["failure_reason"]) == (None, None)
    assert len(driver.attempts(claim.id)) == 1


def test_a_release_counts_no_attempt_and_leaves_no_failure(driver: Driver) -> None:
    driver.enqueue(max_attempts=1)
    for _ in range(5):
        assert driver.release(driver.claim_one("a")) == "released"

    claim = driver.claim_one("a")

    assert claim.attempt == 1
    assert driver.attempts(claim.id) == []


def test_a_rate_limit_burns_no_attempt(driver: Driver) -> None:
    driver.enqueue(max_attempts=1)
    for _ in range(5):
        claim = driver.claim_one("a")
        assert claim.attempt == 1
        verdict = driver.fail(claim, "slow down", failure_class="rate_limit", retry_after=30)
        assert verdict == "retrying"
        driver.fall_due(claim.id)

    claim = driver.claim_one("a")
    assert driver.complete(claim) == "completed"
    assert {each["outcome"] for each in driver.attempts(claim.id)} == {"rate_limited"}
    assert driver.task(claim.id)["rate_limits"] == 5


def test_rate_limits_are_bounded_in_number(driver: Driver) -> None:
    driver.enqueue(max_attempts=1, retry={"max_rate_limits": 2})
    verdicts = []
    for _ in range(3):
        claim = driver.claim_one("a")
        verdicts.append(driver.fail(claim, failure_class="rate_limit", retry_after=0))

    assert verdicts == ["ready", "ready", "dead_lettered"]


def test_a_long_error_is_cut_and_never_refused(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")

    assert driver.fail(claim, "é" * 1_000_000) == "retrying"
    assert len(driver.attempts(claim.id)[0]["error"]) == 20_000
    assert len(driver.task(claim.id)["failure_reason"]) == 2_000
