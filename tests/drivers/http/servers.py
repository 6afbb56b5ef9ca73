"""Start servers, and wait for what they do."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.drivers.processes.children import Child

Conn = psycopg.Connection[tuple[Any, ...]]
START_S = 60
WITHIN_S = 20.0


@dataclass(frozen=True)
class Served:
    """A running server."""

    url: str
    database_url: str
    child: Child


Serve = Callable[..., Served]


@contextmanager
def served(database_url: str, log: Path, *arguments: str, **settings: Any) -> Iterator[Served]:
    """A `treadle server` process until the block ends."""
    words = ["server", "--port", "0", *arguments]
    child = Child(words, log=log, database_url=database_url, **settings)
    try:
        yield Served(_address(child), database_url, child)
    finally:
        child.end()


def _address(child: Child) -> str:
    until = time.monotonic() + START_S
    while time.monotonic() < until and child.running:
        if found := child.events("server.started"):
            return str(found[0]["url"])
        time.sleep(0.02)
    raise AssertionError(f"the server did not start:\n{child.log.read_text()}")


def until(condition: Callable[[], Any]) -> None:
    """Poll until the condition holds."""
    end = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < end, "it did not come to this"
        time.sleep(0.01)


def waits_for_lock(sql: Conn) -> bool:
    """Whether a session of this database waits for a lock."""
    query = """
        select from pg_stat_activity
        where wait_event_type = 'Lock' and datname = current_database()
    """
    return sql.execute(query).fetchone() is not None
