"""Sync functions can ask, wait, sleep and spawn; events are consumed once."""

import threading
from typing import Any

import pytest

from tests.drivers.workers import Conn, answer_all, rows, run_all, status, until, working
from treadle import Context, Treadle

pytestmark = pytest.mark.requirement("B2")


async def test_plain_functions_do_all_of_it_in_their_threads(app: Treadle, conn: Conn) -> None:
    calls: list[Any] = []

    @app.task()
    def child(n: int) -> int:
        return n + 1

    @app.task()
    def plain(ctx: Context) -> list[Any]:
        told = ctx.blocking
        told.step("draft", lambda: calls.append(threading.current_thread()))
        told.spend(0.5, call_id="once")
        told.sleep(0)
        question = told.ask_later("Later?")
        spawned = told.spawn(child, n=1)
        found = [
            told.ask("Now?").value,
            question.answer().value,
            spawned.result(),
            told.spawn_and_wait([child.call(n=5)]),
            told.wait_for("paid", key="7"),
        ]
        calls.append(told.artifact.link("report", "file:///report")["id"])
        return found

    handle = await plain.enqueue()
    await app.emit("paid", {"usd": 1}, key="7")
    await run_all(app, slots=1)
    assert await status(conn, handle.id) == "blocked"
    assert await answer_all(app, conn) == 2
    await run_all(app, slots=1)

    assert await handle.result(timeout=5) == ["yes", "yes", 2, [6], {"usd": 1}]
    assert threading.main_thread() not in calls
    assert len(calls) == 2
    assert await rows(conn, "select id::text from treadle.artifacts") == [(calls[1],)]


async def test_an_event_is_taken_once(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def collect(ctx: Context) -> list[Any]:
        return [await ctx.wait_for("scan", key="belt"), await ctx.wait_for("scan", key="belt")]

    async with working(app):
        handle = await collect.enqueue()
        await until(lambda: rows(conn, "select id from treadle.waits where status = 'open'"))
        first = await app.emit("scan", 1, key="belt", dedup_key="a")
        assert await app.emit("scan", 1, key="belt", dedup_key="a") == first
        await app.emit("scan", 9, key="other")
        await app.emit("scan", 2, key="belt")
        assert await handle.result(timeout=5) == [1, 2]
