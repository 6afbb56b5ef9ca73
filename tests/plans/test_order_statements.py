"""Claims over many lanes and projects, and re-ranking, read no more rows than they need."""

from collections.abc import Iterator
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.plans import BATCH, ROUNDS, Conn, cost

LANES = 40
# Three rows of each lane are read, on PostgreSQL 15 also the one behind them. Lanes whose rows all
# came through are read on, twice as deep: at most so often.
TURNS = 5


@pytest.fixture(autouse=True)
def _leave_nothing(hostile: Conn) -> Iterator[None]:
    """The database is shared: what a test leaves behind, another would claim."""
    hostile.execute("select treadle.define_queue('many')")
    hostile.execute("""select treadle.define_queue('fair', '{"fair": true}')""")
    yield
    hostile.execute(
        """
        select treadle.cancel_tasks(
          array(select id from treadle.tasks where status in ('ready', 'pending'))
        )
        """
    )


def enqueue(conn: Conn, queue: str, count: int, **options: Any) -> None:
    conn.execute(
        "select treadle.enqueue_batch(%s, 'code', %s, %s)",
        (queue, [Jsonb({})] * count, Jsonb(options)),
    )


def claim(conn: Conn, queue: str) -> int:
    """Claim a batch and complete it; the rows that the claim read."""
    query = "select id, claim_token from treadle.claim_tasks('a', %s, p_limit => %s)"
    scans, rows, found = cost(conn, query, ([queue], BATCH))
    assert (scans, len(found)) == (0, BATCH)
    conn.execute(
        "select treadle.complete_tasks(%s, %s)",
        ([each[0] for each in found], [each[1] for each in found]),
    )
    return rows


def test_a_claim_over_many_lanes_reads_a_few_rows_of_each(hostile: Conn) -> None:
    for lane in range(LANES):
        enqueue(hostile, "many", ROUNDS * BATCH // LANES, ageing_rate=lane / 10)
    for _ in range(ROUNDS):
        assert claim(hostile, "many") <= 4 * LANES + (2 + TURNS) * BATCH


def test_a_lane_with_all_the_best_is_read_on_alone(hostile: Conn) -> None:
    for lane in range(LANES):
        enqueue(hostile, "many", 2 * BATCH, ageing_rate=lane / 10, priority=90 if lane else 10)
    assert claim(hostile, "many") <= 4 * LANES + 6 * BATCH
    assert claim(hostile, "many") <= 4 * LANES + 6 * BATCH


def test_a_claim_for_many_projects_reads_the_heads_and_what_it_takes(hostile: Conn) -> None:
    for number in range(LANES):
        hostile.execute("select treadle.define_project(%s)", (f"p{number}",))
        enqueue(hostile, "fair", ROUNDS * BATCH // LANES, project=f"p{number}")
    for _ in range(ROUNDS):
        assert claim(hostile, "fair") <= 2 * LANES + 10 * BATCH


def test_re_ranking_reads_only_what_is_due(hostile: Conn) -> None:
    for _ in range(ROUNDS):
        enqueue(hostile, "many", BATCH, deadline_at="2030-01-01T00:00:00Z")
        hostile.execute(
            "update treadle.tasks set deadline_at = now(), rerank_at = now() - interval '1 minute'"
            " where status = 'ready' and rerank_at > now()"
        )
        scans, rows, _ = cost(hostile, "select treadle.next_due_at()")
        assert scans == 0
        assert rows <= 5
        scans, rows, moved = cost(hostile, "select * from treadle.rerank_tasks(1000)")
        assert (scans, len(moved)) == (0, BATCH)
        assert rows <= 3 * BATCH


def test_a_longer_chain_reads_only_the_tasks_of_the_chain(hostile: Conn) -> None:
    chain: list[dict[str, Any]] = [{"name": "0", "type": "code"}]
    chain += [{"name": f"{n}", "type": "code", "after": [f"{n - 1}"]} for n in range(1, 20)]
    dag = Jsonb({"name": "chain", "tasks": chain})
    for _ in range(ROUNDS):
        _, _, [(dag_id,)] = cost(hostile, "select dag_id from treadle.create_dag(%s)", (dag,))
        task = Jsonb({"type": "code", "after": ["19"]})
        scans, rows, _ = cost(hostile, "select treadle.add_task(%s, %s)", (dag_id, task))
        assert scans == 0
        assert rows <= 6 * 20
