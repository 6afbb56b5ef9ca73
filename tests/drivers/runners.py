"""Migration runners as processes, descriptions of a schema, and sessions that hold locks."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from treadle.db.install import schema
from treadle.db.install.migrate import migrations

LATEST = migrations()[-1].version

_RUNNER = """
import sys
from treadle.db.install.migrate import migrate
result = migrate(sys.argv[1], lock_timeout_s=60, on_step=lambda step: print(step, file=sys.stderr))
print(*result.applied, *(["code"] if result.code_applied else []))
"""

_WAITING = """
select count(*) from pg_stat_activity
where datname = current_database() and application_name = 'treadle db' and wait_event_type = 'Lock'
"""

# The rows that the migrations insert, without their times.
_ROWS = """
select
  (select array_agg((version, name, checksum)::text order by version) from treadle.migrations),
  (select array_agg(checksum) from treadle.code),
  (select array_agg((to_jsonb(q) - 'created_at')::text order by name) from treadle.queues as q),
  (select array_agg((to_jsonb(t) - 'created_at')::text order by name) from treadle.task_types as t)
"""


def described(url: str) -> str:
    """The schema of a database as text."""
    with psycopg.connect(url) as conn:
        return schema.describe(conn)


def content(url: str) -> tuple[str, Any]:
    """Everything that an installation creates: the schema, the text of the views, and the rows."""
    with psycopg.connect(url) as conn:
        return schema.describe_full(conn), conn.execute(_ROWS).fetchone()


def applied(url: str) -> list[int]:
    """The versions in the history, in the order in which they were applied."""
    with psycopg.connect(url) as conn:
        rows = conn.execute("select version from treadle.migrations order by applied_at").fetchall()
    return [row[0] for row in rows]


@contextmanager
def runner(url: str) -> Iterator[subprocess.Popen[str]]:
    """A migration run in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", _RUNNER, url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def holding(url: str, statement: str) -> Iterator[psycopg.Connection[Any]]:
    """An open transaction that has run this statement; rolled back on exit."""
    with psycopg.connect(url) as conn:
        conn.execute(statement.encode())
        yield conn
        conn.rollback()


def await_waiting(url: str, count: int) -> None:
    """Return once a number of runners wait for a lock in this database."""
    deadline = time.monotonic() + 30
    with psycopg.connect(url, autocommit=True) as conn:
        while conn.execute(_WAITING).fetchone() != (count,):
            assert time.monotonic() < deadline, "the runners never came to wait"
            time.sleep(0.02)
