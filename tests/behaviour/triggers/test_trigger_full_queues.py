"""A trigger for a full queue is retried for an hour; then it fails."""

from datetime import timedelta

import psycopg
import pytest

from tests.drivers import triggers
from tests.drivers.engine import Driver
from tests.drivers.triggers import define, emit, fill_queue, fire, make_room, trigger


def verdicts(driver: Driver) -> list[str]:
    query = "select verdict from treadle.trigger_fires order by event_id"
    return [row[0] for row in driver.rows(query)]


@pytest.mark.requirement("F18")
def test_work_for_a_full_queue_is_created_in_order_when_there_is_capacity(driver: Driver) -> None:
    fill_queue(driver)
    first, second = emit(driver), emit(driver)

    problems = [each.problem for each in fire(driver)]
    assert all(
        "small" in str(each) and "retrying for up to an hour" in str(each) for each in problems
    )
    assert fire(driver) == [], "nothing new to say"
    make_room(driver)
    assert [(each.event_id, each.problem) for each in fire(driver)] == [(first, None)]
    make_room(driver)
    assert [(each.event_id, each.problem) for each in fire(driver)] == [(second, None)]

    row = trigger(driver)
    assert (row["fired"], row["failed"], len(triggers.made(driver))) == (2, 0, 2)
    assert triggers.kinds(driver) == ["trigger.defined"]


def test_a_full_queue_holds_no_other_trigger_up(driver: Driver) -> None:
    fill_queue(driver)
    define(driver, "beside")
    for _ in range(2):
        emit(driver)
        fire(driver)

    assert trigger(driver, "beside")["fired"] == 2
    assert verdicts(driver).count("waiting") == 2


def test_after_an_hour_it_has_failed_and_can_be_fired_by_hand(driver: Driver) -> None:
    fill_queue(driver)
    event = emit(driver)
    fire(driver)
    driver.set_clock(timedelta(minutes=59))
    assert fire(driver) == []
    driver.set_clock(timedelta(minutes=61))

    [fired] = fire(driver)

    assert fired.problem is not None
    assert "again" not in fired.problem
    assert verdicts(driver) == ["failed"]
    assert trigger(driver)["failed"] == 1
    assert triggers.kinds(driver) == ["trigger.defined", "trigger.failed"]
    make_room(driver)
    assert fire(driver) == []
    driver.rows("select treadle.fire_trigger('t', %s)", event)
    assert verdicts(driver) == ["fired"]


@pytest.mark.parametrize("change", ["pause", "define", "event"])
def test_events_that_can_no_longer_be_retried_have_failed(driver: Driver, change: str) -> None:
    fill_queue(driver)
    define(driver, "beside", on="other")
    emit(driver)
    fire(driver)
    if change == "pause":
        driver.rows("select treadle.pause_trigger('t')")
    elif change == "define":
        define(driver, on="another", task={"type": "code", "queue": "small"})
    else:
        driver.rows("delete from treadle.events where kind = 'paid'")
    make_room(driver)

    fire(driver)

    assert verdicts(driver) == ["failed"]
    assert triggers.made(driver) == []


def test_a_lack_of_server_resources_does_not_fail_the_trigger(fresh: Driver) -> None:
    # One that fails by itself: after that each is tried on its own.
    define(fresh, "bad", task={"type": "code", "spec": {"$event": "data.none"}})
    define(fresh)
    emit(fresh)
    fresh.rows(
        """
        create function trap() returns trigger language plpgsql as $$
        begin
          raise exception 'no space left on device' using errcode = 'disk_full';
        end $$;
        create trigger trap before insert on treadle.tasks
        for each row execute function trap();
        """
    )

    with pytest.raises(psycopg.errors.DiskFull):
        fire(fresh)
    fresh.rows("drop trigger trap on treadle.tasks")

    fire(fresh)
    assert (trigger(fresh)["fired"], trigger(fresh)["failed"]) == (1, 0)
