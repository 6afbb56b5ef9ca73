"""Triggers and readers of events read only new events, whatever else the tables contain."""

from collections.abc import Iterator

import pytest

from tests.drivers.plans import BATCH, Conn, cost


@pytest.fixture(autouse=True)
def _leave_nothing(hostile: Conn) -> Iterator[None]:
    yield
    hostile.execute("delete from treadle.triggers")
    hostile.execute(
        "select treadle.cancel_tasks(array(select id from treadle.tasks where status = 'ready'))"
    )


def make(conn: Conn, name: str, settings: str) -> None:
    conn.execute("select treadle.define_trigger(%s, %s)", (name, settings))


def test_a_call_without_new_events_reads_almost_nothing(hostile: Conn) -> None:
    make(hostile, "t", '{"on": "paid", "task": {"type": "code"}}')
    hostile.execute("select treadle.fire_triggers()")

    _, rows, fired = cost(hostile, "select * from treadle.fire_triggers()", ())

    assert fired == []
    assert rows <= 20


def test_firing_reads_the_new_events_and_no_others(hostile: Conn) -> None:
    make(hostile, "t", '{"on": "paid", "max_per_hour": null, "task": {"type": "code"}}')
    hostile.execute("select treadle.fire_triggers()")
    for n in range(BATCH):
        hostile.execute("select treadle.emit_event('paid', p_key => %s)", (str(n),))

    _, rows, fired = cost(hostile, "select * from treadle.fire_triggers()", ())

    assert len(fired) == BATCH
    assert rows <= 40 * BATCH


def test_a_failure_rate_reads_no_more_than_it_needs(hostile: Conn) -> None:
    # Other tests have let tasks fail in this database.
    hostile.execute("truncate treadle.attempts")
    rate = '{"type": "code", "window_s": 86400, "limit": 0.5, "min_attempts": 5}'
    make(hostile, "t", f'{{"failure_rate": {rate}, "task": {{"type": "code"}}}}')
    for _ in range(5):
        hostile.execute("select treadle.enqueue_task('default', 'code')")
    hostile.execute("select treadle.register_agent('a')")
    claims = hostile.execute(
        "select id, claim_token from treadle.claim_tasks('a', p_limit => 5)"
    ).fetchall()
    ids, tokens = [row[0] for row in claims], [row[1] for row in claims]
    hostile.execute(
        "select treadle.fail_tasks(%s, %s, p_errors => %s)", (ids, tokens, ["boom"] * 5)
    )

    _, rows, found = cost(hostile, "select * from treadle.check_failure_rates()", ())

    # So many have succeeded that five failures are no news: a few of them are enough to know.
    assert found == []
    assert rows <= 1000
