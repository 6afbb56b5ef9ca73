"""A task sleeps without a worker, by the clock of the database."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import anyio
import pytest

from treadle import Context, Handle, RetryAfter, Treadle
from treadle.testing import TaskRunner

pytestmark = pytest.mark.own_database
DAY = timedelta(days=1)


@pytest.fixture
async def harness(database_url: str) -> AsyncIterator[TaskRunner]:
    """The application of a test on a database whose time can be moved."""
    async with TaskRunner(Treadle(database_url), database_url) as made:
        yield made


async def start(harness: TaskRunner, handler: Callable[[Context], Awaitable[object]]) -> Handle:
    task = harness.app.task("nap")(handler)
    db, registry = harness.app.db, harness.app.registry
    await db.types.declare(registry.declaration(), [])
    return await task.enqueue()


async def test_a_sleeping_task_holds_no_claim_and_resumes_in_time(
    harness: TaskRunner,
) -> None:
    calls = []

    async def nap(ctx: Context) -> int:
        await ctx.step("before", lambda: calls.append("before"))
        await ctx.sleep(DAY)
        await ctx.sleep(3600, name="second")
        return ctx.attempt

    handle = await start(harness, nap)

    assert await harness.drain(promote=True) == {"pending": 1}
    await harness.clock.advance(DAY)
    assert await harness.drain(promote=True) == {"pending": 1}
    await harness.clock.advance(DAY)
    assert await harness.drain(promote=True) == {"completed": 1}

    assert await handle.result(timeout=10) == 1
    assert calls == ["before"]
    steps = await harness.app.db.calls.rows("select name, kind from treadle.task_steps", {})
    assert {(step["name"], step["kind"]) for step in steps} == {
        ("before", "step"),
        ("sleep:86400s", "sleep"),
        ("sleep:second", "sleep"),
    }


async def test_a_task_resumed_too_early_sleeps_for_the_rest(harness: TaskRunner) -> None:
    async def nap(ctx: Context) -> str:
        if ctx.attempt == 1 and len(ctx.steps) == 1:
            raise RetryAfter(0)  # woken, and tried again before the time has come
        await ctx.sleep(DAY)
        return "slept"

    handle = await start(harness, nap)
    await harness.drain()
    async with harness.app.db.calls.connection() as conn:
        await conn.execute("update treadle.tasks set run_at = null, status = 'ready'")

    assert await harness.drain() == {"pending": 1}
    await harness.clock.advance(DAY)
    assert await harness.drain(promote=True) == {"completed": 1}
    assert await handle.result(timeout=10) == "slept"


async def test_a_time_that_has_come_does_not_suspend(harness: TaskRunner) -> None:
    async def nap(ctx: Context) -> str:
        await ctx.sleep(0)
        await ctx.sleep(timedelta(seconds=-5))
        return "at once"

    handle = await start(harness, nap)

    assert await harness.drain() == {"completed": 1}
    assert await handle.result(timeout=10) == "at once"


async def test_the_shortest_of_sleeps_side_by_side_wakes_the_task(harness: TaskRunner) -> None:
    woken = []

    async def nap(ctx: Context) -> None:
        async def one(days: int) -> None:
            await ctx.sleep(days * DAY)
            await ctx.step(f"day {days}", lambda: woken.append(days))

        async with anyio.create_task_group() as group:
            for days in (3, 1, 2):
                group.start_soon(one, days)

    await start(harness, nap)
    for days in (1, 2, 3):
        assert await harness.drain(promote=True) == {"pending": 1}
        await harness.clock.advance(DAY)
        await harness.drain(promote=True)
        assert woken == list(range(1, days + 1))

    assert await harness.states() == {"completed": 1}
