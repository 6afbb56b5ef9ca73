"""A worker is killed while an output is validated: the task runs again elsewhere."""

import pytest

from tests.drivers.processes.children import Conn, Spawn, rows, until, value
from treadle import Treadle

pytestmark = pytest.mark.requirement("F20")

QUICK = {"heartbeat_s": 1, "claim_ttl_s": 3, "slots": 3}
STATUS = "select status from treadle.tasks where id = %s"
EFFECTS = "select what, agent, attempt from effects where task_id = %s order by id"
ATTEMPTS = "select attempt, agent_id, class, reason from treadle.attempts where task_id = %s"


@pytest.mark.parametrize("validator", ["ponder", "test_pass"])
async def test_a_task_survives_the_worker_that_was_checking_its_output(
    app: Treadle, conn: Conn, spawn: Spawn, validator: str
) -> None:
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    first = spawn("worker", agent_id="first", **QUICK)
    check = {"validator": validator} | ({"name": "ponder"} if validator == "test_pass" else {})
    handle = await app.enqueue("draft", {"naps": [3600, 0]}, validation=[check])
    await until(lambda: _is(conn, handle.id, "validating"), within=30)
    # Heartbeats go on while the validator works.
    beat = await value(conn, "select heartbeat_at from treadle.tasks where id = %s", handle.id)
    await until(lambda: _beats(conn, handle.id, beat), within=30)

    first.kill()
    await expire(conn)
    spawn("worker", agent_id="second", slots=3)

    assert await handle.result(timeout=40) == {"by": "second", "nap": 0}
    assert await rows(conn, EFFECTS, handle.id) == [
        ("drafted", "first", 1),
        ("drafted", "second", 2),
    ]
    expected = [(1, "first", "crash", "heartbeat_timeout")]
    assert await rows(conn, ATTEMPTS, handle.id) == expected


async def test_a_validator_that_takes_the_worker_down_does_not_lose_the_task(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    first = spawn("worker", agent_id="first", **QUICK)
    handle = await app.enqueue("draft", {"naps": [0]}, validation=[{"validator": "suicide"}])
    await until(lambda: not first.running, within=30)
    await expire(conn)

    spawn("worker", agent_id="second", slots=3)

    assert await handle.result(timeout=40) == {"by": "second", "nap": 0}


async def expire(conn: Conn) -> None:
    """Expire the leases of a dead worker."""
    await conn.execute("update treadle.tasks set lease_until = clock_timestamp()")


async def _is(conn: Conn, task_id: object, wanted: str) -> bool:
    return bool(await value(conn, STATUS, task_id) == wanted)


async def _beats(conn: Conn, task_id: object, before: object) -> bool:
    query = "select heartbeat_at > %s from treadle.tasks where id = %s"
    return bool(await value(conn, query, before, task_id))
