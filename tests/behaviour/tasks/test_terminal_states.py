"""Terminal is terminal: only an explicit decision of an operator leaves a final state."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from treadle.models import Claim

pytestmark = pytest.mark.requirement("F2")


def ended(driver: Driver, how: str) -> Claim:
    """A claim whose task has ended in this state."""
    driver.enqueue(max_attempts=1)
    claim = driver.claim_one("a")
    if how == "completed":
        driver.complete(claim, {"n": 1})
    elif how == "dead_lettered":
        driver.fail(claim)
    else:
        driver.cancel(claim.id)
    assert driver.state_of(claim.id) == how
    return claim


@pytest.mark.parametrize("how", ["completed", "dead_lettered", "cancelled"])
def test_no_answer_and_no_process_moves_a_task_that_has_ended(driver: Driver, how: str) -> None:
    claim = ended(driver, how)

    with unchanged(driver):
        driver.complete(claim, {"n": 2})
        driver.fail(claim)
        driver.release(claim)
        driver.start(claim)
        driver.heartbeat(claim, {"value": 1})
        driver.reap()
        driver.promote()
        assert driver.claim("b") == []


@pytest.mark.parametrize("how", ["completed", "dead_lettered"])
def test_a_task_that_has_ended_cannot_be_cancelled(driver: Driver, how: str) -> None:
    claim = ended(driver, how)

    with unchanged(driver):
        assert driver.cancel(claim.id) == ["ended"]
        with refused("TR102", f"is {how} and cannot become cancelled"):
            driver.rows("select treadle.cancel_task(%s)", claim.id)


@pytest.mark.requirement("F16")
def test_a_completed_task_cannot_be_retried(driver: Driver) -> None:
    claim = ended(driver, "completed")

    with unchanged(driver):
        for resolution, changes in [
            ("retry", {}),
            ("cancel", {}),
            ("modify_and_retry", {"priority": 1}),
        ]:
            with refused("TR102", "is completed and cannot become"):
                driver.retry(claim.id, resolution, changes)

    assert driver.task(claim.id)["output"] == {"n": 1}


@pytest.mark.requirement("F16")
@pytest.mark.parametrize("how", ["dead_lettered", "cancelled"])
def test_an_operator_brings_back_a_task_that_has_ended(driver: Driver, how: str) -> None:
    claim = ended(driver, how)

    assert driver.retry(claim.id) == "ready"

    again = driver.claim_one("b")
    assert (again.id, again.attempt) == (claim.id, 2)
    assert again.token != claim.token
