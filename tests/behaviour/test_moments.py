"""No time gets in that a client could not read back: one such row would spoil every list."""

import psycopg
import pytest

from tests.behaviour.driver import Driver
from tests.behaviour.expect import refused, unchanged
from tests.behaviour.mutant import Mutant
from tests.behaviour.waiting import claimed, open_wait

EARLY = ("0001-01-01T00:00:00+14:00", "1969-12-31T23:59:59Z", "-infinity")
LATE = ("9999-12-31T23:59:59-14:00", "9999-12-31T00:00:01Z", "infinity")


def test_a_deadline_is_one_that_can_be_read(driver: Driver) -> None:
    for wrong in (*EARLY, *LATE):
        with unchanged(driver), refused("TR001", "deadline_at must be a moment"):
            driver.enqueue(deadline_at=wrong)
    for right in ("1970-01-01T00:00:00Z", "9999-12-31T00:00:00Z"):
        assert driver.task(driver.enqueue(deadline_at=right))["deadline_at"] is not None


def test_a_start_is_one_that_can_be_read(driver: Driver) -> None:
    for wrong in (*EARLY, *LATE):
        with unchanged(driver), refused("TR001", "run_at must be a moment within ten years"):
            driver.enqueue(run_at=wrong)


def test_a_task_sleeps_until_a_moment_that_can_be_read(driver: Driver) -> None:
    claim = claimed(driver)
    for wrong in (*EARLY, *LATE, "2300-01-01T00:00:00Z"):
        with unchanged(driver), refused("TR001", "run_at must be a moment within ten years"):
            driver.rows(
                "select treadle.suspend_task(%s, %s, p_run_at => %s)", claim.id, claim.token, wrong
            )


def test_a_wait_expires_at_a_moment_that_can_be_read(driver: Driver) -> None:
    claim = claimed(driver)
    for wrong in (*EARLY, *LATE):
        with unchanged(driver), refused("TR001", "expires_at must be a moment within ten years"):
            open_wait(driver, claim, {"question": "Ship it?", "expires_at": wrong})


@pytest.mark.parametrize("column", ["run_at", "deadline_at"])
def test_nobody_gets_past_the_table(driver: Driver, column: str) -> None:
    driver.enqueue()
    for wrong in (*EARLY, *LATE):
        with pytest.raises(psycopg.errors.CheckViolation, match="tasks_times_check"):
            driver.rows(f"update treadle.tasks set {column} = %s", wrong)


MUTANTS = {
    "anything after 1970": Mutant(
        "is_moment",
        {"and p_at <= timestamptz '9999-12-31 00:00:00+00'": ""},
        test_a_deadline_is_one_that_can_be_read,
        (AssertionError, psycopg.Error),
    ),
    "anything before 9999": Mutant(
        "is_moment",
        {"p_at >= timestamptz '1970-01-01 00:00:00+00'": "true"},
        test_a_start_is_one_that_can_be_read,
        (AssertionError, psycopg.Error),
    ),
    "a sleep of any length": Mutant(
        "suspend_task",
        {"not treadle.is_moment(p_run_at) or p_run_at > v_now + interval '10 years'": "false"},
        test_a_task_sleeps_until_a_moment_that_can_be_read,
        (AssertionError, psycopg.Error),
    ),
    "a wait that ended before there were any": Mutant(
        "expiry_of",
        {"not treadle.is_moment(v_at) or": ""},
        test_a_wait_expires_at_a_moment_that_can_be_read,
        (AssertionError, psycopg.Error),
    ),
}


@pytest.mark.mutant
@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    mutant = MUTANTS[name]
    fresh.conn.execute(mutant.text().encode())

    with pytest.raises(mutant.noticed):
        mutant.killer(fresh)
