"""DAG functions read only their own tasks and edges, whatever else the tables contain."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.plans import BATCH, ROUNDS, Conn, cost

TWO_LAYERS: list[dict[str, Any]] = [
    *({"name": f"a{n}", "type": "code"} for n in range(BATCH)),
    *({"name": f"b{n}", "type": "code", "after": [f"a{n}"]} for n in range(BATCH)),
]


@pytest.fixture(autouse=True)
def _leave_nothing(hostile: Conn) -> Iterator[None]:
    """The database is shared: what a test leaves behind, another would claim."""
    yield
    hostile.execute(
        """
        select treadle.cancel_tasks(
          array(select id from treadle.tasks where status in ('ready', 'pending'))
        )
        """
    )


def create(conn: Conn) -> tuple[int, int, UUID]:
    dag = Jsonb({"name": "dag", "tasks": TWO_LAYERS})
    scans, rows, [(dag_id,)] = cost(conn, "select dag_id from treadle.create_dag(%s)", (dag,))
    return scans, rows, dag_id


def claim(conn: Conn) -> tuple[list[UUID], list[UUID]]:
    found = conn.execute(
        "select id, claim_token from treadle.claim_tasks('a', p_limit => %s)", (BATCH,)
    ).fetchall()
    assert len(found) == BATCH
    return [row[0] for row in found], [row[1] for row in found]


def test_a_dag_is_made_and_finished_by_reading_only_its_own_rows(hostile: Conn) -> None:
    for _ in range(ROUNDS):
        scans, rows, _ = create(hostile)
        assert scans == 0
        assert rows <= BATCH
        for _ in range(2):
            pairs = claim(hostile)
            call = "select * from treadle.complete_tasks(%s, %s)"
            scans, rows, done = cost(hostile, call, pairs)
            assert (scans, len(done)) == (0, BATCH)
            assert rows <= 12 * BATCH


def test_failing_and_cancelling_reads_only_the_dag(hostile: Conn) -> None:
    for _ in range(ROUNDS):
        _, _, dag = create(hostile)
        pairs = claim(hostile)
        failed = "select * from treadle.fail_tasks(%s, %s, p_actions => %s)"
        scans, rows, _ = cost(hostile, failed, (*pairs, ["fail"] * BATCH))
        assert scans == 0
        assert rows <= 20 * BATCH
        scans, rows, gone = cost(hostile, "select treadle.cancel_dag(%s)", (dag,))
        assert (scans, gone) == (0, [(2 * BATCH,)])
        assert rows <= 200 * BATCH


def test_waiting_for_subtasks_reads_only_the_family(hostile: Conn) -> None:
    hostile.execute("select treadle.enqueue_task('default', 'code') from generate_series(1, 8)")
    for _ in range(ROUNDS):
        found = hostile.execute("select id, claim_token from treadle.claim_tasks('a')").fetchone()
        assert found is not None
        spawn = "select id from treadle.spawn_tasks(%s, %s, 's', %s)"
        children = Jsonb([{"type": "test"}] * 5)
        scans, rows, spawned = cost(hostile, spawn, (*found, children))
        assert (scans, len(spawned)) == (0, 5)
        assert rows <= 20
        suspend = "select treadle.suspend_task(%s, %s, %s)"
        scans, rows, status = cost(hostile, suspend, (*found, [row[0] for row in spawned]))
        assert (scans, status) == (0, [("pending",)])
        assert rows <= 60
