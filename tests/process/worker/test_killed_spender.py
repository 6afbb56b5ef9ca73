"""Workers are killed while they spend: no budget is exceeded, and their spend counts."""

import random
from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from tests.drivers.budgets import WRONG
from tests.drivers.processes.children import Conn, Spawn, rows, until, value
from treadle import Treadle

pytestmark = [pytest.mark.requirement("F25"), pytest.mark.requirement("B5")]
QUICK = {"heartbeat_s": 0.4, "claim_ttl_s": 1, "slots": 4}
MONEY = "select spent_usd, reserved_usd from treadle.budgets"


async def test_the_spend_of_a_killed_worker_counts_and_the_rest_is_released(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    await rows(conn, "select treadle.set_budget('all', null, 10)")
    first = spawn("worker", agent_id="first", **QUICK)
    await app.enqueue("shop", {"usd": 4, "naps": [3600, 0]}, max_cost_usd=4)
    await until(lambda: _are(conn, MONEY, [(1, 3)]))

    first.kill()
    spawn("reaper", service_s=0.5)
    await until(lambda: _are(conn, MONEY, [(1, 0)]))
    spawn("promoter")
    spawn("worker", agent_id="second", slots=3)

    await until(lambda: _are(conn, "select status from treadle.tasks", [("completed",)]))
    # Two first calls, of which one was in vain, and one last.
    assert await rows(conn, MONEY) == [(Decimal(3), 0)]
    assert await rows(conn, "select agent_id, usd from treadle.spend order by at") == [
        *(("first", 1), ("second", 1), ("second", 1)),
    ]
    assert await rows(conn, "select agent_id, cost_usd from treadle.attempts") == [("first", 1)]


async def test_with_workers_killed_again_and_again_no_budget_is_ever_passed(
    app: Treadle, conn: Conn, spawn: Spawn, tmp_path: Path
) -> None:
    """Four workers of four slots; the budgets have room for two or three tasks at once.

    No first attempt ends before all kills are done: there is always a worker to kill.
    """
    last_kill = tmp_path / "last kill"
    chance, looks, kills = random.Random(3), 0, 0
    await rows(conn, "select treadle.set_budget('all', null, 13)")
    for number in range(4):
        agent = "select treadle.register_agent(%s, p_budget_usd => 8)"
        await rows(conn, agent, f"w{number}")
    async with app.dag("costly", budget_usd=10) as dag:
        for _ in range(24):
            dag.add("shop", usd=0.2, naps=[str(last_kill), 0.05], options={"max_cost_usd": 4})
    spawn("reaper", service_s=0.2)
    spawn("promoter")
    workers = [spawn("worker", agent_id=f"w{number}", **QUICK) for number in range(4)]

    with anyio.fail_after(90):
        while await value(conn, "select count(*) from treadle.tasks where status <> 'completed'"):
            assert await rows(conn, WRONG) == []
            looks += 1
            running = "select count(*) from treadle.tasks where agent_id = %s and cost_usd > 0"
            at = chance.randrange(4)
            if kills < 8 and await value(conn, running, f"w{at}"):
                workers[at].kill()
                kills += 1
                workers[at] = spawn("worker", agent_id=f"w{at}", **QUICK)
            elif kills == 8:
                last_kill.touch()

    assert (kills, looks > 50) == (8, True)
    assert await rows(conn, WRONG) == []
    assert await value(conn, "select sum(reserved_usd) from treadle.budgets") == 0
    assert await value(conn, "select count(*) from treadle.reservations") == 0
    paid = await value(conn, "select sum(usd) from treadle.spend")
    assert await value(conn, "select spent_usd from treadle.budgets where scope = 'all'") == paid
    assert paid > Decimal("2.4")


async def _are(conn: Conn, query: str, expected: list[object]) -> bool:
    return list(await rows(conn, query)) == expected
