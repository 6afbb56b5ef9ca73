"""Reapers and promoters may be killed or duplicated: each claim and each task counts once."""

import signal

import pytest

from tests.drivers.processes.children import Child, Conn, Spawn, rows, until, value
from treadle import Treadle

MANY = 60


async def strand(app: Treadle, conn: Conn, count: int) -> None:
    """Tasks whose worker has died: claimed, started, and the lease expired."""
    for _ in range(count):
        await app.enqueue("nap", {"naps": [0]}, max_attempts=1)
    await conn.execute("select treadle.register_agent('ghost')")
    await conn.execute("select id from treadle.claim_tasks('ghost', p_limit => 1000)")
    await conn.execute(
        """
        update treadle.tasks set lease_until = clock_timestamp() - interval '1 s'
        where status = 'running'
        """
    )


async def postpone(app: Treadle, count: int) -> None:
    """Tasks that fall due in a moment."""
    for _ in range(count):
        await app.enqueue("nap", {"naps": [0]}, delay=0.3)


def reaped(*reapers: Child) -> list[str]:
    """The tasks that these reapers say they took back."""
    return [line["task_id"] for each in reapers for line in each.events("claim.reaped")]


def promoted(*promoters: Child) -> int:
    """How many tasks these promoters say they made ready."""
    return sum(line["tasks"] for each in promoters for line in each.events("tasks.promoted"))


@pytest.mark.requirement("F10")
async def test_two_reapers_count_each_claim_once_and_one_may_be_killed(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    reapers = [spawn("reaper", service_s=0.2) for _ in range(2)]
    for each in reapers:
        await each.logged("reaper.started")

    await strand(app, conn, MANY)
    await until(lambda: _count(conn, "dead_lettered", MANY))
    await until(lambda: len(reaped(*reapers)) == MANY)
    reapers[0].kill()
    await strand(app, conn, MANY)
    await until(lambda: _count(conn, "dead_lettered", 2 * MANY))

    await until(lambda: len(reaped(*reapers)) == 2 * MANY)
    assert len(set(reaped(*reapers))) == 2 * MANY
    found = await value(conn, "select count(*) from treadle.attempts where class = 'crash'")
    assert found == 2 * MANY
    assert await value(conn, "select count(*) from treadle.dead_letters") == 2 * MANY


@pytest.mark.requirement("F10")
async def test_a_reaper_that_was_killed_is_replaced_by_the_next(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    first = spawn("reaper", service_s=0.2)
    await strand(app, conn, 1)
    await until(lambda: _count(conn, "dead_lettered", 1))
    first.kill()
    await strand(app, conn, 3)

    spawn("reaper")

    await until(lambda: _count(conn, "dead_lettered", 4))


@pytest.mark.requirement("F13")
async def test_two_promoters_count_each_task_once_and_one_may_be_killed(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    promoters = [spawn("promoter") for _ in range(2)]
    for each in promoters:
        await each.logged("promoter.started")

    await postpone(app, MANY)
    await until(lambda: _count(conn, "ready", MANY))
    await until(lambda: promoted(*promoters) == MANY)
    promoters[0].kill()
    await postpone(app, MANY)
    await until(lambda: _count(conn, "ready", 2 * MANY))

    await until(lambda: promoted(*promoters) == 2 * MANY)
    early = await value(conn, "select count(*) from treadle.tasks where run_at > clock_timestamp()")
    assert early == 0


@pytest.mark.requirement("F13")
async def test_a_promoter_that_was_killed_is_replaced_by_the_next(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    first = spawn("promoter")
    await postpone(app, 1)
    await until(lambda: _count(conn, "ready", 1))
    first.kill()
    await postpone(app, 3)

    spawn("promoter")

    await until(lambda: _count(conn, "ready", 4))


@pytest.mark.parametrize("kind", ["reaper", "promoter"])
async def test_a_service_ends_on_sigterm_with_success(spawn: Spawn, kind: str) -> None:
    child = spawn(kind)
    await child.logged(f"{kind}.started")

    child.send(signal.SIGTERM)

    assert await child.exit_code() == 0
    assert child.events(f"{kind}.stopped")


async def _count(conn: Conn, status: str, count: int) -> bool:
    return await rows(conn, "select count(*) from treadle.tasks where status = %s", status) == [
        (count,)
    ]
