"""A task spawns subtasks and continues, or waits for them without counting an attempt."""

from typing import Any

import anyio
import pytest

from tests.drivers.workers import Conn, row, rows, run_all, status
from treadle import Context, FailPermanently, InvalidArgument, RetryAfter, TaskFailed, Treadle

pytestmark = pytest.mark.requirement("F5")
TASK = "select status, attempt from treadle.tasks where id = %s"


async def test_a_task_waits_for_its_subtasks_and_has_their_outputs(
    app: Treadle, conn: Conn
) -> None:
    calls = []

    @app.task()
    async def square(n: int) -> int:
        return n * n

    @app.task()
    async def total(ctx: Context, upto: int) -> dict[str, Any]:
        await ctx.step("plan", lambda: calls.append("plan"))
        outputs = await ctx.spawn_and_wait([square.call(n=n) for n in range(upto)])
        return {"outputs": outputs, "attempt": ctx.attempt}

    handle = await total.enqueue(upto=4)

    await run_all(app)

    assert await handle.result(timeout=5) == {"outputs": [0, 1, 4, 9], "attempt": 1}
    assert calls == ["plan"]
    parents = await rows(conn, "select parent_id from treadle.tasks where type = 'square'")
    assert parents == [(handle.id,)] * 4


async def test_a_parent_waits_without_a_claim(app: Treadle, conn: Conn) -> None:
    @app.task(queue=app.queue("elsewhere"))
    async def child() -> str:
        return "done"

    @app.task()
    async def parent(ctx: Context) -> Any:
        return await ctx.spawn_and_wait([child])

    handle = await parent.enqueue()

    await run_all(app, queues=["default"])
    assert await row(conn, TASK, handle.id) == ("pending", 0)
    await run_all(app, queues=["elsewhere"])
    assert await row(conn, TASK, handle.id) == ("ready", 0)
    await run_all(app, queues=["default"])

    assert await handle.result(timeout=5) == ["done"]


async def test_a_task_carries_on_beside_a_subtask_and_asks_for_it_later(
    app: Treadle, conn: Conn
) -> None:
    @app.task()
    async def child(n: int) -> int:
        return n

    @app.task()
    async def parent(ctx: Context) -> Any:
        first = await ctx.spawn(child, n=1)
        second = await ctx.spawn(child.using(priority=1).call(n=2))
        if ctx.attempt == 1:
            raise RetryAfter(0)
        assert (first.created, second.created) == (False, False)
        return [await first.result(), await second.result()]

    handle = await parent.enqueue()

    await run_all(app)

    assert await handle.result(timeout=5) == [1, 2]
    assert await row(conn, "select count(*) from treadle.tasks where type = 'child'") == (2,)


async def test_subtasks_that_fail_can_stand_for_their_outputs(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def child(n: int) -> int:
        if n == 1:
            raise FailPermanently("not this one")
        return n

    @app.task()
    async def parent(ctx: Context) -> Any:
        found = await ctx.spawn_and_wait(
            [child.call(n=n) for n in range(3)], return_exceptions=True
        )
        return [str(each) if isinstance(each, TaskFailed) else each for each in found]

    handle = await parent.enqueue()

    await run_all(app)

    [first, second, third] = await handle.result(timeout=5)
    assert (first, third) == (0, 2)
    assert "ended as dead_lettered: not this one" in second


async def test_a_subtask_that_gave_up_holds_its_parent_until_somebody_decides(
    app: Treadle, conn: Conn
) -> None:
    broken = [True]

    @app.task()
    async def child() -> str:
        if broken:
            raise FailPermanently("broken")
        return "mended"

    @app.task()
    async def parent(ctx: Context) -> Any:
        return await ctx.spawn_and_wait([child])

    handle = await parent.enqueue()
    await run_all(app)
    assert await row(conn, TASK, handle.id) == ("pending", 0)

    broken.clear()
    [[child_id]] = await rows(conn, "select id from treadle.tasks where type = 'child'")
    await app.db.tasks.retry(child_id)
    await run_all(app)

    assert await handle.result(timeout=5) == ["mended"]


async def test_a_failed_subtask_that_is_asked_for_raises(app: Treadle, conn: Conn) -> None:
    seen = []

    @app.task()
    async def child() -> None:
        raise FailPermanently("broken")

    @app.task()
    async def parent(ctx: Context) -> str:
        spawned = await ctx.spawn(child)
        if ctx.attempt == 1:
            raise RetryAfter(0.1)
        try:
            await spawned.result()
        except TaskFailed as error:
            seen.append(str(error))
        return "went on"

    handle = await parent.enqueue()
    await run_all(app)
    assert await status(conn, handle.id) == "retrying"
    await conn.execute("update treadle.tasks set retry_at = now() where retry_at is not null")
    await conn.execute("select treadle.promote_tasks()")
    await run_all(app)

    assert await handle.result(timeout=5) == "went on"
    assert "ended as dead_lettered: broken" in seen[0]


async def test_spawns_side_by_side_are_waited_for_together(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def child(n: int) -> int:
        if n < 0:
            raise FailPermanently("negative")
        return n

    @app.task()
    async def parent(ctx: Context) -> Any:
        found: dict[int, Any] = {}

        async def one(n: int) -> None:
            found[n] = await ctx.spawn_and_wait([child.call(n=n)], return_exceptions=n < 2)

        async with anyio.create_task_group() as group:
            for n in (-1, 1, 2, 3):
                group.start_soon(one, n)
        return [isinstance(found[-1][0], TaskFailed), found[1], found[2], found[3]]

    handle = await parent.enqueue()

    await run_all(app)

    assert await handle.result(timeout=5) == [True, [1], [2], [3]]
    assert await row(conn, TASK, handle.id) == ("completed", 1)


async def test_what_cannot_be_spawned_is_refused(app: Treadle) -> None:
    seen = []

    @app.task()
    async def child(n: int) -> None: ...

    @app.task()
    async def parent(ctx: Context) -> Any:
        for given, arguments in [("child", {}), (child.call(n=1), {"n": 2}), (child, {"n": "x"})]:
            try:
                await ctx.spawn(given, **arguments)  # type: ignore[arg-type]
            except InvalidArgument as error:
                seen.append(str(error))
        return await ctx.spawn_and_wait([])

    handle = await parent.enqueue()

    await run_all(app)

    assert await handle.result(timeout=5) == []
    assert seen[:2] == ["'chil...' cannot be spawned", "<Call child> already has its arguments"]
    assert seen[2].startswith("child does not take these arguments: n:")
