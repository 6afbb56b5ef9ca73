"""An idle worker causes little load, and wakes at once."""

from typing import Any

import anyio
import pytest

from tests.drivers.processes.postgres_proxy import Proxy
from tests.drivers.workers import Conn, Stopwatch, row, rows, run_all, until, working
from treadle import Context, Treadle
from treadle.db.claims import Claims
from treadle.models import Claim
from treadle.settings import load_settings
from treadle.worker import loop


@pytest.mark.requirement("F11")
async def test_an_idle_worker_sends_at_most_one_statement_in_two_seconds(
    database_url: str,
) -> None:
    async with Proxy(database_url) as proxy:
        app = Treadle(settings=load_settings(database_url=proxy.url))

        @app.task()
        async def nothing() -> None:
            return None

        async with app, working(app):
            await until(lambda: proxy.requests > 0)
            before = 0
            with anyio.fail_after(40):
                while proxy.requests > before:
                    before = proxy.requests
                    await anyio.sleep(2)
            watch = Stopwatch()
            await anyio.sleep(12)
            sent, took_s = proxy.requests - before, watch.seconds

    # At least the poll was there, or nothing was measured.
    assert 1 <= sent <= took_s / 2


async def test_a_worker_asks_for_notifications_again_however_long_it_may_sleep(
    database_url: str, conn: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "NOTIFY_S", 0.3)
    app = Treadle(settings=load_settings(database_url=database_url, poll_s=60))

    @app.task()
    async def nothing() -> None:
        return None

    async with app, working(app):
        await until(lambda: _is_idle(conn))
        await anyio.sleep(1.5)
        await conn.execute("update treadle.idle_queues set idle_until = clock_timestamp()")

        await until(lambda: _is_idle(conn), within=15)


async def test_claimed_tasks_start_before_the_next_claim(
    app: Treadle, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    ask = Claims.take

    async def take(self: Claims, *given: Any, **named: Any) -> list[Claim]:
        order.append("asked")
        found = await ask(self, *given, **named)
        if found:
            order.append("answered")
        return found

    @app.task()
    async def note() -> None:
        order.append("started")

    monkeypatch.setattr(Claims, "take", take)
    await note.enqueue()
    await run_all(app)

    assert order[order.index("answered") + 1] == "started"


@pytest.mark.requirement("F11")
async def test_a_task_reaches_an_idle_worker_without_waiting_for_its_poll(
    woken_app: Treadle, conn: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the quick looks after each task, which would find it as well.

    The first of them stays: it is followed by the look that says that the worker is idle.
    """
    monkeypatch.setattr(loop, "QUICK_POLLS_S", (0.0,))
    # Its polls are 48 s apart or more.
    monkeypatch.setattr(loop, "NOTIFY_S", 600)
    started = []

    @woken_app.task()
    async def note() -> None:
        started.append(1)

    async with working(woken_app):
        for n in range(1, 4):
            # Producers notify only while a worker is known to be idle.
            await until(lambda: _is_idle(conn), within=40)
            await note.enqueue()
            await until(lambda count=n: len(started) == count, within=40)


async def test_types_without_a_handler_are_not_claimed(
    app: Treadle, database_url: str, conn: Conn
) -> None:
    other = Treadle(database_url)

    @other.task("foreign")
    async def foreign() -> None:
        return None

    @app.task()
    async def own() -> str:
        return "done"

    async with other:
        left = await foreign.enqueue()
    handle = await own.enqueue()

    async with working(app):
        assert await handle.result(timeout=20) == "done"

    # Not even claimed and released.
    found = await row(
        conn, "select status, attempt, last_token from treadle.tasks where id = %s", left.id
    )
    assert found == ("ready", 0, None)


async def test_a_paused_queue_is_left_alone_until_it_is_resumed(
    woken_app: Treadle, conn: Conn
) -> None:
    done = []

    @woken_app.task()
    async def work(ctx: Context) -> None:
        done.append(ctx.task.queue)

    await conn.execute("select treadle.define_queue('other')")
    await conn.execute("select treadle.pause_queue('default', 'maintenance')")
    async with working(woken_app, queues=["default", "other"]):
        paused = await work.enqueue()
        await (await work.using(queue="other").enqueue()).result(timeout=20)
        assert await paused.status() == "ready"

        await conn.execute("select treadle.resume_queue('default')")
        await paused.result(timeout=10)

    assert done == ["other", "default"]


async def test_progress_that_did_not_arrive_is_sent_again(database_url: str, conn: Conn) -> None:
    release = anyio.Event()
    async with Proxy(database_url) as proxy:
        app = Treadle(settings=load_settings(database_url=proxy.url, prepare=False))

        @app.task()
        async def tell(ctx: Context) -> None:
            ctx.progress(0.5, text="half \x00 way")
            await release.wait()

        async def arrived() -> bool:
            return await rows(conn, "select progress from treadle.tasks") == [
                ({"value": 0.5, "text": "half \u2400 way"},)
            ]

        async with app, working(app, heartbeat_s=0.3):
            proxy.lose("heartbeat_tasks", "before")
            await tell.enqueue()
            await until(arrived)
            release.set()

    assert len(proxy.lost) == 1


async def _is_idle(conn: Conn) -> bool:
    return bool(
        await rows(conn, "select 1 from treadle.idle_queues where idle_until > clock_timestamp()")
    )
