"""Slots and depth limits read only the rows they count, whatever the planner assumes."""

from psycopg.types.json import Jsonb

from tests.drivers.plans import BATCH, ROUNDS, Conn, cost


def add(conn: Conn, queue: str, **options: object) -> None:
    conn.execute(
        "select treadle.enqueue_batch(%s, 'code', %s, %s)",
        (queue, [Jsonb({})] * BATCH, Jsonb(options)),
    )


def clear(conn: Conn) -> None:
    conn.execute(
        """
        select treadle.cancel_tasks(array(
          select id from treadle.tasks where queue in ('keyed', 'capped') and completed_at is null
        ))
        """
    )
    conn.execute("select treadle.admit_waiting_tasks()")


def test_a_slot_is_given_away_by_reading_the_heads_of_lanes(hostile: Conn) -> None:
    hostile.execute("select treadle.define_queue('keyed')")
    for _ in range(10):
        add(hostile, "keyed", concurrency_key="k")
    hostile.execute("select treadle.admit_waiting_tasks()")
    for _ in range(ROUNDS):
        claims = "select array_agg(id), array_agg(claim_token) from treadle.claim_tasks('a', %s)"
        pair = hostile.execute(claims, (["keyed"],)).fetchone()
        assert pair is not None
        scans, rows, done = cost(hostile, "select * from treadle.complete_tasks(%s, %s)", pair)
        assert (scans, len(done)) == (0, 1)
        assert rows <= 10
        scans, rows, moved = cost(hostile, "select treadle.admit_waiting_tasks()")
        assert (scans, moved) == (0, [(1,)])
        # The slots in use, the heads of one lane, and the row itself a few times.
        assert rows <= 60
    clear(hostile)


def test_the_depth_of_a_queue_is_counted_by_its_index(hostile: Conn) -> None:
    hostile.execute("""select treadle.define_queue('capped', '{"max_depth": 100000}')""")
    for number in range(ROUNDS):
        scans, rows, _ = cost(
            hostile,
            "select treadle.enqueue_batch('capped', 'code', %s)",
            ([Jsonb({})] * BATCH,),
        )
        assert scans == 0
        assert rows <= 2 * BATCH * (number + 1)
    clear(hostile)
