"""Handlers wait for a connection as for a slot: a shortage fails no attempt."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from tests.drivers.workers import Conn, rows, run_all, status, statuses, until, working
from treadle import Context, Treadle
from treadle.db import pool
from treadle.settings import load_settings

pytestmark = pytest.mark.requirement("B16")
# What a handler would get if it had to have its connection within this time.
CONNECT_S = 1.0


@pytest.fixture
async def small(database_url: str) -> AsyncIterator[Treadle]:
    """An application whose workers have two connections for transactions, and two for calls."""
    settings = load_settings(
        database_url=database_url,
        notify=False,
        poll_s=0.2,
        pool_size=2,
        transaction_connections=2,
        connect_timeout_s=CONNECT_S,
    )
    async with Treadle(settings=settings) as made:
        yield made


async def test_transactions_that_wait_longer_than_connecting_may_take_fail_no_attempt(
    small: Treadle, conn: Conn
) -> None:
    @small.task()
    async def hold(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            await tx.execute("select pg_sleep(0.7)")

    # Two at a time: the last ones wait for more than two seconds.
    await hold.enqueue_many([{} for _ in range(8)])

    await run_all(small, within=60, slots=8)

    assert await statuses(conn) == {"completed": 8}
    assert await rows(conn, "select from treadle.attempts") == []


async def test_a_long_wait_is_in_the_log(small: Treadle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WARN_AFTER_S", 0.1)

    @small.task()
    async def hold(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            await tx.execute("select pg_sleep(0.7)")

    await hold.enqueue_many([{} for _ in range(6)])

    with capture_logs() as logs:
        await run_all(small, within=60, slots=6)

    said = [entry for entry in logs if entry["event"] == "pool.waiting"]
    # Once for all that wait, not once for each.
    assert len(said) == 1
    assert said[0]["log_level"] == "warning"
    assert said[0]["waited_s"] >= 0.1
    assert (said[0]["pool"], said[0]["in_use"], said[0]["size"]) == ("treadle-transactions", 2, 2)


async def test_heartbeats_have_connections_that_handlers_cannot_use(
    small: Treadle, conn: Conn
) -> None:
    release = anyio.Event()

    @small.task()
    async def hold(ctx: Context) -> None:
        async with ctx.transaction():
            await release.wait()

    await hold.enqueue_many([{} for _ in range(6)])
    beats = "select count(*) from treadle.tasks where heartbeat_at > claimed_at + interval '1.2 s'"

    async with working(small, slots=6, heartbeat_s=0.4):
        await until(lambda: _equals(conn, beats, 6))
        # Three heartbeats have passed: without them the claims would have expired.
        assert await rows(conn, "select id from treadle.reap_claims()") == []
        release.set()
        await until(lambda: _completed(conn, 6))


async def test_a_handler_in_a_transaction_can_make_other_calls(small: Treadle, conn: Conn) -> None:
    together = anyio.Event()
    inside = 0

    @small.task()
    async def leaf() -> None:
        return None

    @small.task()
    async def hold(ctx: Context) -> None:
        nonlocal inside
        async with ctx.transaction():
            inside += 1
            if inside == 2:
                together.set()
            # All connections for transactions are taken now.
            await together.wait()
            await leaf.enqueue()

    await hold.enqueue_many([{}, {}])

    await run_all(small, slots=2)

    assert await statuses(conn) == {"completed": 4}


async def test_other_calls_of_handlers_wait_too(
    small: Treadle, conn: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "WARN_AFTER_S", 1.5 * CONNECT_S)
    go, begun = anyio.Event(), []

    @small.task()
    async def leaf() -> None:
        return None

    @small.task()
    async def produce() -> None:
        begun.append(1)
        await go.wait()
        await leaf.enqueue()

    await produce.enqueue_many([{} for _ in range(6)])

    with capture_logs() as logs:
        async with working(small, slots=6):
            await until(lambda: len(begun) == 6)
            async with conn.transaction():
                await conn.execute("lock table treadle.tasks in exclusive mode")
                go.set()
                # Two calls wait for the lock, the other four for a connection.
                await until(lambda: any(entry["event"] == "pool.waiting" for entry in logs))
            await until(lambda: _completed(conn, 12))

    assert await rows(conn, "select from treadle.attempts") == []


async def test_a_handler_that_waits_for_a_connection_is_released_on_drain(
    small: Treadle, conn: Conn
) -> None:
    begun = []

    @small.task()
    async def hold(ctx: Context) -> None:
        begun.append(ctx.task.id)
        async with ctx.transaction():
            await anyio.sleep_forever()

    handles = await hold.enqueue_many([{} for _ in range(4)])

    with anyio.fail_after(30):
        async with working(small, slots=4, drain_s=0):
            await until(lambda: len(begun) == 4)

    assert [await status(conn, handle.id) for handle in handles] == ["ready"] * 4
    assert await rows(conn, "select distinct attempt from treadle.tasks") == [(0,)]


async def test_a_worker_registers_the_number_of_connections_it_may_open(
    small: Treadle, conn: Conn
) -> None:
    @small.task()
    async def leaf() -> None:
        return None

    await run_all(small, slots=8, agent="w")

    found = await rows(conn, "select meta from treadle.agent_load where agent_id = 'w'")
    # Two pools of two for calls, and two for transactions; it does not listen.
    assert found == [({"slots": 8, "connections": 6},)]


async def _equals(conn: Conn, query: str, expected: Any) -> bool:
    return await rows(conn, query) == [(expected,)]


async def _completed(conn: Conn, count: int) -> bool:
    return await statuses(conn) == {"completed": count}
