"""Fixtures of the behaviour tests: a driver of the SQL interface, an application.

Copying a database takes longer than most tests, so they share one that is emptied before each.
A test that plants triggers or changes functions takes `fresh`, a copy of its own.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import psycopg
import pytest

from tests.behaviour.driver import Driver
from treadle import Treadle
from treadle.db.testkit import temporary_database, with_database

SEEDS = """
create table public.queues as table treadle.queues;
create table public.task_types as table treadle.task_types;
"""
EMPTY = """
do $$
begin
  execute (
    select 'truncate ' || string_agg(format('treadle.%I', tablename), ', ') || ' restart identity'
    from pg_tables
    where schemaname = 'treadle' and tablename not in ('migrations', 'code')
  );
  insert into treadle.queues table public.queues;
  insert into treadle.task_types table public.task_types;
  if to_regclass('public.test_clock') is not null then
    delete from public.test_clock;
  end if;
end;
$$
"""


@pytest.fixture(scope="session")
def shared_url(server_url: str, template: str) -> Iterator[str]:
    """A database with the schema for all tests that leave the schema alone."""
    with temporary_database(server_url, template=template) as name:
        url = with_database(server_url, name)
        with psycopg.connect(url) as conn:
            conn.execute(SEEDS.encode())
        yield url


@pytest.fixture
def driver(shared_url: str) -> Iterator[Driver]:
    """A driver of an empty database with two agents, a and b."""
    with psycopg.connect(shared_url) as conn:
        conn.execute(EMPTY.encode())
    with ExitStack() as stack:
        yield _with_agents(Driver(shared_url, stack))


@pytest.fixture
def fresh(database_url: str) -> Iterator[Driver]:
    """The same on a database of its own."""
    with ExitStack() as stack:
        yield _with_agents(Driver(database_url, stack))


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
