"""What `treadle demo` reads about its tasks, and the lock that keeps a second demo out."""

from collections.abc import Sequence
from uuid import UUID

from treadle.db.calls import Record
from treadle.db.database import Database
from treadle.db.pool import Connection
from treadle.errors import Unavailable


async def tasks(db: Database, ids: Sequence[UUID]) -> list[Record]:
    """Read tasks, with the seconds since each was claimed as `held_s`."""
    query = """
        select
          id, type, title, status, attempt, max_attempts, agent_id, claimed_at, run_at, spec,
          completed_by, failure_class, failure_reason,
          extract(epoch from clock_timestamp() - claimed_at)::float8 as held_s
        from treadle.task_details
        where id = any (%(ids)s)
        order by id
    """
    return await db.calls.rows(query, {"ids": list(ids)})


async def attempts(db: Database, ids: Sequence[UUID]) -> list[Record]:
    """Read the attempts of tasks, oldest first."""
    query = """
        select task_id, attempt, agent_id, claimed_at, ended_at, outcome, class, reason, error
        from treadle.dispatch_log
        where task_id = any (%(ids)s)
        order by task_id, ended_at
    """
    return await db.calls.rows(query, {"ids": list(ids)})


async def unfinished(db: Database, queue: str, source: str) -> list[Record]:
    """Read the tasks that an earlier demo has left behind."""
    query = """
        select id, status from treadle.task_details
        where source = %(source)s and queue = %(queue)s and status not in ('completed', 'cancelled')
    """
    return await db.calls.rows(query, {"source": source, "queue": queue})


async def lock(conn: Connection) -> None:
    """Refuse a second demo on the same server; the lock ends with the connection."""
    cursor = await conn.execute(
        "select pg_try_advisory_lock(hashtextextended('treadle.demo', 0)) as free"
    )
    if await cursor.fetchone() != (True,):
        raise Unavailable("another demo is running on this server", hint="Wait until it has ended.")
