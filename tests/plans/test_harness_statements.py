"""The loops of the harness read only the rows they change, whatever the planner assumes."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.drivers.plans import BATCH, ROUNDS, Conn, Prepare, cost, empty_analysed, million_finished

ME = "http://agent-1:9000"
HELD = """
    insert into treadle.tasks (
      queue, type, assigned_agent, status, has_options, lane_id, rank, attempt, agent_id,
      claim_token, claimed_at, started_at, heartbeat_at, lease_until
    )
    select
      'harness', 'harness', lanes.agent_id, 'running', true, lanes.id, 0, 1, lanes.agent_id,
      gen_random_uuid(), now(), now(), now(), now() - interval '1 hour'
    from treadle.lanes cross join generate_series(1, 30000)
    where lanes.queue = 'harness'
"""
DONE = """
    update treadle.tasks
    set
      status = 'completed', completed_at = now(), agent_id = null, claim_token = null,
      heartbeat_at = null, lease_until = null
"""
TAKEN = """
    insert into treadle.results (task_id, completed_at, consumed_at, consumed_token, consumer)
    select id, completed_at, completed_at, id, 'harness' from treadle.tasks
"""


def held_analysed(conn: Conn) -> None:
    """Agents of the harness held all rows when it was analysed; now all are done."""
    conn.execute("select treadle.enqueue_harness_task(%s, '{}')", (ME,))
    with conn.transaction():
        conn.execute("set local session_replication_role = replica")
        conn.execute("delete from treadle.tasks")
        conn.execute(HELD)
        conn.execute("analyze treadle.tasks")
        conn.execute(DONE)
        conn.execute(TAKEN)


@pytest.fixture(
    params=[empty_analysed, million_finished, held_analysed], ids=lambda prepare: prepare.__name__
)
def hostile_url(request: pytest.FixtureRequest, hostile_urls: Callable[[Prepare], str]) -> str:
    return hostile_urls(request.param)


@pytest.fixture(autouse=True)
def _leave_nothing(hostile: Conn) -> Iterator[None]:
    """The database is shared: what a test leaves behind, another would take."""
    hostile.execute("select treadle.allow_nudges(%s)", (ME,))
    yield
    clear(hostile)


def clear(conn: Conn) -> None:
    conn.execute(
        """
        select treadle.cancel_tasks(array(
          select id from treadle.tasks where queue = 'harness' and completed_at is null
        ))
        """
    )


def put(conn: Conn) -> None:
    conn.execute(
        "select treadle.enqueue_harness_task(%s, '{}') from generate_series(1, %s)", (ME, BATCH)
    )


def claim(conn: Conn) -> list[tuple[UUID, UUID]]:
    """Claim a batch, one after the other: ids and tokens."""
    put(conn)
    claims = []
    for _ in range(BATCH):
        token = uuid4()
        query = "select id from treadle.claim_harness_task(%s, %s)"
        scans, rows, [(task_id,)] = cost(conn, query, (ME, token))
        assert scans == 0
        assert rows <= 10
        claims.append((task_id, token))
    return claims


def test_the_requeue_loop_reads_only_live_claims(hostile: Conn) -> None:
    for _ in range(ROUNDS):
        claim(hostile)
        hostile.execute(
            "update treadle.tasks set lease_until = clock_timestamp() - interval '1 s'"
            " where status = 'running' and queue = 'harness'"
        )
        scans, rows, moved = cost(hostile, "select * from treadle.requeue_harness_tasks(1000)")
        assert (scans, len(moved)) == (0, BATCH)
        assert rows <= 10 * BATCH
        clear(hostile)


def test_a_token_that_is_used_up_is_found_at_the_head_of_its_lane(hostile: Conn) -> None:
    for _ in range(ROUNDS):
        put(hostile)
        query = "select treadle.check_token_unused(%s, %s)"
        scans, rows, _ = cost(hostile, query, (ME, uuid4()))
        assert scans == 0
        assert rows <= 5
        clear(hostile)


def test_the_drain_loop_reads_only_results_that_wait(hostile: Conn) -> None:
    for _ in range(ROUNDS):
        done: list[tuple[Any, ...]] = claim(hostile)
        for pair in done:
            hostile.execute("select treadle.complete_harness_task(%s, %s, '{}')", pair)
        token = uuid4()
        for _ in range(2):
            query = "select id from treadle.take_actions(%s, 1000)"
            scans, rows, taken = cost(hostile, query, (token,))
            assert (scans, len(taken)) == (0, BATCH)
            assert rows <= 4 * BATCH
        for (task_id,) in taken:
            scans, rows, _ = cost(hostile, "select treadle.finish_action(%s, %s)", (task_id, token))
            assert scans == 0
            assert rows <= 5


def test_nudges_read_only_the_tasks_that_wait(hostile: Conn) -> None:
    for _ in range(ROUNDS):
        put(hostile)
        query = "select task_id from treadle.take_nudges(1000)"
        scans, rows, nudged = cost(hostile, query)
        assert (scans, len(nudged)) == (0, BATCH)
        assert rows <= 2 * BATCH
        clear(hostile)
