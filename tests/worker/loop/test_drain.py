"""A draining worker finishes what it can and releases the rest without counting attempts."""

import os
from pathlib import Path

import anyio
import pytest

from tests.drivers.processes.postgres_proxy import Proxy
from tests.drivers.workers import Conn, row, rows, run_all, status, statuses, until, working
from treadle import Context, RetryAfter, Treadle, process
from treadle.process import read_health_file
from treadle.settings import load_settings

AGENT = "select status from treadle.agents where id = 'a'"


async def test_a_drain_lets_handlers_finish_and_releases_tasks_that_have_not_started(
    app: Treadle, conn: Conn
) -> None:
    release = anyio.Event()
    started = []

    @app.task()
    async def hold(n: int) -> int:
        started.append(n)
        await release.wait()
        return n

    await hold.enqueue_many([{"n": n} for n in range(5)])

    async def ahead() -> bool:
        found = await statuses(conn)
        return len(started) == 1 and found.get("claimed", 0) + found.get("running", 0) >= 2

    async with working(app, agent="a", slots=1) as worker:
        await until(ahead)
        worker.drain()
        await until(lambda: _gone_back(conn))
        release.set()

    assert started == [0]
    assert await rows(conn, "select status, attempt from treadle.tasks order by id") == [
        ("completed", 1),
        *[("ready", 0)] * 4,
    ]
    assert await row(conn, AGENT) == ("offline",)


async def test_after_the_grace_period_handlers_are_stopped_and_their_tasks_released(
    app: Treadle, conn: Conn
) -> None:
    stopped = []

    @app.task()
    async def hold() -> None:
        try:
            await anyio.sleep(30)
        finally:
            stopped.append(True)

    handle = await hold.enqueue()

    async with working(app, agent="a", drain_s=0.3):
        await until(lambda: _is(conn, handle.id, "running"))

    assert stopped == [True]
    assert await row(conn, "select status, attempt from treadle.tasks") == ("ready", 0)
    assert await rows(conn, "select task_id from treadle.attempts") == []
    assert await row(conn, AGENT) == ("offline",)


@pytest.mark.requirement("F9")
@pytest.mark.parametrize("wanted", ["draining", "offline"])
async def test_an_operator_ends_a_worker_by_its_status(
    app: Treadle, conn: Conn, wanted: str
) -> None:
    release = anyio.Event()

    @app.task()
    async def hold() -> str:
        await release.wait()
        return "finished"

    handle = await hold.enqueue()

    with anyio.fail_after(30):
        async with (
            app.worker(agent="a", heartbeat_s=0.2) as worker,
            anyio.create_task_group() as group,
        ):
            group.start_soon(worker.run)
            await until(lambda: _is(conn, handle.id, "running"))
            await conn.execute("select treadle.set_agent_status('a', %s)", (wanted,))
            later = await hold.enqueue()
            release.set()

    assert await handle.result(timeout=10) == "finished"
    assert await status(conn, later.id) in ("ready", "completed")
    assert await row(conn, AGENT) == ("offline",)


async def test_until_empty_ends_when_there_is_nothing_left(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def more(n: int) -> None:
        if n:
            await more.enqueue(n=n - 1)

    await more.enqueue(n=3)

    await run_all(app, agent="a")

    assert await statuses(conn) == {"completed": 4}
    assert await row(conn, AGENT) == ("offline",)


async def test_until_empty_sees_what_became_ready_during_its_last_look(
    database_url: str, conn: Conn
) -> None:
    """The look finds nothing; before its answer is there, a failure makes the task ready again."""
    async with Proxy(database_url) as proxy:
        app = Treadle(settings=load_settings(database_url=proxy.url, prepare=False))
        proxy.slow("claim_tasks", 0.6)

        @app.task(max_attempts=2)
        async def stumble(ctx: Context) -> None:
            if ctx.attempt == 1:
                await anyio.sleep(0.9)
                raise RetryAfter(0)

        async with app:
            await stumble.enqueue()
            await run_all(app, slots=2)

    assert await statuses(conn) == {"completed": 1}


async def test_the_health_file_exists_as_long_as_the_worker(
    app: Treadle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "EVERY_S", 0.05)
    file = tmp_path / "health"
    release = anyio.Event()

    @app.task()
    async def hold() -> None:
        await release.wait()

    await hold.enqueue()

    async with working(app, agent="a", health_file=file):
        await until(file.exists)
        first = read_health_file(file, max_age_s=2)
        await until(lambda: read_health_file(file, max_age_s=2)["at"] > first["at"])
        await until(lambda: read_health_file(file, max_age_s=2)["running"] == 1)
        release.set()

    assert (first["status"], first["agent"]) == ("ok", "a")
    assert await anyio.to_thread.run_sync(os.listdir, tmp_path) == []


async def _is(conn: Conn, task_id: object, wanted: str) -> bool:
    return await rows(conn, "select status from treadle.tasks where id = %s", task_id) == [
        (wanted,)
    ]


async def _gone_back(conn: Conn) -> bool:
    return (await statuses(conn)).get("ready") == 4
