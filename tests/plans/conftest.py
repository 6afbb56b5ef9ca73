"""Fixtures of the plan tests: a database with hostile statistics, a connection without plans."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psycopg
import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.plans import (
    Conn,
    Prepare,
    empty_analysed,
    enqueue,
    million_finished,
    ready_analysed,
)


@pytest.fixture(scope="session")
def hostile_urls(new_database: NewDatabase) -> Iterator[Callable[[Prepare], str]]:
    """Each database is made once, whichever file asks first: a million rows take half a minute."""
    made: dict[Prepare, str] = {}
    with ExitStack() as stack:

        def url_of(prepare: Prepare) -> str:
            if prepare not in made:
                made[prepare] = stack.enter_context(new_database())
                _prepare(made[prepare], prepare)
            return made[prepare]

        yield url_of


@pytest.fixture(
    params=[empty_analysed, ready_analysed, million_finished],
    ids=lambda prepare: prepare.__name__,
)
def hostile_url(request: pytest.FixtureRequest, hostile_urls: Callable[[Prepare], str]) -> str:
    """A database whose statistics mislead, with autovacuum out of the way."""
    return hostile_urls(request.param)


@pytest.fixture
def hostile(hostile_url: str) -> Iterator[Conn]:
    """A connection of the test's own, with no plan made yet."""
    with psycopg.connect(hostile_url, autocommit=True) as conn:
        yield conn


def _prepare(url: str, prepare: Prepare) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        for table in ("tasks", "dependencies"):
            conn.execute(f"alter table treadle.{table} set (autovacuum_enabled = off)")
        conn.execute("select treadle.register_agent('a')")
        # What fails here fails on purpose.
        conn.execute("update treadle.task_types set breaker = '{\"threshold\": 0}'")
        enqueue(conn, 1)
        conn.execute("truncate treadle.tasks")
        prepare(conn)
