"""A task enqueued with hold cannot be claimed until it is released."""

from datetime import timedelta
from uuid import uuid4

import pytest

from tests.drivers.engine import Driver
from tests.drivers.races import while_held

pytestmark = pytest.mark.requirement("F2")

UNHOLD = "select verdict from treadle.release_held_tasks(%s)"


def test_a_held_task_is_claimable_once_it_is_released(driver: Driver) -> None:
    task_id = driver.enqueue(hold=True)
    assert driver.claim("a") == []

    assert driver.rows(UNHOLD, [task_id]) == [("ready",)]

    assert driver.claim_one("a").id == task_id


def test_a_released_task_with_a_time_to_run_waits_for_that_time(driver: Driver) -> None:
    task_id = driver.enqueue(hold=True, delay_s=60)
    driver.set_clock(timedelta(minutes=2))
    assert driver.promote() == [], "held is held, also when its time comes"
    driver.set_clock(timedelta(0))

    assert driver.rows(UNHOLD, [task_id]) == [("pending",)]

    driver.fall_due(task_id)
    assert driver.state_of(task_id) == "ready"


def test_releasing_returns_each_state_and_changes_only_held_tasks(driver: Driver) -> None:
    held, gone = driver.enqueue(hold=True), driver.enqueue(hold=True)
    driver.cancel(gone)
    driver.enqueue()
    running = driver.claim_one("a").id

    rows = driver.rows(UNHOLD, [running, held, gone, uuid4(), held])

    assert [row[0] for row in rows] == ["running", "ready", "cancelled", "unknown", "ready"]
    assert driver.rows(UNHOLD, [held]) == [("ready",)], "a repeat"


def test_a_task_that_is_changed_concurrently_is_still_released(
    driver: Driver,
) -> None:
    task_id = driver.enqueue(hold=True)

    rows = while_held(
        driver,
        lambda first: first.rows("update treadle.tasks set title = 'x' where id = %s", task_id),
        lambda late: late.rows(UNHOLD, [task_id]),
    )

    assert rows == [("ready",)]
