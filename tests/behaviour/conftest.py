"""Fixtures of the behaviour tests: a driver of the SQL interface, an application.

Copying a database takes longer than most tests, so they share one that is emptied before each.
A test that plants triggers or changes functions takes `fresh`, a copy of its own.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import psycopg
import pytest

from tests.behaviour import mutants_since
from tests.behaviour.driver import Connection, Driver
from treadle import Treadle
from treadle.db.testing import temporary_database, with_database

IDLE = psycopg.pq.TransactionStatus.IDLE
MOST_SPARES = 20
SEEDS = """
create table public.queues as table treadle.queues;
create table public.task_types as table treadle.task_types;
"""
# Rows are deleted: to truncate a table makes every session plan again what it knows about it. One
# that has grown large is truncated all the same: a walk over it would take several steps. The lock
# waits for whoever still writes, so that nothing of the last test comes late.
EMPTY = """
do $$
declare
  v_tables text;
  v_empty text;
begin
  select
    string_agg(format('treadle.%I', relname), ', ' order by relname),
    string_agg(
      format(
        '%s treadle.%I',
        case
          when pg_relation_size(oid) > 4 * 2 ^ 20 and relname not in ('queues', 'task_types')
            then 'truncate'
          else 'delete from'
        end,
        relname
      ),
      '; '
      order by relname
    )
  into v_tables, v_empty
  from pg_class
  where
    relnamespace = 'treadle'::regnamespace
    and relkind in ('r', 'p')
    and relname not in ('migrations', 'code');
  execute 'lock table ' || v_tables;
  -- A trigger keeps what may never be lost; here it may.
  set local session_replication_role = replica;
  execute v_empty;
  set local session_replication_role = origin;
  insert into treadle.queues table public.queues;
  insert into treadle.task_types table public.task_types;
  perform setval(seqrelid, seqstart, false)
  from pg_sequence
  where seqrelid::regclass::text like 'treadle.%';
  if to_regclass('public.test_clock') is not null then
    delete from public.test_clock;
  end if;
end;
$$
"""
# What a session may have left behind.
AS_NEW = """
reset session authorization;
reset all;
unlisten *;
discard temp;
select pg_advisory_unlock_all()
"""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out mutants that a change does not concern, when asked to."""
    mutants_since.select(config, items)


class Spares:
    """Connections that tests hand on: a new one would have to learn all functions again."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[Connection] = []
        self._taken: list[Connection] = []

    def take(self) -> Connection:
        """One that is as good as new."""
        conn = self._idle.pop() if self._idle else psycopg.connect(self._url, autocommit=True)
        conn.execute(AS_NEW.encode())
        self._taken.append(conn)
        return conn

    def give_back(self) -> None:
        """The test is over; what it left in a transaction, or broke, is not handed on."""
        for conn in self._taken:
            if conn.info.transaction_status == IDLE and len(self._idle) < MOST_SPARES:
                self._idle.append(conn)
            else:
                conn.close()
        self._taken.clear()

    def close(self) -> None:
        for conn in (*self._idle, *self._taken):
            conn.close()


@pytest.fixture(scope="session")
def shared_url(server_url: str, template: str) -> Iterator[str]:
    """A database with the schema for all tests that leave the schema alone."""
    with temporary_database(server_url, template=template) as name:
        url = with_database(server_url, name)
        with psycopg.connect(url) as conn:
            conn.execute(SEEDS.encode())
        yield url


@pytest.fixture(scope="session")
def spares(shared_url: str) -> Iterator[Spares]:
    spares = Spares(shared_url)
    yield spares
    spares.close()


@pytest.fixture
def driver(shared_url: str, spares: Spares) -> Iterator[Driver]:
    """A driver of an empty database with two agents, a and b."""
    driver = Driver(shared_url, spares.take)
    driver.conn.execute(EMPTY.encode())
    yield _with_agents(driver)
    spares.give_back()


@pytest.fixture
def fresh(database_url: str) -> Iterator[Driver]:
    """The same on a database of its own."""
    with ExitStack() as stack:

        def connect() -> Connection:
            return stack.enter_context(psycopg.connect(database_url, autocommit=True))

        yield _with_agents(Driver(database_url, connect))


@pytest.fixture
async def app(driver: Driver) -> AsyncIterator[Treadle]:
    """An application on the driver's database."""
    async with Treadle(driver.url) as app:
        yield app


def _with_agents(driver: Driver) -> Driver:
    # Tests fail as many tasks of a type as they like; those about breakers turn them on again.
    driver.rows("update treadle.task_types set breaker = '{\"threshold\": 0}'")
    driver.agent("a")
    driver.agent("b")
    return driver
