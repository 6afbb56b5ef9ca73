"""A handler is stopped when its claim is lost or its task is cancelled."""

import time
from uuid import UUID

import anyio
import pytest
from structlog.testing import capture_logs

from tests.drivers.workers import Conn, expire, row, status, until, working
from treadle import Context, TaskFailed, Treadle


class Watched:
    """What happened to the handlers of a test."""

    def __init__(self) -> None:
        self.started: list[UUID] = []
        self.stopped: list[UUID] = []

    async def wait(self, ctx: Context) -> str:
        """Be a handler that waits until it is interrupted."""
        self.started.append(ctx.task.id)
        try:
            await anyio.sleep(3600)
        except anyio.get_cancelled_exc_class():
            self.stopped.append(ctx.task.id)
            raise
        return "not stopped"


@pytest.mark.requirement("F10")
async def test_a_lost_claim_stops_its_handler_at_the_next_heartbeat(
    app: Treadle, conn: Conn
) -> None:
    watched = Watched()
    wait = app.task("wait", retry={"strategy": "fixed", "initial_delay_s": 60})(watched.wait)
    lost, kept = await wait.enqueue_many([{}, {}])

    async def running() -> bool:
        return [await status(conn, each.id) for each in (lost, kept)] == ["running"] * 2

    with capture_logs() as logs:
        async with working(app, heartbeat_s=0.3, drain_s=0):
            await until(running)
            await expire(conn, lost.id)
            await until(lambda: watched.stopped, within=15)
            stopped = list(watched.stopped)

    assert stopped == [lost.id]
    assert {
        "event": "task.claim_lost",
        "log_level": "warning",
        "task_id": str(lost.id),
        "verdict": "lost",
    } in logs
    attempts = await row(conn, "select attempt, class, reason from treadle.attempts")
    assert attempts == (1, "crash", "heartbeat_timeout")


@pytest.mark.parametrize("state", ["claimed", "running"])
async def test_a_cancelled_task_stops_its_handler_at_once(
    app: Treadle, conn: Conn, state: str
) -> None:
    """The heartbeat is an hour away: it is the notification that tells the worker."""
    watched = Watched()
    wait = app.task("wait")(watched.wait)
    async with working(app, heartbeat_s=3600):
        handle = await wait.enqueue()
        await until(lambda: watched.started)
        if state == "running":
            await until(lambda: _is(conn, handle.id, "running"))

        assert await handle.cancel("changed my mind") is True

        await until(lambda: watched.stopped == [handle.id], within=30)
        with pytest.raises(TaskFailed, match="changed my mind"):
            await handle.result(timeout=5)
    assert await status(conn, handle.id) == "cancelled"


async def test_a_cancelled_task_stops_its_handler_by_heartbeat_without_notify(
    polling_app: Treadle, conn: Conn
) -> None:
    watched = Watched()
    wait = polling_app.task("wait")(watched.wait)
    async with working(polling_app, heartbeat_s=0.3):
        handle = await wait.enqueue()
        await until(lambda: _is(conn, handle.id, "running"))

        await handle.cancel()

        await until(lambda: watched.stopped == [handle.id], within=15)


async def test_a_sync_function_can_see_that_it_was_cancelled(app: Treadle, conn: Conn) -> None:
    seen: list[str] = []

    @app.task()
    def grind(ctx: Context) -> None:
        seen.append("started")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if ctx.cancelled:
                seen.append("cancelled")
            try:
                ctx.check_cancelled()
            finally:
                seen.append("checked")
            time.sleep(0.01)

    async with working(app):
        handle = await grind.enqueue()
        await until(lambda: "checked" in seen)

        await handle.cancel()

        await until(lambda: seen[-2:] == ["cancelled", "checked"], within=15)
        count = len(seen)
        await anyio.sleep(0.1)
    assert len(seen) == count
    assert await status(conn, handle.id) == "cancelled"


async def test_an_answer_that_comes_after_the_cancellation_is_refused(
    polling_app: Treadle, conn: Conn
) -> None:
    release = anyio.Event()
    started = anyio.Event()

    @polling_app.task()
    async def hold() -> str:
        started.set()
        await release.wait()
        return "too late"

    with capture_logs() as logs:
        async with working(polling_app, heartbeat_s=60):
            handle = await hold.enqueue()
            await started.wait()
            await handle.cancel("first")
            release.set()
            await until(lambda: [each for each in logs if each["event"] == "task.result_stale"])

    found = await row(
        conn, "select status, output, failure_reason from treadle.tasks where id = %s", handle.id
    )
    assert found == ("cancelled", None, "first")


async def _is(conn: Conn, task_id: UUID, wanted: str) -> bool:
    return await status(conn, task_id) == wanted
