"""The first event after a trigger was defined or resumed wakes a scheduler; no poll is needed."""

from collections.abc import Callable

import pytest

from tests.drivers.engine import Driver
from tests.drivers.notifications import Listener
from tests.drivers.races import while_held
from tests.drivers.triggers import define, emit, fire

WAYS: dict[str, Callable[[Driver], object]] = {
    "defined": lambda driver: define(driver, "second", on="shipped"),
    "changed": lambda driver: define(driver, "first", on="shipped"),
    "resumed": lambda driver: driver.rows("select treadle.resume_trigger('paused')"),
}


def due_in(driver: Driver) -> float | None:
    """After how many seconds the scheduler looks again by itself."""
    query = "select extract(epoch from treadle.next_schedule_at() - treadle.clock())"
    found = driver.value(query)
    return None if found is None else float(found)


@pytest.mark.requirement("F18")
@pytest.mark.parametrize("way", WAYS)
def test_the_first_event_of_a_trigger_notifies_the_schedulers(driver: Driver, way: str) -> None:
    define(driver, "first")
    define(driver, "paused", on="shipped")
    driver.rows("select treadle.pause_trigger('paused')")
    fire(driver)
    listener = Listener(driver, "treadle_events", "treadle_schedules")

    WAYS[way](driver)
    assert listener.heard() == ["treadle_schedules"]
    assert driver.value("select kinds from treadle.event_listeners") == ["paid", "shipped"]
    emit(driver, "shipped")

    assert listener.heard() == ["treadle_events"]
    assert len(fire(driver)) == 1


@pytest.mark.requirement("F18")
def test_an_event_that_is_not_final_is_looked_at_again_soon(driver: Driver) -> None:
    define(driver)
    other = driver.another()
    other.conn.execute("begin")
    other.conn.execute("select pg_current_xact_id()")
    emit(driver, "of no interest")
    assert fire(driver) == []
    assert (due_in(driver) or 0) > 10
    emit(driver)
    assert fire(driver) == []

    soon = due_in(driver)
    driver.rows("update treadle.triggers set active_at = active_at - interval '20 seconds'")
    driver.rows("update treadle.events set at = at - interval '20 seconds'")
    later = due_in(driver)
    other.conn.execute("commit")

    assert soon is not None
    assert later is not None
    assert 0 < soon < later / 2
    assert len(fire(driver)) == 1
    assert (due_in(driver) or 0) > later


@pytest.mark.requirement("F18")
def test_the_request_for_notifications_is_renewed_before_it_ends(driver: Driver) -> None:
    assert due_in(driver) is None
    define(driver)
    fire(driver)
    assert 0 < (due_in(driver) or 0) <= 30
    driver.rows("update treadle.event_listeners set listening_until = clock_timestamp()")
    assert (due_in(driver) or 0) < 0

    fire(driver)

    assert (due_in(driver) or 0) > 0
    driver.rows("select treadle.pause_trigger('t')")
    assert due_in(driver) is None


@pytest.mark.requirement("F18")
def test_a_renewal_keeps_the_kind_of_a_trigger_that_is_being_defined(driver: Driver) -> None:
    define(driver, "first")
    fire(driver)
    driver.rows("update treadle.event_listeners set listening_until = clock_timestamp()")

    def define_second(session: Driver) -> None:
        define(session, "second", on="shipped")

    while_held(driver, define_second, fire)

    assert driver.value("select kinds from treadle.event_listeners") == ["paid", "shipped"]
