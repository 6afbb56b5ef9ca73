"""A result that arrives after its lease has expired counts until another claim is made."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import unchanged

pytestmark = pytest.mark.requirement("F10")


def test_a_late_result_is_taken_while_the_task_waits_for_its_retry(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    assert driver.expire(claim).status == "retrying"

    verdict = driver.complete(claim, {"late": True})

    task = driver.task(claim.id)
    assert verdict == "completed"
    assert (task["status"], task["output"]) == ("completed", {"late": True})
    assert (task["completed_by"], task["retry_at"]) == ("a", None)


def test_a_late_result_is_taken_while_the_task_is_ready_again(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.expire(claim)
    driver.fall_due(claim.id)

    verdict = driver.complete(claim, {"late": True})

    assert verdict == "completed"
    assert driver.state_of(claim.id) == "completed"
    assert driver.claim("b") == []


def test_a_late_result_after_a_release_is_taken(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.release(claim)

    assert driver.complete(claim, {"late": True}) == "completed"


def test_a_late_result_is_refused_after_the_dead_letter(driver: Driver) -> None:
    driver.enqueue(max_attempts=1)
    claim = driver.claim_one("a")
    assert driver.expire(claim).status == "dead_lettered"

    with unchanged(driver):
        assert driver.complete(claim, {"late": True}) == "stale"


def test_a_late_result_is_refused_after_the_cancellation(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.cancel(claim.id)

    with unchanged(driver):
        assert driver.complete(claim, {"late": True}) == "stale"


def test_a_late_result_is_refused_after_a_person_started_a_new_round(driver: Driver) -> None:
    driver.enqueue(max_attempts=1)
    claim = driver.claim_one("a")
    driver.expire(claim)
    driver.retry(claim.id)

    with unchanged(driver):
        assert driver.complete(claim, {"late": True}) == "stale"


def test_a_late_failure_does_not_count_a_second_attempt(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.expire(claim)

    with unchanged(driver):
        assert driver.fail(claim) == "already"

    assert [each["reason"] for each in driver.attempts(claim.id)] == ["heartbeat_timeout"]


def test_a_late_heartbeat_does_not_revive_a_reaped_claim(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.expire(claim)

    with unchanged(driver):
        assert driver.heartbeat(claim, {"value": 1}) == "lost"
        assert driver.start(claim) == "lost"
