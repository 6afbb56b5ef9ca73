"""Finished tasks are pruned once they are older than their queue keeps them."""

from datetime import timedelta
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.retention import DAY, KEEP, age, archived, complete_one, die, exists, keep, prune

MICROSECOND = timedelta(microseconds=1)


def cancelled(driver: Driver) -> Any:
    task = driver.enqueue()
    assert driver.cancel(task) == ["cancelled"]
    return task


def resolved(driver: Driver) -> Any:
    """A dead letter that a person decided to leave at that."""
    task = die(driver)
    assert driver.retry(task, "cancel") == "cancelled"
    return task


def revived(driver: Driver) -> Any:
    task = die(driver)
    assert driver.retry(task) == "ready"
    return task


@pytest.mark.requirement("B9")
@pytest.mark.parametrize(
    ("make", "settings", "goes"),
    [
        (complete_one, {}, False),
        (complete_one, {"keep_completed_s": 86400}, True),
        (complete_one, {"keep_completed_s": 3 * 86400}, False),
        (complete_one, {"keep_cancelled_s": 0, "keep_dead_s": 0}, False),
        (cancelled, {"keep_cancelled_s": 86400}, True),
        (cancelled, {"keep_completed_s": 0, "keep_dead_s": 0}, False),
        (die, {"keep_completed_s": 0, "keep_cancelled_s": 0}, False),
        (die, {"keep_dead_s": 86400}, True),
        (resolved, {"keep_cancelled_s": 86400}, True),
        (revived, {"keep_completed_s": 0, "keep_cancelled_s": 0, "keep_dead_s": 0}, False),
        (lambda driver: driver.enqueue(), {**KEEP, "keep_dead_s": 0}, False),
    ],
    ids=[
        "nothing is said",
        "completed and old",
        "completed and not old enough",
        "completed, others are told",
        "cancelled and old",
        "cancelled, others are told",
        "a dead letter that waits for a person",
        "a dead letter, when told",
        "a dead letter that was decided about",
        "a dead letter that came back",
        "a task that is ready",
    ],
)
def test_a_task_is_pruned_or_kept_by_its_state_and_settings(
    driver: Driver, make: Any, settings: dict[str, Any], goes: bool
) -> None:
    if settings:
        keep(driver, **settings)
    task = make(driver)
    age(driver)

    assert prune(driver) == int(goes)

    assert exists(driver, task) is not goes
    assert (archived(driver, task) is not None) is goes


@pytest.mark.requirement("B9")
def test_a_task_goes_exactly_when_its_time_is_over(driver: Driver) -> None:
    keep(driver, keep_completed_s=86400)
    task = complete_one(driver)
    driver.set_clock(timedelta(0))
    at = "update public.test_clock set stopped_at = %s"
    ended = driver.task(task)["completed_at"]

    driver.rows(at, ended + DAY - MICROSECOND)
    assert prune(driver) == 0
    driver.rows(at, ended + DAY)
    assert prune(driver) == 1


@pytest.mark.requirement("B9")
def test_each_queue_has_its_own_age_and_way(driver: Driver) -> None:
    keep(driver, "short", keep_completed_s=3600, prune_mode="drop")
    keep(driver, "long", keep_completed_s=30 * 86400)
    dropped = complete_one(driver, queue="short")
    stays = [complete_one(driver, queue="long"), complete_one(driver)]
    age(driver)

    assert prune(driver) == 1

    assert not exists(driver, dropped)
    assert archived(driver, dropped) is None
    assert all(exists(driver, task) for task in stays)


def test_the_table_is_pruned_in_small_steps_each_after_the_last(
    driver: Driver,
) -> None:
    keep(driver, keep_completed_s=0)
    driver.enqueue_batch([{"n": n} for n in range(130)])
    for claim in driver.claim(limit=130):
        driver.complete(claim)
    query = "select place::text, pruned from treadle.prune_tasks(%s::tid, 50)"

    place: str | None = "(0,0)"
    seen = []
    while place is not None:
        [(place, pruned)] = driver.rows(query, place)
        seen.append(pruned)

    assert seen == [50, 50, 30]


def test_a_result_that_its_consumer_has_not_taken_stays(driver: Driver) -> None:
    keep(driver)
    task = complete_one(driver, consumer="me")
    age(driver)
    assert prune(driver) == 0

    assert len(driver.rows("select * from treadle.take_results('me')")) == 1

    assert prune(driver) == 1
    assert not exists(driver, task)


def test_the_key_of_a_pruned_task_can_be_used_again(driver: Driver) -> None:
    keep(driver)
    complete_one(driver, key="k")
    assert not driver.enqueue_batch([{}], keys=["k"])[0].created
    age(driver)

    prune(driver)

    assert driver.enqueue_batch([{}], keys=["k"])[0].created


def test_settings_are_read_back_and_null_keeps_for_ever_again(driver: Driver) -> None:
    keep(driver, keep_completed_s=60, prune_mode="drop")
    complete_one(driver)
    age(driver)

    keep(driver, keep_completed_s=None)

    assert prune(driver) == 0
    ages = "select keep_s, mode from treadle.retention_status where what = 'completed'"
    assert driver.rows(ages) == [(None, "drop")]


@pytest.mark.parametrize(
    "settings",
    [{"keep_completed_s": -1}, {"keep_dead_s": 1e12}, {"prune_mode": "burn"}, {"keep": 5}],
)
def test_a_wrong_age_or_way_is_refused(driver: Driver, settings: dict[str, Any]) -> None:
    with unchanged(driver), refused("TR001"):
        driver.rows("select treadle.define_queue('default', %s)", Jsonb(settings))


@pytest.mark.parametrize(("kind", "seconds"), [("tasks", 1), ("events", -1), (None, 1)])
def test_other_records_have_fixed_names_and_ages(
    driver: Driver, kind: str | None, seconds: int
) -> None:
    with unchanged(driver), refused("TR001"):
        driver.rows("select treadle.set_retention(%s, %s)", kind, seconds)


def test_a_bad_row_is_reported_and_the_others_go(fresh: Driver) -> None:
    keep(fresh)
    good = [complete_one(fresh) for _ in range(3)]
    bad = complete_one(fresh, title="bad")
    fresh.rows(
        """
        create function trap() returns trigger language plpgsql as $$
        begin
          raise exception 'this row is broken';
        end $$;
        create trigger trap before delete on treadle.tasks
        for each row when (old.title = 'bad') execute function trap();
        """
    )
    age(fresh)

    [(pruned, found, problems)] = fresh.rows(
        "select pruned, bad, problems from treadle.prune_tasks()"
    )

    assert (pruned, found, problems) == (3, [bad], ["this row is broken"])
    assert not any(exists(fresh, task) for task in good)
    assert archived(fresh, bad) is None
    assert prune(fresh, skip=[bad]) == 0
