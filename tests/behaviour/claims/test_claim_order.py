"""An agent gets the most urgent eligible task: by priority, then by age."""

import random
from datetime import timedelta
from uuid import UUID

import pytest

from tests.drivers.claims import claim_all
from tests.drivers.engine import Driver

pytestmark = [pytest.mark.requirement("F7"), pytest.mark.requirement("F8")]


def by_effective_priority(driver: Driver) -> list[UUID]:
    """The ready tasks, sorted the slow way."""
    rows = driver.rows(
        """
        select id from treadle.tasks where status = 'ready'
        order by treadle.effective_priority(id), id
        """
    )
    return [row[0] for row in rows]


def test_a_lower_priority_number_is_claimed_first(driver: Driver) -> None:
    later, soon, normal = (driver.enqueue(priority=given) for given in (80, 5, 50))

    assert claim_all(driver, 1) == [soon, normal, later]


def test_among_equals_the_oldest_is_claimed_first(driver: Driver) -> None:
    ids = [driver.enqueue(priority=50, ageing_rate=0) for _ in range(20)]

    assert claim_all(driver, 7) == ids


def test_tasks_of_one_batch_are_claimed_in_the_order_given(driver: Driver) -> None:
    made = driver.enqueue_batch([{"n": n} for n in range(50)])

    assert claim_all(driver, 8) == [each.id for each in made]


def test_waiting_makes_a_task_more_urgent(driver: Driver) -> None:
    old = driver.enqueue(priority=50, ageing_rate=1)
    driver.set_clock(timedelta(minutes=30))
    fresh = driver.enqueue(priority=30, ageing_rate=1)
    driver.set_clock(timedelta(minutes=30, seconds=1))

    assert float(driver.value("select treadle.effective_priority(%s)", old)) < 20.1
    assert claim_all(driver, 1) == [old, fresh]


def test_no_task_waits_for_ever_behind_more_urgent_ones(driver: Driver) -> None:
    background = driver.enqueue(priority=100)
    claimed_after = None
    for hour in range(1, 100):
        driver.set_clock(timedelta(hours=hour))
        driver.enqueue(priority=10)
        if driver.claim_one("a").id == background:
            claimed_after = hour
            break

    # 90 points at 0.1 a minute are 15 hours.
    assert claimed_after == 15


def test_a_task_with_a_time_to_run_ages_from_that_time_on(driver: Driver) -> None:
    waits = driver.enqueue(priority=50, ageing_rate=1, delay_s=3600)
    driver.set_clock(timedelta(minutes=61))
    driver.promote()

    effective = float(driver.value("select treadle.effective_priority(%s)", waits))

    assert 48.9 < effective < 49.1


@pytest.mark.parametrize("batch", [1, 3, 64])
def test_over_several_lanes_the_order_is_that_of_the_effective_priority(
    driver: Driver, batch: int
) -> None:
    chance = random.Random(batch)
    driver.agent("a", capabilities=["x", "y"])
    driver.rows("select treadle.define_queue('other', '{}')")
    for hour in range(6):
        driver.set_clock(timedelta(hours=hour))
        for _ in range(12):
            driver.enqueue(
                queue=chance.choice(["default", "other"]),
                type=chance.choice(["code", "test"]),
                priority=chance.randint(0, 100),
                ageing_rate=chance.choice([0, 0.1, 0.5, 2]),
                capabilities=chance.choice([[], ["x"], ["x", "y"]]),
            )
    driver.set_clock(timedelta(hours=7), stopped=True)
    # No two alike, so that there is one right order.
    driver.rows(
        """
        update treadle.tasks set rank = rank + row.n
        from (select id, row_number() over (order by id) as n from treadle.tasks) as row
        where row.id = tasks.id
        """
    )
    wanted = by_effective_priority(driver)

    claimed = claim_all(driver, batch, queues=["default", "other"])

    assert len(claimed) == 72
    assert driver.value("select count(distinct lane_id) > 20 from treadle.tasks")
    assert claimed == wanted


def test_only_the_types_and_queues_asked_for_are_claimed(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('other', '{}')")
    wanted = driver.enqueue(queue="other", type="test")
    driver.enqueue(queue="other", type="code")
    driver.enqueue(queue="default", type="test")

    assert claim_all(driver, queues=["other"], types=["test"]) == [wanted]


def test_the_head_of_a_lane_is_taken_although_others_are_locked(driver: Driver) -> None:
    ids = [driver.enqueue(type=each) for each in ("code", "test", "code", "test")]
    other = driver.another()
    driver.rows("begin")
    assert [claim.id for claim in driver.claim("a", 2)] == ids[:2]

    assert [claim.id for claim in other.claim("b", 10)] == ids[2:]

    driver.rows("commit")


@pytest.mark.parametrize("limit", [1, 3])
def test_tasks_that_others_have_locked_are_replaced_by_later_ones(
    driver: Driver, limit: int
) -> None:
    ids = [driver.enqueue(type=each, ageing_rate=0) for each in ("code", "test") * 6]
    other = driver.another()
    driver.rows("begin")
    assert [claim.id for claim in driver.claim("a", 6)] == ids[:6]

    assert [claim.id for claim in other.claim("b", limit)] == ids[6 : 6 + limit]

    driver.rows("commit")
