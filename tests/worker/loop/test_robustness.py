"""A bad row or a handler that misbehaves costs its own attempt, never the worker."""

import asyncio
import sys
from uuid import uuid4

import anyio
import pytest

from tests.drivers.workers import Conn, expire, row, rows, run_all, statuses, until, working
from treadle import Context, Treadle

ENDED = "select status, failure_class, failure_reason from treadle.tasks where id = %s"


@pytest.mark.parametrize(
    "spec",
    ["[1, 2]", '"text"', '{"n": 1e5000}', '{"n": 1e100000}', "[" * 3000 + "]" * 3000],
    ids=["list", "text", "long number", "huge number", "deep"],
)
async def test_a_row_with_a_bad_spec_does_not_stop_the_worker(
    app: Treadle, conn: Conn, spec: str
) -> None:
    @app.task(max_attempts=1)
    async def take(n: object = None) -> str:
        return "taken"

    fine = [await take.enqueue(n=n) for n in range(3)]
    bad = fine.pop(1).id
    # Past every check, as a restored dump or a superuser could.
    await conn.execute("update treadle.tasks set spec = %s where id = %s", (spec, bad))

    await run_all(app, slots=3)

    assert [await handle.result(timeout=5) for handle in fine] == ["taken"] * 2
    found = await row(conn, ENDED, bad)
    assert found[:2] in [("dead_lettered", "refused"), ("completed", None)]


@pytest.mark.parametrize("kind", ["plain", "async"])
@pytest.mark.parametrize(
    "error",
    [SystemExit(2), asyncio.CancelledError()],
    ids=["SystemExit", "CancelledError"],
)
async def test_a_handler_that_raises_what_ends_programs_fails_its_attempt_only(
    app: Treadle, conn: Conn, error: BaseException, kind: str
) -> None:
    @app.task(max_attempts=1)
    async def leave() -> None:
        raise error

    @app.task(max_attempts=1)
    def leave_thread() -> None:
        raise error

    @app.task(priority=90)
    async def stay() -> str:
        return "here"

    handle = await (leave if kind == "async" else leave_thread).enqueue()
    after = await stay.enqueue()

    await run_all(app, slots=1)

    found = await row(conn, ENDED, handle.id)
    assert found[:2] == ("dead_lettered", "error")
    assert type(error).__name__ in found[2]
    assert await after.result(timeout=5) == "here"


async def test_a_slot_survives_a_handler_that_raises_cancelled(app: Treadle, conn: Conn) -> None:
    @app.task(max_attempts=1)
    async def maybe(n: int) -> None:
        if n < 3:
            inner = asyncio.ensure_future(asyncio.sleep(30))
            inner.cancel()
            await inner

    await maybe.enqueue_many([{"n": n} for n in range(4)])

    await run_all(app, slots=1)

    assert await statuses(conn) == {"dead_lettered": 3, "completed": 1}


async def test_a_task_may_be_claimed_again_by_a_worker_that_still_cleans_up(
    app: Treadle, conn: Conn
) -> None:
    """The first attempt ignores its end for a while; the second runs in another slot meanwhile."""
    release = anyio.Event()
    attempts = []

    @app.task(timeout_s=0.3, retry={"strategy": "immediate"})
    async def cling(ctx: Context) -> str:
        attempts.append(ctx.attempt)
        if ctx.attempt == 1:
            with anyio.CancelScope(shield=True):
                await release.wait()
        return f"attempt {ctx.attempt}"

    handle = await cling.enqueue()

    async with working(app, slots=2, heartbeat_s=0.1):
        await until(lambda: attempts == [1])

        async def reaped() -> bool:
            await conn.execute("select treadle.reap_claims()")
            return attempts == [1, 2]

        await until(reaped)
        assert await handle.result(timeout=5) == "attempt 2"
        release.set()
        after = await cling.using(timeout_s=30).enqueue()
        await until(lambda: len(attempts) == 3)
        await after.result(timeout=5)

    assert await handle.result(timeout=5) == "attempt 2"


async def test_an_agent_that_was_deleted_registers_again(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def work() -> str:
        return sys.platform

    async with working(app, agent="a", heartbeat_s=0.2):
        await (await work.enqueue()).result(timeout=5)
        await conn.execute("delete from treadle.agents")

        async def registered() -> bool:
            found = await rows(conn, "select status from treadle.agents where id = 'a'")
            return found == [("active",)]

        assert await (await work.enqueue()).result(timeout=10) == sys.platform
        # A claim that had begun before the row was gone may have brought the task.
        await until(registered)


@pytest.mark.requirement("F8")
async def test_a_token_that_lost_a_task_never_claims_it_again(app: Treadle, conn: Conn) -> None:
    """A claim repeated much too late, after others had the task: the row would be beyond help."""

    @app.task(max_attempts=9, retry={"strategy": "immediate"})
    async def work() -> None:
        return None

    handle = await work.enqueue()
    await conn.execute("select treadle.register_agent('a')")
    claim = "select id, attempt from treadle.claim_tasks('a', p_token => %s)"
    old, other = uuid4(), uuid4()
    assert await rows(conn, claim, old) == [(handle.id, 1)]
    await expire(conn, handle.id)
    assert await rows(conn, claim, other) == [(handle.id, 2)]
    await conn.execute("select treadle.fail_task(%s, %s)", (handle.id, other))

    assert await rows(conn, claim, old) == []
    assert await rows(conn, claim, uuid4()) == [(handle.id, 3)]
