"""A delay set under a wrong clock lasts for its own length, not for the whole clock jump."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.drivers.claims import break_updates
from tests.drivers.engine import Driver

pytestmark = pytest.mark.requirement("B16")

DAY = timedelta(days=1)
NOW = timedelta(0)
TWO_SECONDS = {"strategy": "fixed", "initial_delay_s": 2, "jitter": False}
LONG_JITTER = {"strategy": "fixed", "initial_delay_s": 200, "max_delay_s": 200, "jitter": True}


def failed(driver: Driver, *, retry: object = TWO_SECONDS, **options: Any) -> UUID:
    """A task whose attempt has just failed and that will be tried again."""
    task_id = driver.enqueue(retry=retry)
    assert driver.fail(driver.claim_one("a"), **options) == "retrying"
    return task_id


def dead_and_retried(driver: Driver) -> UUID:
    """A dead letter that an operator lets run again after two seconds."""
    task_id = driver.enqueue(max_attempts=1)
    driver.fail(driver.claim_one("a"))
    driver.rows(
        "select treadle.resolve_dead_letters(array[id], 'retry', p_delay_s => 2)"
        " from treadle.dead_letters"
    )
    return task_id


def delayed_node(driver: Driver) -> UUID:
    """A task of a DAG that runs two seconds after the DAG was made."""
    dag = '{"name": "x", "tasks": [{"type": "code", "delay_s": 2}]}'
    driver.rows("select treadle.create_dag(%s)", dag)
    return UUID(str(driver.value("select id from treadle.tasks")))


WAITS: dict[str, tuple[Callable[[Driver], UUID], float, float]] = {
    "a retry by its policy": (failed, 2, 2),
    "a retry with jitter": (lambda driver: failed(driver, retry=LONG_JITTER), 100, 300),
    "a retry that its handler asked for": (
        lambda driver: failed(driver, retry_after=3600),
        3600,
        3600,
    ),
    "a rate limit": (
        lambda driver: failed(driver, failure_class="rate_limit", retry_after=7200),
        7200,
        7200,
    ),
    "a task with a delay": (lambda driver: driver.enqueue(delay_s=2), 2, 2),
    "a task of a DAG with a delay": (delayed_node, 2, 2),
    "a dead letter that is tried again later": (dead_and_retried, 2, 2),
}


def due_in(driver: Driver, task_id: UUID) -> float:
    """Seconds until a waiting task is due, by the clock of the database."""
    query = """
        select extract(epoch from coalesce(retry_at, run_at) - treadle.clock())
        from treadle.tasks where id = %s
    """
    return float(driver.value(query, task_id))


@pytest.mark.parametrize("name", WAITS)
def test_a_delay_made_a_day_ahead_is_over_after_its_own_length(driver: Driver, name: str) -> None:
    make, least, most = WAITS[name]
    driver.set_clock(DAY)
    task_id = make(driver)

    driver.set_clock(NOW)
    assert driver.promote() == []

    # The wait that is left is no longer than the delay, and no shorter than what has passed since.
    assert least - 30 <= due_in(driver, task_id) <= most
    driver.set_clock(timedelta(seconds=most))
    assert [each.id for each in driver.promote()] == [task_id]
    assert driver.state_of(task_id) == "ready"


def test_a_clock_that_is_set_back_after_the_failure_is_the_same(driver: Driver) -> None:
    task_id = failed(driver)
    driver.set_clock(-DAY)

    assert driver.promote() == []

    assert due_in(driver, task_id) <= 2


def test_a_delay_is_not_shortened_by_looking_at_it_again(driver: Driver) -> None:
    driver.set_clock(timedelta(seconds=60))
    task_id = failed(driver, retry={**TWO_SECONDS, "initial_delay_s": 250})
    driver.set_clock(NOW)
    driver.promote()
    [(first,)] = driver.rows("select retry_at from treadle.tasks where id = %s", task_id)

    driver.set_clock(timedelta(seconds=5))
    driver.promote()
    driver.promote()

    assert driver.rows("select retry_at from treadle.tasks where id = %s", task_id) == [(first,)]


def test_a_delay_made_under_a_right_clock_is_left_alone(driver: Driver) -> None:
    task_id = failed(driver, retry_after=3600)
    before = driver.task(task_id)

    assert driver.promote() == []

    assert driver.task(task_id) == before


def test_a_moment_that_a_caller_named_is_a_wish_and_stays(driver: Driver) -> None:
    moment = datetime(2999, 1, 1, tzinfo=UTC)
    driver.set_clock(timedelta(days=365 * 970))
    task_id = driver.enqueue(run_at=moment.isoformat())
    driver.set_clock(NOW)

    assert driver.promote() == []

    assert driver.task(task_id)["run_at"] == moment


def test_a_bad_row_does_not_stop_the_others(fresh: Driver) -> None:
    fresh.set_clock(DAY)
    tasks = [failed(fresh) for _ in range(3)]
    fresh.set_clock(NOW)
    break_updates(fresh, tasks[1])

    problems = fresh.promote()

    assert [(each.id, "row is bad" in str(each.problem)) for each in problems] == [(tasks[1], True)]
    assert due_in(fresh, tasks[0]) <= 2
    assert due_in(fresh, tasks[2]) <= 2
    assert due_in(fresh, tasks[1]) > 3600
    assert fresh.promote(skip=[tasks[1]]) == []
