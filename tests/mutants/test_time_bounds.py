"""The guards of points in time: each is broken once, and a test must notice."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.mutants import Killers, Mutant

moments = Killers("engine.test_time_bounds")

pytestmark = pytest.mark.mutant

MUTANTS = {
    "anything after 1970": Mutant(
        "is_valid_time",
        {"and p_at <= timestamptz '9999-12-31 00:00:00+00'": ""},
        moments.test_a_deadline_is_one_that_can_be_read,
        (AssertionError, psycopg.Error),
    ),
    "anything before 9999": Mutant(
        "is_valid_time",
        {"p_at >= timestamptz '1970-01-01 00:00:00+00'": "true"},
        moments.test_a_start_is_one_that_can_be_read,
        (AssertionError, psycopg.Error),
    ),
    "a sleep of any length": Mutant(
        "suspend_task",
        {"not treadle.is_valid_time(p_run_at) or p_run_at > v_now + interval '10 years'": "false"},
        moments.test_a_task_sleeps_until_a_moment_that_can_be_read,
        (AssertionError, psycopg.Error),
    ),
    "a wait that ended before there were any": Mutant(
        "expiry_of",
        {"not treadle.is_valid_time(v_at) or": ""},
        moments.test_a_wait_expires_at_a_moment_that_can_be_read,
        (AssertionError, psycopg.Error),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    MUTANTS[name].check(fresh)
