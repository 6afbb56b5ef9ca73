"""Sync functions run in threads: they may block without stopping anything else."""

import threading
import time

import anyio
import pytest

from tests.drivers.workers import Conn, row, run_all, until, working
from treadle import Context, RetryAfter, Treadle


async def test_plain_functions_run_side_by_side_in_threads(app: Treadle) -> None:
    together = threading.Barrier(3, timeout=20)
    names = set()

    @app.task()
    def block(ctx: Context, n: int) -> int:
        names.add(threading.current_thread())
        together.wait()
        return n + ctx.attempt

    handles = await block.enqueue_many([{"n": n} for n in range(3)])

    await run_all(app, slots=3)

    assert [await handle.result(timeout=5) for handle in handles] == [1, 2, 3]
    assert len(names) == 3
    assert threading.main_thread() not in names


async def test_a_blocking_function_delays_neither_heartbeats_nor_other_tasks(
    app: Treadle, conn: Conn
) -> None:
    free = threading.Event()

    @app.task()
    def block() -> None:
        free.wait(60)

    @app.task()
    async def quick() -> str:
        return "done"

    async def beaten() -> bool:
        found = await row(
            conn,
            "select heartbeat_at > started_at + interval '0.2 s' from treadle.tasks where id = %s",
            blocked.id,
        )
        return found == (True,)

    try:
        async with working(app, slots=2, heartbeat_s=0.2):
            blocked = await block.enqueue()
            await until(beaten)
            assert await (await quick.enqueue()).result(timeout=10) == "done"
            free.set()
    finally:
        free.set()

    assert await blocked.status() == "completed"


async def test_a_plain_function_that_runs_too_long_fails_its_attempt(
    app: Treadle, conn: Conn
) -> None:
    """It cannot be interrupted, but it can ask; its slot is free for the next at once."""
    free = threading.Event()
    told = []

    @app.task(max_attempts=1, timeout_s=0.2)
    def linger(ctx: Context) -> None:
        free.wait(60)
        told.append(ctx.cancelled)

    handle = await linger.enqueue()
    try:
        await run_all(app, slots=1)
        found = await row(
            conn, "select status, failure_class from treadle.tasks where id = %s", handle.id
        )
    finally:
        free.set()

    assert found == ("dead_lettered", "timeout")
    await until(lambda: told == [True])


async def test_a_plain_function_may_raise_and_return_outcomes(app: Treadle) -> None:
    @app.task(max_attempts=3)
    def decide(ctx: Context) -> object:
        if ctx.attempt == 1:
            raise RetryAfter(0)
        if ctx.attempt == 2:
            return RetryAfter(0)
        return "third"

    handle = await decide.enqueue()

    await run_all(app)

    assert await handle.result(timeout=5) == "third"


@pytest.mark.requirement("F10")
async def test_a_plain_function_reports_progress(app: Treadle, conn: Conn) -> None:
    free = threading.Event()

    @app.task()
    def count(ctx: Context) -> None:
        for n in range(1, 4):
            ctx.progress(n / 4, at=n)
            time.sleep(0.01)
        free.wait(60)

    async def told() -> bool:
        found = await row(conn, "select progress from treadle.tasks where id = %s", handle.id)
        return found == ({"value": 0.75, "at": 3},)

    try:
        async with working(app, heartbeat_s=0.2):
            handle = await count.enqueue()
            await until(told)
            free.set()
    finally:
        free.set()


async def test_the_next_look_comes_while_a_thread_still_blocks(app: Treadle) -> None:
    """An abandoned thread does not take the place of the handlers that come after it."""
    free = threading.Event()

    @app.task(max_attempts=1, timeout_s=0.1)
    def linger() -> None:
        free.wait(60)

    @app.task()
    def next_one() -> str:
        return "ran"

    try:
        async with working(app, slots=1, drain_s=0):
            for _ in range(3):
                await linger.enqueue()
            after = await next_one.using(priority=90).enqueue()
            with anyio.fail_after(20):
                assert await after.result() == "ran"
    finally:
        free.set()
