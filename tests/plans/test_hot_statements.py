"""No hot function scans the table, whatever the planner believes about it.

Statistics are made hostile in three ways; then each function runs on a fresh connection often
enough to get its cached plan, and the rows it read are counted.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

Conn = psycopg.Connection[tuple[Any, ...]]
BATCH = 50
ROUNDS = 8

FILL = """
    insert into treadle.tasks (
      type, spec, status, lane_id, rank, attempt, completed_at, created_at, retry_at
    )
    select
      'code', '{}', %(status)s, lanes.id, treadle.rank_shift(lanes.ageing, clock_timestamp()), 1,
      case when %(status)s = 'completed' then clock_timestamp() end, clock_timestamp(),
      case when %(status)s = 'retrying' then clock_timestamp() + interval '1 day' end
    from treadle.lanes cross join generate_series(1, %(count)s)
"""


def fill(conn: Conn, status: str, count: int) -> None:
    with conn.transaction():
        # The triggers tell nobody anything here, and the rows come with their lane.
        conn.execute("set local session_replication_role = replica")
        conn.execute(FILL, {"status": status, "count": count})


def enqueue(conn: Conn, count: int) -> None:
    conn.execute("select treadle.enqueue_batch('default', 'code', %s)", ([Jsonb({})] * count,))


def empty_analysed(conn: Conn) -> None:
    """The table was empty when it was analysed."""
    conn.execute("analyze treadle.tasks")
    fill(conn, "completed", 20_000)
    fill(conn, "retrying", 2_000)


def ready_analysed(conn: Conn) -> None:
    """All rows were ready when it was analysed; now nearly all are finished."""
    fill(conn, "ready", 20_000)
    conn.execute("analyze treadle.tasks")
    conn.execute("update treadle.tasks set status = 'completed', completed_at = clock_timestamp()")
    fill(conn, "retrying", 2_000)


def million_finished(conn: Conn) -> None:
    """A million finished rows are kept, and the statistics know it."""
    fill(conn, "completed", 1_000_000)
    fill(conn, "retrying", 2_000)
    conn.execute("analyze treadle.tasks")


@pytest.fixture(
    scope="module",
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
            conn.execute("alter table treadle.tasks set (autovacuum_enabled = off)")
            conn.execute("select treadle.register_agent('a')")
            enqueue(conn, 1)
            conn.execute("truncate treadle.tasks")
            prepare(conn)
        yield url


@pytest.fixture
def hostile(hostile_url: str) -> Iterator[Conn]:
    """A connection of the test's own, with no plan made yet."""
    with psycopg.connect(hostile_url, autocommit=True) as conn:
        yield conn


def counters(conn: Conn) -> tuple[int, int]:
    """Sequential scans of tasks, and rows of it that were fetched, by this session."""
    row = conn.execute(
        """
        select seq_scan, seq_tup_read + coalesce(idx_tup_fetch, 0)
        from pg_stat_xact_user_tables
        where schemaname = 'treadle' and relname = 'tasks'
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


def claim(conn: Conn) -> tuple[list[UUID], list[UUID]]:
    found = conn.execute(
        "select id, claim_token from treadle.claim_tasks('a', p_limit => %s)", (BATCH,)
    ).fetchall()
    assert len(found) == BATCH
    return [row[0] for row in found], [row[1] for row in found]


def test_the_life_of_a_task_reads_only_its_own_rows(hostile: Conn) -> None:
    for _ in range(ROUNDS):
        enqueue(hostile, BATCH)
        scans, rows, found = cost(
            hostile,
            "select id, claim_token from treadle.claim_tasks('a', p_limit => %s, p_start => false,"
            " p_token => gen_random_uuid())",
            (BATCH,),
        )
        assert (scans, len(found)) == (0, BATCH)
        assert rows <= 2 * BATCH
        pairs = ([row[0] for row in found], [row[1] for row in found])

        for call in (
            "select * from treadle.start_tasks(%s, %s)",
            "select * from treadle.heartbeat_tasks(%s, %s)",
            "select * from treadle.complete_tasks(%s, %s)",
        ):
            scans, rows, answered = cost(hostile, call, pairs)
            assert (scans, len(answered)) == (0, BATCH), call
            assert rows <= 4 * BATCH, call


def test_failures_and_releases_read_only_their_own_rows(hostile: Conn) -> None:
    for call in ("fail_tasks", "release_tasks"):
        for _ in range(ROUNDS):
            enqueue(hostile, BATCH)
            pairs = claim(hostile)
            scans, rows, answered = cost(hostile, f"select * from treadle.{call}(%s, %s)", pairs)
            assert (scans, len(answered)) == (0, BATCH), call
            assert rows <= 6 * BATCH, call


def test_cancelling_reads_only_its_own_rows(hostile: Conn) -> None:
    for _ in range(ROUNDS):
        enqueue(hostile, BATCH)
        ids, _ = claim(hostile)
        scans, rows, answered = cost(hostile, "select * from treadle.cancel_tasks(%s)", (ids,))
        assert (scans, len(answered)) == (0, BATCH)
        assert rows <= 5 * BATCH


def test_the_reaper_reads_only_live_claims(hostile: Conn) -> None:
    for _ in range(ROUNDS):
        enqueue(hostile, BATCH)
        claim(hostile)
        hostile.execute(
            "update treadle.tasks set lease_until = clock_timestamp() - interval '1 s'"
            " where status = 'running'"
        )
        scans, rows, _ = cost(hostile, "select treadle.next_reap_at()")
        assert scans == 0
        assert rows <= 2 * BATCH
        scans, rows, reaped = cost(hostile, "select * from treadle.reap_claims(1000)")
        assert (scans, len(reaped)) == (0, BATCH)
        assert rows <= 6 * BATCH


def test_the_promoter_reads_only_what_is_due(hostile: Conn) -> None:
    hostile.execute(
        """
        update treadle.tasks set retry_at = clock_timestamp() - interval '1 s'
        where id in (select id from treadle.tasks where status = 'retrying' limit 50)
        """
    )
    for round_ in range(ROUNDS):
        scans, rows, _ = cost(hostile, "select treadle.next_due_at()")
        assert scans == 0
        assert rows <= 5
        scans, rows, promoted = cost(hostile, "select * from treadle.promote_tasks(1000)")
        assert scans == 0
        assert len(promoted) >= BATCH if round_ == 0 else True
        assert rows <= 2 * len(promoted) + 5


def test_idempotent_enqueue_and_results_use_their_keys(hostile: Conn) -> None:
    for round_ in range(ROUNDS):
        keys = [f"{round_}-{number}" for number in range(BATCH)]
        specs = [Jsonb({})] * BATCH
        for _ in range(2):
            scans, rows, made = cost(
                hostile,
                "select id from treadle.enqueue_batch('default', 'code', %s, p_keys => %s)",
                (specs, keys),
            )
            assert (scans, len(made)) == (0, BATCH)
            assert rows <= 12 * BATCH
        ids = [row[0] for row in made]
        scans, rows, _ = cost(hostile, "select * from treadle.read_results(%s)", (ids,))
        assert scans == 0
        assert rows <= BATCH
