"""A worker takes tasks ahead to stay busy, but does not hoard them."""

import anyio
import pytest

from tests.worker.support import Conn, rows, run_all, statuses, until, working
from treadle import Context, Treadle
from treadle.worker import lease

pytestmark = pytest.mark.requirement("F8")


async def test_two_workers_share_long_tasks_and_give_back_what_they_took_ahead(
    app: Treadle, conn: Conn
) -> None:
    release = anyio.Event()

    @app.task()
    async def hold() -> None:
        await release.wait()

    await hold.enqueue_many([{}] * 8)

    async def shared() -> bool:
        found = await rows(
            conn,
            """
            select coalesce(agent_id, '-'), status, attempt, count(*)
            from treadle.tasks group by 1, 2, 3 order by 1
            """,
        )
        return found == [("-", "ready", 0, 4), ("a", "running", 1, 2), ("b", "running", 1, 2)]

    async with (
        working(app, agent="a", slots=2, claim_ttl_s=1, heartbeat_s=5),
        working(app, agent="b", slots=2, claim_ttl_s=1, heartbeat_s=5),
    ):
        await until(shared)
        release.set()
        await until(lambda: _all_done(conn, 8))

    assert await rows(conn, "select task_id from treadle.attempts") == []


async def test_no_worker_takes_all_the_long_tasks(app: Treadle, conn: Conn) -> None:
    """Nothing is given back for half a minute: what one hoards, the other does not get."""
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


async def test_a_claim_taken_ahead_is_given_back_before_its_ttl_is_over(
    app: Treadle, conn: Conn
) -> None:
    attempts = []

    @app.task()
    async def linger(ctx: Context) -> None:
        attempts.append(ctx.attempt)
        await anyio.sleep(3.3)

    await linger.enqueue_many([{}] * 3)

    async with working(app, slots=1, claim_ttl_s=6, heartbeat_s=15):
        await until(lambda: _all_done_with_a_reaper(conn, 3), within=40)

    assert attempts == [1] * 3
    assert await rows(conn, "select task_id from treadle.attempts") == []


async def test_a_claim_that_waited_for_its_slot_is_marked_started_within_its_ttl(
    app: Treadle, conn: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "START_AFTER_S", 90)

    @app.task()
    async def linger(seconds: float) -> None:
        await anyio.sleep(seconds)

    await linger.enqueue(seconds=2.7)
    await linger.enqueue(seconds=4.8)

    async with working(app, slots=1, claim_ttl_s=7.2, heartbeat_s=90):
        await until(lambda: _all_done_with_a_reaper(conn, 2), within=40)

    assert await rows(conn, "select task_id from treadle.attempts") == []


async def _all_done_with_a_reaper(conn: Conn, count: int) -> bool:
    await conn.execute("select treadle.reap_claims()")
    return await _all_done(conn, count)


async def _all_done(conn: Conn, count: int) -> bool:
    return await statuses(conn) == {"completed": count}
