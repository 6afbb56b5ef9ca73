"""A step is called once: its result is saved, however the attempt ends."""

import threading
from contextlib import suppress
from typing import Any

import anyio
import pytest

from tests.drivers.processes.postgres_proxy import Proxy
from tests.drivers.workers import Conn, expire, row, rows, run_all, until, working
from treadle import ClaimLost, Context, RetryAfter, Step, Treadle
from treadle.settings import load_settings
from treadle.worker import lease

pytestmark = pytest.mark.requirement("B1")
STEPS = "select name, output, attempt from treadle.steps order by seq"


class Paid:
    """Functions that count how often they are called."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    async def draft(self, topic: str = "trees", **more: Any) -> dict[str, Any]:
        self.calls.append(topic)
        return {"topic": topic, "call": len(self.calls)}


@pytest.fixture
def paid() -> Paid:
    return Paid()


async def test_a_step_is_not_called_again_after_a_failure(
    app: Treadle, conn: Conn, paid: Paid
) -> None:
    seen: list[tuple[Step, ...]] = []

    @app.task(max_attempts=3)
    async def write(ctx: Context) -> Any:
        seen.append(ctx.steps)
        first = await ctx.step("draft", paid.draft, "birds")
        if ctx.attempt == 1:
            raise RetryAfter(0)
        second = await ctx.step("review", paid.draft, topic=first["topic"] + "!")
        if ctx.attempt == 2:
            raise RetryAfter(0)
        return [first, second]

    handle = await write.enqueue()

    await run_all(app)

    assert paid.calls == ["birds", "birds!"]
    assert await handle.result(timeout=5) == [
        {"topic": "birds", "call": 1},
        {"topic": "birds!", "call": 2},
    ]
    assert [(name, attempt) for name, _, attempt in await rows(conn, STEPS)] == [
        ("draft", 1),
        ("review", 2),
    ]
    assert [[(step.name, step.kind, step.seq) for step in steps] for steps in seen] == [
        [],
        [("draft", "step", 1)],
        [("draft", "step", 1), ("review", "step", 2)],
    ]
    assert seen[2][0].output == {"topic": "birds", "call": 1}
    assert seen[2][0].saved_at < seen[2][1].saved_at


async def test_the_first_run_sees_what_later_runs_see(app: Treadle) -> None:
    seen = []

    @app.task()
    async def pair(ctx: Context) -> None:
        found = await ctx.step("pair", lambda: {"at": (1, 2.0, "a\x00b"), 7: {"x"}})
        seen.append(repr(found))
        found.clear()
        seen.append(repr(ctx.steps[0].output))
        if ctx.attempt == 1:
            raise RetryAfter(0)

    await pair.enqueue()

    await run_all(app)

    assert seen == ["{'7': ['x'], 'at': [1, 2.0, 'a\u2400b']}"] * 4


async def test_a_plain_function_runs_in_a_thread(app: Treadle, paid: Paid) -> None:
    threads = set()

    def block(n: int) -> int:
        threads.add(threading.current_thread())
        return n + 1

    @app.task()
    async def mix(ctx: Context) -> list[Any]:
        return [
            await ctx.step("plain", block, 1),
            await ctx.step("lambda", lambda: paid.draft("late")),
            await ctx.step("task", nothing),
        ]

    @app.task()
    async def nothing() -> None: ...

    handle = await mix.enqueue()

    await run_all(app)

    assert await handle.result(timeout=5) == [2, {"topic": "late", "call": 1}, None]
    assert threads
    assert threading.main_thread() not in threads


@pytest.mark.requirement("F28")
async def test_the_calls_of_one_name_are_numbered_and_found_again(
    app: Treadle, conn: Conn, paid: Paid
) -> None:
    @app.task(max_attempts=3)
    async def read(ctx: Context) -> list[Any]:
        await ctx.step("fetch#2", paid.draft, "taken")
        found = [await ctx.step("fetch", paid.draft) for _ in range(ctx.attempt)]
        if ctx.attempt < 3:
            raise RetryAfter(0)
        return [each["call"] for each in found]

    handle = await read.enqueue()

    await run_all(app)

    assert await handle.result(timeout=5) == [2, 3, 4]
    assert [name for name, *_ in await rows(conn, STEPS)] == [
        "fetch#2",
        "fetch",
        "fetch#3",
        "fetch#4",
    ]


@pytest.mark.requirement("F28")
async def test_a_call_that_raised_keeps_its_number(app: Treadle, conn: Conn) -> None:
    fails = {"b": 2, "c": 1}
    calls = []

    async def fetch(page: str) -> str:
        calls.append(page)
        if fails.get(page, 0) > 0:
            fails[page] -= 1
            raise OSError(page)
        return page

    @app.task()
    async def read(ctx: Context) -> list[str]:
        found = []
        for page in "abcd":
            for _ in range(2):
                with suppress(OSError):
                    found.append(await ctx.step("fetch", fetch, page))
                    break
        if ctx.attempt == 1:
            raise RetryAfter(0)
        return found

    handle = await read.enqueue()

    await run_all(app)

    # The second attempt calls only what has failed twice.
    assert "".join(calls) == "abbccd" + "b"
    assert await handle.result(timeout=5) == ["a", "b", "c", "d"]
    saved = {name: output for name, output, _ in await rows(conn, STEPS)}
    assert saved == {"fetch": "a", "fetch#2": "b", "fetch#3": "c", "fetch#4": "d"}


@pytest.mark.requirement("F28")
async def test_a_step_that_is_called_while_it_runs_is_refused(app: Treadle, conn: Conn) -> None:
    calls = []

    async def slow(n: int) -> int:
        calls.append(n)
        await anyio.sleep(0.05)
        return n

    @app.task()
    async def twice(ctx: Context) -> None:
        async with anyio.create_task_group() as group:
            for number in (5, 6):
                group.start_soon(ctx.step, "slow", slow, number)

    handle = await twice.enqueue()

    await run_all(app)

    assert calls == [5]
    error, attempt = await row(
        conn, "select error, attempt from treadle.attempts where task_id = %s", handle.id
    )
    assert "step slow is called while it runs" in error
    assert attempt == 1


async def test_what_the_database_kept_first_stays(app: Treadle, conn: Conn) -> None:
    """Somebody else saved the step meanwhile: this worker before its answer was lost."""

    @app.task()
    async def race(ctx: Context) -> Any:
        async def slow() -> str:
            await conn.execute(
                "select treadle.save_step(%s, %s, 'race', '\"first\"')",
                (ctx.task.id, ctx.task.token),
            )
            return "second"

        return await ctx.step("race", slow)

    handle = await race.enqueue()

    await run_all(app)

    assert await handle.result(timeout=5) == "first"


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_result_is_saved_although_the_connection_broke(
    database_url: str, conn: Conn, paid: Paid, when: Any
) -> None:
    async with Proxy(database_url) as proxy:
        app = Treadle(settings=load_settings(database_url=proxy.url, prepare=False))

        @app.task()
        async def write(ctx: Context) -> Any:
            proxy.lose("save_step", when)
            return await ctx.step("draft", paid.draft)

        async with app:
            handle = await write.enqueue()
            await run_all(app)
            assert await handle.result(timeout=5) == {"topic": "trees", "call": 1}

    assert proxy.lost
    assert paid.calls == ["trees"]
    assert await row(conn, "select count(*) from treadle.steps") == (1,)


async def test_a_step_of_a_lost_claim_saves_nothing_and_stops_the_handler(
    app: Treadle, conn: Conn, paid: Paid, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The step finds out, not the worker that marks it as started.
    monkeypatch.setattr(lease, "START_AFTER_S", 60)
    inside, release, lost = anyio.Event(), anyio.Event(), []

    async def slow(attempt: int) -> int:
        inside.set()
        if attempt == 1:
            await release.wait()
        return attempt

    @app.task(retry={"strategy": "immediate"})
    async def write(ctx: Context) -> Any:
        try:
            return await ctx.step("slow", slow, ctx.attempt)
        except ClaimLost:
            with pytest.raises(ClaimLost):
                await ctx.step("more", paid.draft)
            lost.append(ctx.attempt)
            raise

    handle = await write.enqueue()

    async with working(app, heartbeat_s=60, claim_ttl_s=600):
        await inside.wait()
        await expire(conn, handle.id)
        assert await handle.result(timeout=5) == 2
        release.set()
        await until(lambda: lost == [1])

    assert paid.calls == []
    assert await rows(conn, STEPS) == [("slow", 2, 2)]


async def test_steps_survive_a_drain(app: Treadle, conn: Conn, paid: Paid) -> None:
    drained = anyio.Event()

    @app.task()
    async def write(ctx: Context) -> Any:
        found = await ctx.step("draft", paid.draft)
        if not drained.is_set():
            drained.set()
            await anyio.sleep(30)
        return found

    handle = await write.enqueue()
    async with working(app, drain_s=0):
        await drained.wait()
    assert await row(conn, "select status, attempt from treadle.tasks") == ("ready", 0)

    await run_all(app)

    assert await handle.result(timeout=5) == {"topic": "trees", "call": 1}
    assert paid.calls == ["trees"]
