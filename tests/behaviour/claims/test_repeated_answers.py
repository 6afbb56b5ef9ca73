"""A call with a lost response may be repeated: it returns already and has one effect."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged

pytestmark = pytest.mark.requirement("F2")


def test_a_repeated_completion_returns_already_and_keeps_the_first_output(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    assert driver.complete(claim, {"n": 1}) == "completed"

    with unchanged(driver):
        assert driver.complete(claim, {"n": 2}) == "already"
        assert driver.value(
            "select treadle.complete_task(%s, %s, '{}')", claim.id, claim.token
        ) == ("already")

    assert driver.task(claim.id)["output"] == {"n": 1}


def test_a_repeated_failure_returns_already_and_counts_one_attempt(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    assert driver.fail(claim) == "retrying"

    with unchanged(driver):
        assert driver.fail(claim) == "already"

    assert len(driver.attempts(claim.id)) == 1


def test_a_repeated_release_returns_already_and_restores_one_attempt(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    assert driver.release(claim) == "released"

    with unchanged(driver):
        assert driver.release(claim) == "already"

    assert driver.task(claim.id)["attempt"] == 0


def test_a_repeated_cancellation_returns_already(driver: Driver) -> None:
    task_id = driver.enqueue()
    assert driver.cancel(task_id, reason="not needed") == ["cancelled"]

    with unchanged(driver):
        assert driver.cancel(task_id, reason="another") == ["already"]

    assert driver.task(task_id)["failure_reason"] == "not needed"


def test_a_completion_that_returns_already_means_that_the_result_is_stored(driver: Driver) -> None:
    driver.enqueue(max_attempts=1)
    failed = driver.claim_one("a")
    driver.fail(failed)

    assert driver.complete(failed, {"n": 1}) == "stale"
    with refused("TR101"):
        driver.rows("select treadle.complete_task(%s, %s)", failed.id, failed.token)


def test_a_failure_after_its_own_completion_is_not_taken_for_a_repeat(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.complete(claim)

    with unchanged(driver):
        assert driver.fail(claim) == "stale"
        assert driver.release(claim) == "stale"


def test_a_task_named_twice_in_one_call_is_ended_once(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    pair = ([claim.id, claim.id], [claim.token, claim.token])

    rows = driver.rows("select verdict from treadle.complete_tasks(%s, %s)", *pair)

    assert rows == [("completed",), ("completed",)]


def test_a_failure_named_twice_in_one_call_is_one_attempt(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    pair = ([claim.id, claim.id], [claim.token, claim.token])

    rows = driver.rows("select verdict from treadle.fail_tasks(%s, %s)", *pair)

    assert rows == [("retrying",), ("retrying",)]
    assert len(driver.attempts(claim.id)) == 1


def test_an_old_and_a_new_claim_of_a_task_in_one_call_get_their_own_verdicts(
    driver: Driver,
) -> None:
    driver.enqueue(retry={"strategy": "immediate"})
    old = driver.claim_one("a")
    driver.expire(old)
    new = driver.claim_one("a")
    pair = ([old.id, new.id], [old.token, new.token])

    rows = driver.rows("select verdict from treadle.complete_tasks(%s, %s)", *pair)

    assert rows == [("stale",), ("completed",)]
