"""The promoter readies tasks when they are due, not earlier, and a bad row does not stop it."""

from datetime import timedelta
from uuid import UUID

import pytest

from tests.drivers.claims import break_updates
from tests.drivers.engine import Driver
from tests.drivers.races import flat, together

pytestmark = pytest.mark.requirement("F13")

FIXED = {"strategy": "fixed", "initial_delay_s": 100, "jitter": False}


def retrying(driver: Driver, count: int = 1) -> list[UUID]:
    """Tasks that failed and wait 100 seconds for their retry."""
    driver.enqueue_batch([{}] * count, retry=FIXED)
    claims = driver.claim("a", count)
    for claim in claims:
        assert driver.fail(claim) == "retrying"
    return [claim.id for claim in claims]


def test_a_retry_is_made_ready_when_its_delay_is_over_and_not_before(driver: Driver) -> None:
    [task_id] = retrying(driver)
    driver.set_clock(timedelta(seconds=90))
    assert driver.promote() == []

    driver.set_clock(timedelta(seconds=100))

    assert [each.id for each in driver.promote()] == [task_id]
    assert driver.state_of(task_id) == "ready"
    assert driver.task(task_id)["retry_at"] is None


def test_a_task_is_made_ready_when_its_time_to_run_has_come_and_not_before(
    driver: Driver,
) -> None:
    task_id = driver.enqueue(delay_s=100)
    driver.set_clock(timedelta(seconds=90))
    assert driver.promote() == []

    driver.set_clock(timedelta(seconds=100))

    assert [each.id for each in driver.promote()] == [task_id]
    assert driver.claim_one("a").id == task_id


def test_nothing_else_is_touched(driver: Driver) -> None:
    held, running = driver.enqueue(hold=True), driver.enqueue()
    driver.claim_one("a")
    driver.set_clock(timedelta(days=1))

    assert driver.promote() == []
    assert (driver.state_of(held), driver.state_of(running)) == ("created", "running")


def test_the_next_due_moment_is_the_earliest_retry_or_time_to_run(driver: Driver) -> None:
    driver.set_clock(timedelta(0), stopped=True)
    assert driver.value("select treadle.next_due_at()") is None
    late = driver.enqueue(delay_s=3600)
    assert driver.value("select treadle.next_due_at()") == driver.task(late)["run_at"]

    [soon] = retrying(driver)

    due = driver.value("select treadle.next_due_at()")
    assert due == driver.task(soon)["retry_at"]
    assert due == driver.value("select treadle.clock()") + timedelta(seconds=100)


def test_what_has_been_due_longest_is_made_ready_first(driver: Driver) -> None:
    ids = [driver.enqueue(delay_s=seconds) for seconds in (30, 10, 20)]
    driver.set_clock(timedelta(minutes=1))

    order = [driver.promote(1)[0].id for _ in range(3)]

    assert order == [ids[1], ids[2], ids[0]]


def test_eight_promoters_at_once_make_each_task_ready_once(driver: Driver) -> None:
    ids = retrying(driver, 100) + [driver.enqueue(delay_s=50) for _ in range(20)]
    driver.set_clock(timedelta(minutes=5))

    def promote(session: Driver, _: int) -> list[UUID]:
        found = []
        while session.value("select treadle.next_due_at()") is not None:
            found += [each.id for each in session.promote(10)]
        return found

    promoted = flat(together(driver, 8, promote))

    assert sorted(promoted) == sorted(ids)


def test_a_row_that_cannot_be_moved_is_reported_and_does_not_stop_the_others(
    fresh: Driver,
) -> None:
    ids = retrying(fresh, 4)
    bad = ids[1]
    break_updates(fresh, bad)
    fresh.set_clock(timedelta(minutes=5))

    promoted = fresh.promote()

    assert sorted(each.id for each in promoted) == sorted(ids)
    assert {each.id: each.problem for each in promoted if each.problem} == {bad: "this row is bad"}
    assert [fresh.state_of(task_id) for task_id in ids] == ["ready", "retrying", "ready", "ready"]


def test_a_bad_row_at_the_head_does_not_keep_the_others_waiting_when_it_is_skipped(
    fresh: Driver,
) -> None:
    ids = [fresh.enqueue(delay_s=seconds) for seconds in (1, 2, 3)]
    break_updates(fresh, ids[0])
    fresh.set_clock(timedelta(minutes=5))
    assert [each.problem for each in fresh.promote(1)] == ["this row is bad"]

    assert [each.id for each in fresh.promote(1, skip=[ids[0]])] == [ids[1]]
    assert [each.id for each in fresh.promote(1, skip=[ids[0]])] == [ids[2]]
