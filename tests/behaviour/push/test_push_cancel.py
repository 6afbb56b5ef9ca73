"""An entry of queue `push` is cancelled by its queue id until it has ended."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.push import entry, line, submit, take
from tests.drivers.refusals import refused, unchanged

CANCEL = "select treadle.cancel_push(%s, 'not needed', 'tester')"


@pytest.mark.requirement("Q4")
def test_cancelling_a_waiting_entry_moves_the_others_up(driver: Driver) -> None:
    made = [submit(driver, word) for word in ("first", "second")]

    assert driver.value(CANCEL, made[0]["queue_id"]) == "cancelled"

    assert line(driver) == ["second"]
    assert entry(driver, made[0]["id"])["state"] == "cancelled"
    [event] = driver.events(made[0]["id"])
    assert (event["kind"], event["actor"]) == ("task.cancelled", "tester")


@pytest.mark.requirement("Q4")
@pytest.mark.parametrize("start", [False, True])
def test_a_dispatched_entry_is_cancelled_and_its_result_is_ignored(
    driver: Driver, start: bool
) -> None:
    made = submit(driver)
    claim = take(driver, start=start)

    assert driver.value(CANCEL, made["queue_id"]) == "cancelled"

    assert driver.heartbeat(claim) == "cancelled"
    assert driver.complete(claim) != "completed"
    assert entry(driver, made["id"])["state"] == "cancelled"


@pytest.mark.requirement("Q4")
def test_cancelled_again_is_cancelled(driver: Driver) -> None:
    made = submit(driver)
    driver.value(CANCEL, made["queue_id"])

    with unchanged(driver):
        assert driver.value(CANCEL, made["queue_id"]) == "cancelled"


@pytest.mark.requirement("Q4")
def test_an_ended_entry_does_not_change(driver: Driver) -> None:
    made = submit(driver)
    driver.complete(take(driver))

    with unchanged(driver), refused("TR102", "is completed and cannot be cancelled"):
        driver.value(CANCEL, made["queue_id"])


@pytest.mark.requirement("Q4")
def test_a_task_of_another_queue_has_no_queue_id(driver: Driver) -> None:
    made = driver.enqueue()

    with unchanged(driver), refused("TR201", "in the queue"):
        driver.value(CANCEL, f"queue-{made}")


@pytest.mark.parametrize("queue_id", ["queue-abc12345", "", None, "task"])
def test_a_queue_id_that_names_nothing_is_refused(driver: Driver, queue_id: str | None) -> None:
    with refused("TR201"):
        driver.value("select treadle.cancel_push(%s::text)", queue_id)
