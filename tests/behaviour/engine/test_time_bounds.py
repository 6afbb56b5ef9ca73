"""Times that a client could not read are rejected: one such row would break every list."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.waits import claimed, open_wait

EARLY = ("0001-01-01T00:00:00+14:00", "1969-12-31T23:59:59Z", "-infinity")
LATE = ("9999-12-31T23:59:59-14:00", "9999-12-31T00:00:01Z", "infinity")


def test_a_deadline_is_one_that_can_be_read(driver: Driver) -> None:
    for wrong in (*EARLY, *LATE):
        with unchanged(driver), refused("TR001", "deadline_at must be a time"):
            driver.enqueue(deadline_at=wrong)
    for right in ("1970-01-01T00:00:00Z", "9999-12-31T00:00:00Z"):
        assert driver.task(driver.enqueue(deadline_at=right))["deadline_at"] is not None


def test_a_start_is_one_that_can_be_read(driver: Driver) -> None:
    for wrong in (*EARLY, *LATE):
        with unchanged(driver), refused("TR001", "run_at must be a time"):
            driver.enqueue(run_at=wrong)


def test_a_task_sleeps_until_a_moment_that_can_be_read(driver: Driver) -> None:
    claim = claimed(driver)
    for wrong in (*EARLY, *LATE, "2300-01-01T00:00:00Z"):
        with unchanged(driver), refused("TR001", "run_at must be a time within ten years"):
            driver.rows(
                "select treadle.suspend_task(%s, %s, p_run_at => %s)", claim.id, claim.token, wrong
            )


def test_a_wait_expires_at_a_moment_that_can_be_read(driver: Driver) -> None:
    claim = claimed(driver)
    for wrong in (*EARLY, *LATE):
        with unchanged(driver), refused("TR001", "expires_at must be a time within ten years"):
            open_wait(driver, claim, {"question": "Ship it?", "expires_at": wrong})


@pytest.mark.parametrize("column", ["run_at", "deadline_at"])
def test_direct_updates_cannot_store_an_unreadable_time(driver: Driver, column: str) -> None:
    driver.enqueue()
    for wrong in (*EARLY, *LATE):
        with pytest.raises(psycopg.errors.CheckViolation, match="tasks_times_check"):
            driver.rows(f"update treadle.tasks set {column} = %s", wrong)
