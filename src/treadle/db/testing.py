"""Helpers for tests: create and drop databases, age claims, change the clock.

They need a login that may create databases and set the role treadle_owner.
"""

import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from urllib.parse import quote, urlsplit
from uuid import UUID

from psycopg import errors, sql
from psycopg.conninfo import make_conninfo

from treadle.db.connection import connect_sync
from treadle.db.database import Database
from treadle.db.errors import translate_errors
from treadle.errors import IllegalTransition

BUSY_S = 10.0


def with_database(url: str, name: str) -> str:
    """Return the URL of another database on the same server."""
    if "://" not in url:
        return make_conninfo(url, dbname=name)
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}/{quote(name, safe='')}{query}"


def drop_database(server_url: str, name: str) -> None:
    """Drop a database, even if it has connections."""
    with connect_sync(server_url) as conn:
        query = sql.SQL("drop database if exists {} with (force)")
        conn.execute(query.format(sql.Identifier(name)))


@contextmanager
def temporary_database(server_url: str, *, template: str | None = None) -> Iterator[str]:
    """Create a database for the block and yield its name; with a template, copy that."""
    name = f"treadle_test_{secrets.token_hex(6)}"
    query = sql.SQL("create database {} template {}").format(
        sql.Identifier(name), sql.Identifier(template or "template1")
    )
    deadline = time.monotonic() + BUSY_S
    with connect_sync(server_url) as conn:
        while True:
            try:
                conn.execute(query)
                break
            except errors.ObjectInUse:
                # The last connection to the template is still being closed.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
    try:
        yield name
    finally:
        drop_database(server_url, name)


async def age_claim(db: Database, task_id: UUID, by: timedelta) -> None:
    """Move the times of a claim into the past."""
    with translate_errors():
        async with db.calls.connection() as conn:
            cursor = await conn.execute(
                """
                update treadle.tasks
                set
                  claimed_at = claimed_at - %(by)s,
                  started_at = started_at - %(by)s,
                  heartbeat_at = heartbeat_at - %(by)s,
                  lease_until = lease_until - %(by)s
                where id = %(id)s and status in ('claimed', 'running', 'validating')
                """,
                {"by": by, "id": task_id},
            )
    if cursor.rowcount == 0:
        raise IllegalTransition(
            f"task {task_id} is not claimed", hint="Claim it first.", task_id=str(task_id)
        )


async def set_clock(db: Database, ahead: timedelta) -> None:
    """Set treadle.clock() of this database ahead of the real time."""
    with translate_errors():
        async with db.calls.connection() as conn:
            await conn.execute(
                sql.SQL(
                    """
                    create or replace function treadle.clock()
                    returns timestamptz
                    language sql
                    volatile
                    parallel safe
                    as $$ select pg_catalog.clock_timestamp() + {}::pg_catalog.interval $$
                    """
                ).format(sql.Literal(f"{ahead.total_seconds():f} seconds"))
            )


@asynccontextmanager
async def only_task(db: Database, task_id: UUID) -> AsyncIterator[None]:
    """Lock every other ready task: a claim skips locked rows, so it finds only this one."""
    async with db.calls.connection() as conn, conn.transaction():
        await conn.execute(
            "select id from treadle.tasks where status = 'ready' and id <> %s for update",
            (task_id,),
        )
        yield
