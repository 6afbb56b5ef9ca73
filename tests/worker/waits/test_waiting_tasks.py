"""A waiting task is not counted, and temporary errors do not affect it."""

from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from tests.drivers.processes.postgres_proxy import Proxy
from tests.drivers.workers import Conn, answer_all, row, rows, run_all, status, until, working
from treadle import Context, Treadle
from treadle.settings import load_settings

pytestmark = pytest.mark.requirement("B2")


async def test_waiting_is_not_running(app: Treadle, conn: Conn) -> None:
    """Neither the timeout nor the heartbeat of a task runs while it waits."""

    @app.task(timeout_s=2, max_attempts=1)
    async def publish(ctx: Context) -> Any:
        return (await ctx.ask("Publish?")).value

    async with working(app, heartbeat_s=0.1):
        handle = await publish.enqueue()
        await until(lambda: rows(conn, "select id from treadle.waits where awaited"))
        await anyio.sleep(2.5)
        assert await rows(conn, "select id from treadle.reap_claims()") == []
        query = "select status, lease_until, heartbeat_at from treadle.tasks where id = %s"
        assert await row(conn, query, handle.id) == ("blocked", None, None)
        await answer_all(app, conn)
        assert await handle.result(timeout=20) == "yes"


async def test_a_handler_that_cleans_up_after_the_suspension_is_left_alone(
    app: Treadle, conn: Conn
) -> None:
    seen = []

    @app.task()
    async def tidy(ctx: Context) -> None:
        try:
            await ctx.step("work", anyio.sleep, 0.3)  # long enough to be marked as started
            await ctx.ask("Done?")
        finally:
            await anyio.sleep(0.4)
            seen.append(ctx.cancelled)

    await tidy.enqueue()
    with capture_logs() as logs:
        async with working(app, heartbeat_s=0.1):
            await until(lambda: seen)

    assert seen == [False]
    assert [each for each in logs if each["event"] == "task.claim_lost"] == []


@pytest.mark.parametrize("call", ["open_wait", "suspend_task"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_suspension_goes_through_although_the_connection_broke(
    database_url: str, conn: Conn, call: str, when: Any
) -> None:
    async with Proxy(database_url) as proxy:
        app = Treadle(settings=load_settings(database_url=proxy.url, prepare=False))

        @app.task()
        async def publish(ctx: Context) -> Any:
            proxy.lose(call, when)
            return (await ctx.ask("Publish?")).value

        async with app:
            handle = await publish.enqueue()
            await run_all(app)
            assert proxy.lost
            assert await answer_all(app, conn) == 1
            await run_all(app)
            assert await handle.result(timeout=5) == "yes"


@pytest.mark.requirement("F22")
async def test_a_task_whose_input_cannot_be_had_is_refused_without_a_call(
    app: Treadle, conn: Conn
) -> None:
    calls = []

    @app.task(max_attempts=5)
    async def read(text: str) -> None:
        calls.append(text)

    handle = await read.enqueue(text="")
    await conn.execute(
        "update treadle.tasks set inputs = jsonb_build_object('text', 'artifact:' || id)"
    )
    await run_all(app)

    query = "select status, failure_class, failure_reason, attempt from treadle.tasks where id = %s"
    found = await row(conn, query, handle.id)
    assert (*found[:2], found[3]) == ("dead_lettered", "refused", 1)
    assert "text" in found[2]
    assert calls == []


async def test_an_error_beside_a_question_fails_the_attempt(app: Treadle, conn: Conn) -> None:
    """It comes before the claim is given up: the question stays open and the attempt has failed."""

    @app.task(max_attempts=1)
    async def publish(ctx: Context) -> None:
        async def stumble() -> None:
            await ctx.step("stumble", fail)

        async def fail() -> None:
            await anyio.sleep(0.1)
            raise ValueError("stumbled")

        async with anyio.create_task_group() as group:
            group.start_soon(ctx.ask, "Publish?")
            group.start_soon(stumble)

    handle = await publish.enqueue()

    await run_all(app)

    query = "select status, failure_reason like '%%stumbled%%' from treadle.tasks where id = %s"
    assert await row(conn, query, handle.id) == ("dead_lettered", True)


async def test_a_task_that_is_cancelled_while_it_waits_is_not_called_again(
    app: Treadle, conn: Conn
) -> None:
    calls = []

    @app.task()
    async def publish(ctx: Context) -> None:
        calls.append(ctx.attempt)
        await ctx.ask("Publish?")

    handle = await publish.enqueue()
    await run_all(app)
    assert await handle.cancel("not wanted")
    assert await answer_all(app, conn) == 0
    await run_all(app)

    assert calls == [1]
    assert await status(conn, handle.id) == "cancelled"
