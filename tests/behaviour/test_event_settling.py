"""Readers of events wait for whoever could still write one, and for nobody else."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from tests.behaviour.driver import Driver
from tests.behaviour.mutant import Mutant
from tests.behaviour.reacting import define, emit, fire
from tests.behaviour.test_event_order import read
from treadle.db.testing import with_database

TABLE = "create table public.beside ()"
ROLE = "alter role treadle_observer connection limit 77"


def other(driver: Driver) -> str:
    """A database beside the one of the test."""
    return with_database(driver.url, "postgres")


@contextmanager
def writing(url: str, statement: str) -> Iterator[None]:
    """A transaction that stays open."""
    with psycopg.connect(url) as conn:
        conn.execute(statement.encode())
        yield
        conn.rollback()


def test_a_transaction_of_another_database_holds_nobody_up(driver: Driver) -> None:
    define(driver)
    with writing(other(driver), TABLE):
        begin = read(driver, None)[1]
        number = emit(driver)

        assert read(driver, begin)[0] == [number]
        assert [each.event_id for each in fire(driver)] == [number]
        assert read(driver, read(driver, None)[1])[0] == []


def test_a_transaction_of_this_database_is_waited_for_whatever_it_wrote(driver: Driver) -> None:
    begin = read(driver, None)[1]
    with writing(driver.url, TABLE):
        number = emit(driver)

        assert read(driver, begin)[0] == []
        # Where the future begins, this event is still to come.
        assert read(driver, read(driver, None)[1])[0] == []
        place = read(driver, None)[1]

    assert read(driver, begin)[0] == [number]
    assert read(driver, place)[0] == [number]


def test_one_that_wrote_nothing_yet_is_waited_for_wherever_it_is(driver: Driver) -> None:
    begin = read(driver, None)[1]
    with writing(other(driver), "select pg_current_xact_id()"):
        number = emit(driver)
        assert read(driver, begin)[0] == []

    assert read(driver, begin)[0] == [number]


def test_one_of_another_database_does_not_hide_one_of_this(driver: Driver) -> None:
    begin = read(driver, None)[1]
    with psycopg.connect(driver.url) as here, writing(other(driver), TABLE):
        here.execute("select treadle.emit_event('paid', '{}', 'a')")
        number = emit(driver, key="b")
        assert read(driver, begin)[0] == []
        here.commit()

        assert read(driver, begin)[0] == [number - 1, number]


def test_who_waits_for_a_transaction_is_not_taken_for_it(driver: Driver) -> None:
    """Roles are of the whole server: one of another database can wait for one of this."""
    begin = read(driver, None)[1]
    with psycopg.connect(other(driver)) as there, ThreadPoolExecutor(1) as threads:
        there.execute(TABLE.encode())
        driver.rows("begin")
        driver.rows(ROLE)
        waiting = threads.submit(there.execute, ROLE.encode())
        look, pids = driver.another(), (driver.conn.info.backend_pid, there.info.backend_pid)
        while not look.value("select %s = any (pg_blocking_pids(%s))", *pids):
            assert not waiting.done()
        number = emit(look)

        found = read(look, begin)[0]
        driver.rows("rollback")
        waiting.result(timeout=30)
        there.rollback()

        assert found == []
        assert read(driver, begin)[0] == [number]


def test_a_reader_does_not_pass_its_own_transaction(driver: Driver) -> None:
    begin = read(driver, None)[1]
    driver.rows("begin")
    driver.rows("select pg_current_xact_id()")
    first = emit(driver.another(), key="a")

    # What it still writes stands before the other's.
    assert read(driver, begin)[0] == []
    second = emit(driver, key="b")
    assert read(driver, begin)[0] == []
    driver.rows("commit")

    assert read(driver, begin)[0] == [second, first]


MUTANTS = {
    "every database is another": Mutant(
        "settled_before",
        {"databases.datname = current_database()": "databases.datname = 'postgres'"},
        test_a_transaction_of_this_database_is_waited_for_whatever_it_wrote,
    ),
    "all that holds a lock is elsewhere": Mutant(
        "settled_before",
        {"beside.database <> 0": "true", "beside.database <> (": "0 <> ("},
        test_a_transaction_of_this_database_is_waited_for_whatever_it_wrote,
    ),
    "whoever has a number is elsewhere": Mutant(
        "settled_before",
        {
            "and beside.database <> 0": "",
            "beside.database <> (": "beside.database is distinct from (",
        },
        test_one_that_wrote_nothing_yet_is_waited_for_wherever_it_is,
    ),
    "a lock of anybody": Mutant(
        "settled_before",
        {"held.virtualtransaction = beside.virtualtransaction": "held.pid is not null"},
        test_one_of_another_database_does_not_hide_one_of_this,
    ),
    "whoever waits for it": Mutant(
        "settled_before",
        {"and held.mode = 'ExclusiveLock'": ""},
        test_who_waits_for_a_transaction_is_not_taken_for_it,
    ),
    "whole servers are waited for": Mutant(
        "settled_before",
        {"held.mode = 'ExclusiveLock'": "false"},
        test_a_transaction_of_another_database_holds_nobody_up,
    ),
    "past its own transaction": Mutant(
        "settled_before",
        {"pg_current_xact_id_if_assigned()": "null"},
        test_a_reader_does_not_pass_its_own_transaction,
    ),
    "a beginning before what was read": Mutant(
        "read_events",
        {"treadle.settled_before()": "pg_snapshot_xmin(pg_current_snapshot())"},
        test_a_transaction_of_another_database_holds_nobody_up,
    ),
}


@pytest.mark.mutant
@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_guard_is_noticed(fresh: Driver, name: str) -> None:
    mutant = MUTANTS[name]
    fresh.conn.execute(mutant.text().encode())

    with pytest.raises(mutant.noticed):
        mutant.killer(fresh)
