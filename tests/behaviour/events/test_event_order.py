"""Readers of events miss nothing, whatever the order in which transactions commit."""

from typing import Any

import psycopg
import pytest

from tests.drivers import triggers
from tests.drivers.engine import Driver
from tests.drivers.events import read
from tests.drivers.notifications import Listener
from tests.drivers.races import flat, together, while_held
from tests.drivers.refusals import refused
from tests.drivers.triggers import define, emit, fire


@pytest.mark.requirement("F18")
def test_an_event_that_commits_late_is_not_lost(driver: Driver) -> None:
    define(driver)
    _, start = read(driver, None)
    slow = driver.another()
    slow.rows("begin")
    early = emit(slow, key="a")
    late = emit(driver, key="b")
    assert early < late

    # The lower number is not committed: no reader may skip it.
    assert fire(driver) == []
    assert read(driver, start) == ([], start)
    slow.rows("commit")

    assert [each.event_id for each in fire(driver)] == [early, late]
    assert read(driver, start)[0] == [early, late]
    assert fire(driver) == []


def test_the_higher_number_may_come_first_and_both_count(driver: Driver) -> None:
    define(driver)
    slow = driver.another()
    slow.rows("begin")
    slow.rows("select pg_current_xact_id()")
    first = emit(driver, key="a")
    # The transaction is older than the event, and may still write one: it is waited for.
    assert fire(driver) == []
    second = emit(slow, key="b")
    slow.rows("commit")

    # By transaction, then by number: the same order for every reader.
    assert [each.event_id for each in fire(driver)] == [second, first]


def test_what_is_rolled_back_never_happened(driver: Driver) -> None:
    define(driver)
    slow = driver.another()
    slow.rows("begin")
    emit(slow, key="a")
    kept = emit(driver, key="b")
    slow.rows("rollback")

    assert [each.event_id for each in fire(driver)] == [kept]


@pytest.mark.requirement("F18")
def test_ten_that_fire_at_once_fire_once(driver: Driver) -> None:
    define(driver)
    for _ in range(40):
        emit(driver)

    fired = flat(together(driver, 10, lambda session, _: fire(session, 3)))
    fired += fire(driver)

    assert len(fired) == len({each.event_id for each in fired}) == 40
    assert len(triggers.made(driver)) == 40


def test_a_second_process_that_fires_triggers_returns_at_once(driver: Driver) -> None:
    define(driver)
    emit(driver)
    other = driver.another()
    other.rows("set lock_timeout = '2s'")
    driver.rows("begin")
    fire(driver)

    assert fire(other) == []
    driver.rows("commit")
    assert len(triggers.made(driver)) == 1


def test_firing_by_hand_waits_for_a_running_pass(driver: Driver) -> None:
    define(driver)
    event = emit(driver)

    def by_hand(session: Driver) -> str:
        with pytest.raises(psycopg.Error) as raised:
            session.rows("select treadle.fire_trigger('t', %s)", event)
        return str(raised.value.diag.message_primary)

    assert while_held(driver, fire, by_hand) == f"trigger t does not fire on event {event}"
    assert len(triggers.made(driver)) == 1


def test_the_lower_number_of_the_younger_transaction_is_not_passed_by(driver: Driver) -> None:
    define(driver)
    older, younger = driver.another(), driver.another()
    for session in (older, younger):
        session.rows("begin")
        session.rows("select pg_current_xact_id()")
    low, high = emit(younger, key="a"), emit(older, key="b")
    assert low < high
    older.rows("commit")

    assert [each.event_id for each in fire(driver)] == [high]
    younger.rows("commit")
    assert [each.event_id for each in fire(driver)] == [low]


def test_a_crash_before_the_commit_fires_again_and_after_it_never(driver: Driver) -> None:
    define(driver)
    emit(driver)
    driver.rows("begin")
    assert len(fire(driver)) == 1
    driver.rows("rollback")
    assert triggers.made(driver) == []

    assert len(fire(driver)) == 1
    assert fire(driver) == []
    assert behind(driver) == [("triggers", [])]


def test_a_reader_that_is_set_back_does_not_fire_twice(driver: Driver) -> None:
    define(driver)
    emit(driver)
    fire(driver)
    driver.rows("update treadle.event_readers set xid = '0', id = 0")

    assert fire(driver) == []
    assert len(triggers.made(driver)) == 1


def test_events_are_read_by_kind_and_from_a_place(driver: Driver) -> None:
    _, start = read(driver, None)
    numbers = [emit(driver, kind) for kind in ("a", "b", "a", "b", "c")]

    assert read(driver, "0.0")[0] == numbers
    some, place = read(driver, start, "a", limit=2)
    assert some == numbers[:1]
    assert read(driver, place, "a")[0] == [numbers[2]]
    assert read(driver, read(driver, place, "a")[1]) == ([], read(driver, place, "a")[1])
    for wrong in ("x", "1", "1.2.3", "-1.0", "99999999999999999999.1"):
        with refused("TR001", "is not a valid event cursor"):
            read(driver, wrong)


def behind(driver: Driver) -> list[Any]:
    """What each reader has still to read."""
    return driver.rows(
        """
        select name, array(select id from treadle.next_events(xid, reader.id, 100))
        from treadle.event_readers as reader order by name
        """
    )


def test_after_a_restore_readers_continue_where_they_were(driver: Driver) -> None:
    define(driver)
    numbers = [emit(driver, data={"n": n}) for n in range(4)]
    fire(driver, limit=2)
    driver.rows(
        "insert into treadle.event_readers"
        " select 'slow', xid, id from treadle.events where id = %s",
        numbers[1],
    )
    emit(driver)
    before = behind(driver)
    assert driver.value("select treadle.rebase_events()") == 0

    # As if all of this came from a server that had counted a million transactions more.
    for table in ("events", "event_readers"):
        driver.rows(f"update treadle.{table} set xid = (xid::text::bigint + 1000000)::text::xid8")
    fresh = emit(driver, data={"n": 9})
    assert all(fresh not in left for _, left in behind(driver))

    assert driver.value("select treadle.rebase_events()") > 0
    assert behind(driver) == [(name, [*left, fresh]) for name, left in before]
    assert fresh in [each.event_id for each in fire(driver)]
    assert driver.value("select treadle.rebase_events()") == 0


@pytest.mark.requirement("F23")
def test_listeners_are_notified_once_and_only_while_they_listen(driver: Driver) -> None:
    ear = Listener(driver, "treadle_events")

    def heard() -> int:
        return len(ear.heard())

    emit(driver, "a")
    assert heard() == 0
    driver.rows("select treadle.listen_events('me', 60, array['a', 'b'])")
    with driver.conn.transaction():
        emit(driver, "a")
        emit(driver, "b")
    assert heard() == 1
    emit(driver, "c")
    assert heard() == 0
    driver.rows("select treadle.listen_events('me', 60)")
    emit(driver, "c")
    assert heard() == 1
    driver.rows("update treadle.event_listeners set listening_until = clock_timestamp()")
    emit(driver, "c")
    assert heard() == 0
    driver.rows("select treadle.listen_events('me', 0)")
    assert driver.value("select count(*) from treadle.event_listeners") == 0


def test_triggers_request_notifications_only_of_their_kinds(driver: Driver) -> None:
    define(driver, "one", on="b")
    define(driver, "two", on="a")
    fire(driver)

    assert driver.rows("select name, kinds from treadle.event_listeners") == [
        ("triggers", ["a", "b"])
    ]
