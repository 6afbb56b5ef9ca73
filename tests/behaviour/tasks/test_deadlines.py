"""A deadline makes a task more urgent as it approaches, at an increasing rate."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.drivers.claims import break_updates
from tests.drivers.deadlines import ERROR, LEAST, boost, claimed_as, enqueue_due, exact, rerank
from tests.drivers.engine import Driver
from tests.drivers.races import together
from treadle import Treadle
from treadle.services.promoter import Promoter

pytestmark = pytest.mark.requirement("F7")

MOMENTS = [70, 60, 50, 40, 30, 20, 10, 0]


def stop(driver: Driver, minutes: float = 0) -> datetime:
    """Stop the clock so many minutes ahead; the moment."""
    driver.set_clock(timedelta(minutes=minutes), stopped=True)
    moment: datetime = driver.value("select treadle.clock()")
    return moment


def go_to(driver: Driver, moment: datetime) -> None:
    driver.rows("update public.test_clock set stopped_at = %s", moment)


@pytest.mark.parametrize(
    ("minutes", "points"), [(-5, 128), (0, 128), (10, 64), (20, 32), (60, 2), (70, 1), (80, 0.5)]
)
def test_the_boost_of_a_deadline_halves_every_ten_minutes_before_it(
    driver: Driver, minutes: float, points: float
) -> None:
    stop(driver)
    task = enqueue_due(driver, minutes, priority=100, ageing_rate=0)

    assert exact(driver, task) == pytest.approx(100 - points, abs=1e-5)


def test_a_deadline_far_away_is_worth_nothing(driver: Driver) -> None:
    far = driver.enqueue(priority=50, ageing_rate=0, deadline_at="9999-12-31T00:00:00Z")

    assert exact(driver, far) == 50
    assert claimed_as(driver, far) == 50


def test_a_deadline_in_the_past_is_overdue_at_once(driver: Driver) -> None:
    ancient = driver.enqueue(priority=50, ageing_rate=0, deadline_at="1970-01-01T00:00:00Z")

    assert exact(driver, ancient) == claimed_as(driver, ancient) == 50 - 128
    assert driver.task(ancient)["rerank_at"] is None


def test_a_task_is_reranked_at_exactly_eight_moments(
    driver: Driver,
) -> None:
    now = stop(driver)
    task = enqueue_due(driver, 100, priority=60, ageing_rate=0.5)
    deadline = now + timedelta(minutes=100)
    for left in MOMENTS:
        moment = deadline - timedelta(minutes=left)
        assert driver.task(task)["rerank_at"] == moment
        assert driver.value("select treadle.next_due_at()") == moment
        go_to(driver, moment - timedelta(milliseconds=10))
        assert rerank(driver) == []
        go_to(driver, moment)

        assert [each.id for each in rerank(driver)] == [task]

        wanted = 60 - 0.5 * (100 - left) - boost(left)
        assert claimed_as(driver, task) == pytest.approx(wanted, abs=1e-4)
        assert exact(driver, task) == pytest.approx(wanted, abs=1e-4)

    assert driver.task(task)["rerank_at"] is None
    go_to(driver, deadline + timedelta(days=1))
    assert rerank(driver) == []
    assert claimed_as(driver, task) == pytest.approx(60 - 0.5 * (100 + 1440) - 128, abs=1e-3)


@pytest.mark.parametrize("left", [69, 65.6, 55.6, 12.3, 5.574, 1, 0.1])
def test_between_the_moments_the_claim_is_right_within_the_bound(
    driver: Driver, left: float
) -> None:
    stop(driver)
    task = enqueue_due(driver, left, priority=50, ageing_rate=0)

    assert 0 <= exact(driver, task) - claimed_as(driver, task) <= ERROR * boost(left) + 1e-5


def test_before_the_first_moment_the_claim_is_less_than_a_point_off(driver: Driver) -> None:
    stop(driver)
    task = enqueue_due(driver, 70.01, priority=50, ageing_rate=0)

    assert 0 < claimed_as(driver, task) - exact(driver, task) < LEAST


def test_re_ranking_late_goes_to_the_present_step_at_once(driver: Driver) -> None:
    stop(driver)
    task = enqueue_due(driver, 200, priority=50, ageing_rate=0)
    stop(driver, 185)

    assert len(rerank(driver)) == 1

    assert claimed_as(driver, task) == pytest.approx(exact(driver, task), abs=ERROR * boost(15))
    assert rerank(driver) == []


def test_waiting_tasks_are_reranked_too(driver: Driver) -> None:
    stop(driver)
    held = enqueue_due(driver, 75, hold=True)
    later = enqueue_due(driver, 75, delay_s=3600)
    enqueue_due(driver, 75)
    running = driver.claim_one("a").id
    stop(driver, 10)

    assert {each.id for each in rerank(driver)} == {held, later}
    assert driver.task(running)["rerank_at"] is not None


def test_the_rate_of_a_task_stays_when_the_default_changes(driver: Driver) -> None:
    stop(driver)
    task = enqueue_due(driver, 75, priority=50)
    driver.rows("""select treadle.define_queue('default', '{"ageing_rate": 5}')""")
    stop(driver, 10)

    rerank(driver)

    assert exact(driver, task) == pytest.approx(50 - 0.1 * 10 - boost(65), abs=1e-3)
    assert float(driver.value("select ageing_rate from treadle.task_details")) == 0.1
    driver.rows("""select treadle.define_queue('default', '{"ageing_rate": null}')""")


def test_a_retried_task_keeps_the_place_of_its_deadline(driver: Driver) -> None:
    stop(driver)
    task = enqueue_due(driver, 30, priority=50, ageing_rate=0)
    driver.fail(driver.claim_one("a"), action="fail")

    driver.retry(task)

    assert claimed_as(driver, task) == pytest.approx(50 - boost(30), abs=1e-5)


def test_a_bad_row_does_not_stop_the_others(fresh: Driver) -> None:
    stop(fresh)
    good, bad = (enqueue_due(fresh, 75) for _ in range(2))
    break_updates(fresh, bad)
    stop(fresh, 10)

    found = {each.id: each.problem for each in rerank(fresh)}

    assert found == {good: None, bad: "this row is bad"}
    assert rerank(fresh, skip=(bad,)) == []


def test_promoters_side_by_side_rank_each_task_once(driver: Driver) -> None:
    stop(driver)
    for _ in range(200):
        enqueue_due(driver, 75)
    stop(driver, 10)

    found = together(driver, 4, lambda session, _: rerank(session))

    ids = [each.id for some in found for each in some]
    assert len(ids) == len(set(ids)) == 200


async def test_the_promoter_reranks_tasks(driver: Driver, app: Treadle) -> None:
    soon = datetime.now(tz=UTC) + timedelta(minutes=75)
    task = await app.enqueue("code", {}, deadline_at=soon)
    driver.set_clock(timedelta(minutes=10))
    promoter = Promoter(app.db)

    assert await promoter.tick() == 1

    assert await promoter.tick() == 0
    assert driver.task(task.id)["rerank_at"] == soon - timedelta(minutes=60)
    assert 0 < (await promoter.next_in() or 0) <= 300
