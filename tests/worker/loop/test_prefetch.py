"""A worker prefetches tasks to stay busy, but not too many."""

from uuid import UUID

import anyio
import pytest

from tests.drivers.workers import Conn, rows, run_all, status, statuses, until, working
from treadle import Treadle
from treadle.worker import lease

pytestmark = pytest.mark.requirement("F8")


async def test_two_workers_share_long_tasks_and_release_prefetched_ones(
    app: Treadle, conn: Conn
) -> None:
    release = anyio.Event()

    @app.task()
    async def hold() -> None:
        await release.wait()

    await hold.enqueue_many([{}] * 8)

    async def shared() -> bool:
        # A task that is not released in time would cost an attempt.
        await conn.execute("select treadle.reap_claims()")
        found = await rows(
            conn,
            """
            select coalesce(agent_id, '-'), status, attempt, count(*)
            from treadle.tasks group by 1, 2, 3 order by 1
            """,
        )
        return found == [("-", "ready", 0, 4), ("a", "running", 1, 2), ("b", "running", 1, 2)]

    async with (
        working(app, agent="a", slots=2, claim_ttl_s=4, heartbeat_s=15),
        working(app, agent="b", slots=2, claim_ttl_s=4, heartbeat_s=15),
    ):
        await until(shared)
        release.set()
        await until(lambda: _all_done(conn, 8))

    assert await rows(conn, "select task_id from treadle.attempts") == []


async def test_no_worker_takes_all_the_long_tasks(app: Treadle, conn: Conn) -> None:
    """Nothing is released for half a minute: a prefetched task is not available to others."""
    release = anyio.Event()

    @app.task()
    async def hold() -> None:
        await release.wait()

    await hold.enqueue_many([{}] * 8)

    async def both_busy() -> bool:
        found = await rows(
            conn,
            """
            select agent_id, count(*) from treadle.tasks
            where status = 'running' group by 1 order by 1
            """,
        )
        return found == [("a", 2), ("b", 2)]

    async with working(app, agent="a", slots=2), working(app, agent="b", slots=2):
        await until(both_busy)
        release.set()
        await until(lambda: _all_done(conn, 8))


async def test_with_short_tasks_a_worker_claims_more_than_its_slots_at_once(
    app: Treadle, conn: Conn
) -> None:
    @app.task()
    async def nothing() -> None:
        return None

    await nothing.enqueue_many([{}] * 300)

    await run_all(app, slots=2)

    claims = await rows(conn, "select last_token, count(*) from treadle.tasks group by 1")
    assert max(count for _, count in claims) > 10


async def test_without_prefetch_a_worker_claims_only_what_it_can_start(
    app: Treadle, conn: Conn
) -> None:
    @app.task()
    async def nothing() -> None:
        return None

    await nothing.enqueue_many([{}] * 50)

    await run_all(app, slots=2, prefetch=0)

    claims = await rows(conn, "select last_token, count(*) from treadle.tasks group by 1")
    assert max(count for _, count in claims) <= 2
    assert sum(count for _, count in claims) == 50


async def test_a_claim_that_waited_for_its_slot_is_marked_started_within_its_ttl(
    app: Treadle, conn: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the usual time to mark a start nor a heartbeat comes before the TTL is over."""
    monkeypatch.setattr(lease, "START_AFTER_S", 90)
    holds = [anyio.Event(), anyio.Event()]

    @app.task()
    async def hold(number: int) -> None:
        await holds[number].wait()

    first = await hold.enqueue(number=0)
    second = await hold.enqueue(number=1)

    async with working(app, slots=1, claim_ttl_s=8, heartbeat_s=90):
        await until(lambda: _is(conn, first.id, "running"))
        assert await status(conn, second.id) == "claimed"
        holds[0].set()
        await until(lambda: _is(conn, second.id, "running"))
        await conn.execute("select treadle.reap_claims()")
        holds[1].set()
        await until(lambda: _all_done(conn, 2))

    assert await rows(conn, "select task_id from treadle.attempts") == []


async def _is(conn: Conn, task_id: UUID, wanted: str) -> bool:
    return await status(conn, task_id) == wanted


async def _all_done(conn: Conn, count: int) -> bool:
    return await statuses(conn) == {"completed": count}
