"""Fixtures of the plan tests: a database with hostile statistics, a connection without plans."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import psycopg
import pytest

from tests.plans.hostile import (
    Conn,
    empty_analysed,
    enqueue,
    million_finished,
    ready_analysed,
)


@pytest.fixture(
    scope="package",
    params=[empty_analysed, ready_analysed, million_finished],
    ids=lambda prepare: prepare.__name__,
)
def hostile_url(
    request: pytest.FixtureRequest, new_database: Callable[[], AbstractContextManager[str]]
) -> Iterator[str]:
    """A database whose statistics mislead, with autovacuum out of the way."""
    prepare: Callable[[Conn], None] = request.param
    with new_database() as url:
        with psycopg.connect(url, autocommit=True) as conn:
            for table in ("tasks", "dependencies"):
                conn.execute(f"alter table treadle.{table} set (autovacuum_enabled = off)")
            conn.execute("select treadle.register_agent('a')")
            # What fails here fails on purpose.
            conn.execute("update treadle.task_types set breaker = '{\"threshold\": 0}'")
            enqueue(conn, 1)
            conn.execute("truncate treadle.tasks")
            prepare(conn)
        yield url


@pytest.fixture
def hostile(hostile_url: str) -> Iterator[Conn]:
    """A connection of the test's own, with no plan made yet."""
    with psycopg.connect(hostile_url, autocommit=True) as conn:
        yield conn
