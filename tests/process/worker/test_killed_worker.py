"""A killed worker loses nothing: the reaper and another worker finish its tasks."""

import anyio
import pytest

from tests.drivers.processes.children import (
    Conn,
    Spawn,
    all_completed,
    rows,
    statuses,
    until,
    value,
)
from treadle import Treadle

QUICK = {"heartbeat_s": 0.4, "claim_ttl_s": 1, "slots": 3}
LEASE_S = 1.2


@pytest.mark.requirement("F10")
async def test_the_tasks_of_a_killed_worker_are_finished_by_another(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    reaper = spawn("reaper", service_s=0.5)
    spawn("promoter")
    await reaper.logged("reaper.started")
    first = spawn("worker", agent_id="first", **QUICK)
    for _ in range(5):
        await app.enqueue("nap", {"naps": [3600, 0.05]})
    await until(lambda: _held(conn, running=3))

    first.kill()
    killed_at = await value(conn, "select clock_timestamp()")
    await until(lambda: _has_nothing(conn, "first"))

    crashes = await rows(
        conn,
        """
        select attempt, agent_id, outcome, class, extract(epoch from ended_at - %s)::float8
        from treadle.attempts
        """,
        killed_at,
    )
    assert {crash[:4] for crash in crashes} == {(1, "first", "failed", "crash")}
    # A dead worker's task is claimable within its lease and a second.
    assert max(crash[4] for crash in crashes) < LEASE_S + 1

    # Prefetched tasks that it released have not started: the long nap would be its first.
    await conn.execute("update treadle.tasks set spec = '{\"naps\": [0.05]}' where attempt = 0")
    second = spawn("worker", agent_id="second", slots=3)
    await all_completed(conn, 5)

    again = await value(conn, "select count(*) from treadle.tasks where attempt = 2")
    assert await value(conn, "select count(*) from treadle.attempts") == len(crashes) == again >= 3
    assert await rows(conn, "select distinct completed_by, output from treadle.tasks") == [
        ("second", "second")
    ]
    ends = await rows(conn, "select task_id, agent from effects where what = 'end'")
    assert len({task for task, _ in ends}) == len(ends) == 5
    assert {agent for _, agent in ends} == {"second"}
    await until(lambda: _is_silent(conn))
    assert second.events("task.claim_lost") == []


@pytest.mark.requirement("F8")
async def test_a_worker_killed_between_write_and_commit_has_written_nothing(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    spawn("reaper", service_s=0.5)
    spawn("promoter")
    first = spawn("worker", agent_id="first", **QUICK)
    handle = await app.enqueue("pay_or_die")

    assert await first.exit_code() == -9
    spawn("worker", agent_id="second", slots=3)

    assert await handle.result(timeout=40) == "second"
    assert await rows(conn, "select task_id, agent, attempt from effects") == [
        (handle.id, "second", 2)
    ]


async def test_work_continues_without_reaper_and_promoter(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    """Only tasks that need the services wait for them."""
    spawn("worker", **QUICK)
    for _ in range(20):
        await app.enqueue("nap", {"naps": [0]})
    later = await app.enqueue("stumble")

    await until(lambda: _count(conn, completed=20, retrying=1))
    await anyio.sleep(0.3)
    assert await later.status() == "retrying"
    spawn("promoter")

    await later.result(timeout=40)


async def _held(conn: Conn, **wanted: int) -> bool:
    found = await statuses(conn)
    return found.items() >= wanted.items()


async def _has_nothing(conn: Conn, agent: str) -> bool:
    return await rows(conn, "select from treadle.tasks where agent_id = %s", agent) == []


async def _count(conn: Conn, **wanted: int) -> bool:
    return await statuses(conn) == wanted


async def _is_silent(conn: Conn) -> bool:
    return await rows(conn, "select status, silent from treadle.agents where id = 'first'") == [
        ("offline", True)
    ]
