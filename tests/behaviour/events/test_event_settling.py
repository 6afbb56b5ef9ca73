"""Readers of events wait only for transactions that could still write one."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg

from tests.drivers.engine import Driver
from tests.drivers.events import read
from tests.drivers.triggers import define, emit, fire
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


def test_a_transaction_of_another_database_does_not_delay_readers(driver: Driver) -> None:
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


def test_a_session_that_waits_for_a_transaction_is_not_mistaken_for_it(driver: Driver) -> None:
    """Roles belong to the whole server: a session of another database can wait for this one."""
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
