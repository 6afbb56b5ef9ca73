"""No hot function scans the table, whatever the planner assumes.

Statistics are made hostile in three ways; then each function runs on a fresh connection often
enough to get its cached plan, and the rows it read are counted.
"""

from uuid import UUID

from psycopg.types.json import Jsonb

from tests.drivers.plans import BATCH, ROUNDS, Conn, cost, enqueue


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
        assert rows <= 11 * BATCH


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
    hostile.execute("update treadle.tasks set delayed_at = created_at where status = 'retrying'")
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
