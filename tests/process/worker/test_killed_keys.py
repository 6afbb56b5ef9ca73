"""Concurrency keys with real processes: a killed worker keeps no slot, and none is duplicated."""

import pytest

from tests.drivers.processes.children import Conn, Spawn, all_completed, rows, until, value
from treadle import Treadle

pytestmark = pytest.mark.requirement("B6")

QUICK = {"heartbeat_s": 0.4, "claim_ttl_s": 1, "slots": 3}
HELD = "select count(*) from treadle.tasks where slot = 'held'"
WAITING = "select count(*) from treadle.tasks where slot = 'waiting'"


async def test_the_slots_of_a_killed_worker_go_to_others_and_never_too_many(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    first = spawn("worker", agent_id="first", **QUICK)
    for _ in range(8):
        naps = [3600, 0.05]
        await app.enqueue("nap", {"naps": naps}, concurrency_key="k", concurrency_limit=2)
    running = "select count(*) from treadle.tasks where status = 'running'"

    async def first_has_them() -> bool:
        return bool(await value(conn, running) == 2)

    await until(first_has_them)
    first.kill()
    # Six have not begun: for them the long nap would be the first.
    await conn.execute("update treadle.tasks set spec = '{\"naps\": [0.05]}' where attempt = 0")
    spawn("worker", agent_id="second", slots=3)
    spawn("worker", agent_id="third", slots=3)
    most = 0

    async def all_done() -> bool:
        nonlocal most
        most = max(most, await value(conn, HELD))
        return bool(await value(conn, "select bool_and(status = 'completed') from treadle.tasks"))

    await until(all_done, within=30)
    await all_completed(conn, 8)

    assert most == 2
    assert (await value(conn, HELD), await value(conn, WAITING)) == (0, 0)
    crashes = await rows(conn, "select agent_id, class from treadle.attempts")
    assert crashes == [("first", "crash")] * 2


async def test_the_promoter_assigns_free_slots_when_no_worker_claims(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    """It is woken: it would look by itself only after a minute."""
    promoter = spawn("promoter", service_s=60)
    await promoter.logged("promoter.started")
    handle = await app.enqueue("nap", {"naps": [0]}, concurrency_key="k")

    async def is_ready() -> bool:
        return await handle.status() == "ready"

    await until(is_ready)
    assert (await value(conn, HELD), await value(conn, WAITING)) == (1, 0)
