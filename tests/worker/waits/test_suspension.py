"""A task releases its claim only after its other work is saved, and past every `except`."""

import asyncio
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from tests.drivers.workers import Conn, answer_all, run_all, status
from treadle import Context, Suspended, Treadle
from treadle.errors import IllegalTransition

pytestmark = pytest.mark.requirement("B2")


async def test_a_handler_that_catches_exceptions_does_not_catch_the_suspension(
    app: Treadle, conn: Conn
) -> None:
    seen: list[Any] = []

    @app.task()
    async def careful(ctx: Context) -> Any:
        try:
            return (await ctx.ask("Sure?")).value
        except Exception as error:
            seen.append(error)
        finally:
            seen.append("cleaned up")
        return "fallback"

    handle = await careful.enqueue()
    await run_all(app)
    assert await status(conn, handle.id) == "blocked"
    await answer_all(app, conn)
    await run_all(app)

    assert await handle.result(timeout=5) == "yes"
    assert seen == ["cleaned up"] * 2


@pytest.mark.parametrize("kind", ["asyncio", "anyio", "gather"])
async def test_a_step_beside_a_question_is_finished_and_not_cancelled(
    app: Treadle, conn: Conn, kind: str
) -> None:
    calls: list[str] = []

    async def slow() -> str:
        calls.append("began")
        await anyio.sleep(0.2)
        calls.append("ended")
        return "expensive"

    @app.task()
    async def publish(ctx: Context) -> list[Any]:
        found: list[Any] = []

        async def ask() -> None:
            found.append((await ctx.ask("Publish?")).value)

        async def work() -> None:
            found.append(await ctx.step("slow", slow))
            found.append(await ctx.step("next", lambda: calls.append("next")))

        if kind == "asyncio":
            async with asyncio.TaskGroup() as group:
                group.create_task(ask())
                group.create_task(work())
        elif kind == "anyio":
            async with anyio.create_task_group() as others:
                others.start_soon(ask)
                others.start_soon(work)
        else:
            await asyncio.gather(ask(), work())
        return found

    handle = await publish.enqueue()
    await run_all(app)
    assert await status(conn, handle.id) == "blocked"
    assert calls == ["began", "ended", "next"]
    await answer_all(app, conn)
    await run_all(app)

    assert await handle.result(timeout=5) == ["yes", "expensive", None]
    assert calls == ["began", "ended", "next"]


async def test_a_handler_that_catches_the_suspension_gets_an_error(
    app: Treadle, conn: Conn
) -> None:
    calls = []

    @app.task()
    async def rude(ctx: Context) -> str:
        try:
            return str((await ctx.ask("Sure?")).value)
        except BaseException:
            with pytest.raises(Suspended):
                await ctx.step("more", lambda: calls.append("paid"))
        return "made up"

    handle = await rude.enqueue()
    with capture_logs() as logs:
        await run_all(app)

    assert await status(conn, handle.id) == "blocked"
    [told] = [each for each in logs if each["event"] == "task.result_ignored"]
    assert told["log_level"] == "warning"
    assert "made up" in told["result"]
    assert calls == []

    await answer_all(app, conn)
    await run_all(app)
    assert await handle.result(timeout=5) == "yes"


async def test_a_step_cannot_wait(app: Treadle) -> None:
    seen: list[str] = []

    @app.task()
    async def odd(ctx: Context) -> None:
        async def inside() -> None:
            for wait in (lambda: ctx.ask("Sure?"), lambda: ctx.sleep(1), lambda: ctx.spawn(odd)):
                with pytest.raises(IllegalTransition) as caught:
                    await wait()
                seen.append(str(caught.value))

        await ctx.step("odd", inside)

    handle = await odd.enqueue()

    await run_all(app)

    await handle.result(timeout=5)
    assert seen == [f"step odd cannot {what}" for what in ("ask", "sleep", "spawn")]
