"""Databases with misleading statistics, and how many rows a call reads there."""

from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

Conn = psycopg.Connection[tuple[Any, ...]]
Prepare = Callable[[Conn], None]
BATCH = 50
ROUNDS = 8

FILL = """
    insert into treadle.tasks (
      type, spec, status, lane_id, rank, attempt, completed_at, created_at, retry_at
    )
    select
      'code', '{}', %(status)s, lane.id, lane.rank, 1,
      case when %(status)s = 'completed' then now() end, now(),
      case when %(status)s = 'retrying' then now() + interval '1 day' end
    from (
      select lanes.id, treadle.ageing_offset(lanes.ageing, now()) as rank
      from treadle.lanes
      offset 0
    ) as lane
    cross join generate_series(1, %(count)s)
"""


def fill(conn: Conn, status: str, count: int) -> None:
    with conn.transaction():
        # The triggers send no notifications here, and the rows have their lane.
        conn.execute("set local session_replication_role = replica")
        conn.execute(FILL, {"status": status, "count": count})


def enqueue(conn: Conn, count: int) -> None:
    conn.execute("select treadle.enqueue_batch('default', 'code', %s)", ([Jsonb({})] * count,))


def fill_edges(conn: Conn, count: int) -> None:
    """Add edges between finished tasks."""
    conn.execute(
        """
        insert into treadle.dependencies (task_id, depends_on, met_at)
        select gen_random_uuid(), gen_random_uuid(), now() from generate_series(1, %s)
        """,
        (count,),
    )


def empty_analysed(conn: Conn) -> None:
    """Tables that were analysed while they were empty."""
    conn.execute("analyze treadle.tasks, treadle.dependencies")
    fill_edges(conn, 50_000)
    fill(conn, "completed", 20_000)
    fill(conn, "retrying", 2_000)


def ready_analysed(conn: Conn) -> None:
    """Tables that were analysed while all rows were ready; now nearly all are finished."""
    fill(conn, "ready", 20_000)
    conn.execute("analyze treadle.tasks")
    conn.execute("update treadle.tasks set status = 'completed', completed_at = clock_timestamp()")
    fill(conn, "retrying", 2_000)


def million_finished(conn: Conn) -> None:
    """Tables with a million finished rows and current statistics."""
    fill(conn, "completed", 1_000_000)
    fill(conn, "retrying", 2_000)
    fill_edges(conn, 300_000)
    conn.execute("analyze treadle.tasks, treadle.dependencies")


def counters(conn: Conn) -> tuple[int, int]:
    """Sequential scans of tasks and edges, and rows of them that were fetched, by this session."""
    row = conn.execute(
        """
        select sum(seq_scan), sum(seq_tup_read + coalesce(idx_tup_fetch, 0))
        from pg_stat_xact_user_tables
        where schemaname = 'treadle' and relname in ('tasks', 'dependencies')
        """
    ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def cost(conn: Conn, query: str, parameters: tuple[Any, ...] = ()) -> tuple[int, int, list[Any]]:
    """Run a query in a transaction; scans, rows fetched, and its answer."""
    with conn.transaction():
        scans, rows = counters(conn)
        answer = conn.execute(query, parameters).fetchall()
        scans_after, rows_after = counters(conn)
    return scans_after - scans, rows_after - rows, answer
