"""A validating task keeps its claim, and validation stops when the claim is lost."""

from typing import Any

import anyio
import pytest

from tests.drivers.workers import Conn, expire, row, rows, run_all, status, until, working
from treadle import Context, Treadle

pytestmark = pytest.mark.requirement("F20")

ENDED = "select status, failure_class, failure_reason from treadle.tasks where id = %s"


async def test_the_task_is_validating_with_its_claim_while_a_validator_works(
    app: Treadle, conn: Conn
) -> None:
    go = anyio.Event()

    @app.task()
    async def give() -> str:
        return "x"

    @app.validator("slow")
    async def wait(output: str) -> None:
        await go.wait()

    handle = await give.using(validation=[{"validator": "slow"}]).enqueue()
    query = """
        select status, agent_id, lease_until > clock_timestamp(), heartbeat_at
        from treadle.tasks where id = %s
    """

    async with working(app, agent="w", heartbeat_s=0.1):
        await until(lambda: _is(conn, handle.id, "validating"))
        [before] = await rows(conn, query, handle.id)
        await until(lambda: _beats(conn, handle.id, before[3]))
        [later] = await rows(conn, query, handle.id)
        go.set()
        assert await handle.result(timeout=5) == "x"

    assert before[:3] == ("validating", "w", True)
    assert later[:3] == ("validating", "w", True)


@pytest.mark.parametrize("why", ["cancelled", "lost"])
async def test_a_lost_claim_stops_the_validator(app: Treadle, conn: Conn, why: str) -> None:
    stopped = anyio.Event()

    @app.validator("slow")
    async def slow(output: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    @app.task(max_attempts=1, validation=[{"validator": "slow"}])
    async def work() -> None: ...

    handle = await work.enqueue()
    async with working(app, heartbeat_s=0.1):
        await until(lambda: _is(conn, handle.id, "validating"))
        if why == "cancelled":
            await handle.cancel()
        else:
            await expire(conn, handle.id)
        with anyio.fail_after(20):
            await stopped.wait()

    ended = {"cancelled": "cancelled", "lost": "dead_lettered"}[why]
    assert await status(conn, handle.id) == ended


async def test_a_drained_worker_gives_a_validating_task_back(app: Treadle, conn: Conn) -> None:
    @app.validator("slow")
    async def slow(output: Any) -> None:
        await anyio.sleep_forever()

    @app.task(validation=[{"validator": "slow"}])
    async def work() -> None: ...

    handle = await work.enqueue()
    async with working(app, drain_s=0.1):
        await until(lambda: _is(conn, handle.id, "validating"))

    query = "select status, attempt from treadle.tasks where id = %s"
    assert await row(conn, query, handle.id) == ("ready", 0)


@pytest.mark.own_database
async def test_ctx_transaction_is_refused_where_validators_have_to_see_the_output(
    app: Treadle, conn: Conn
) -> None:
    await conn.execute("create table effects (what text)")

    @app.task(validation=[{"validator": "regex", "pattern": "x"}])
    async def pay(ctx: Context) -> None:
        async with ctx.transaction(output="x") as tx:
            await tx.execute("insert into effects values ('paid')")

    handle = await pay.enqueue()

    await run_all(app)

    ended, kind, reason = await row(conn, ENDED, handle.id)
    assert (ended, kind) == ("dead_lettered", "refused")
    assert "has validators" in reason
    assert await rows(conn, "select * from effects") == []


async def _is(conn: Conn, task_id: Any, wanted: str) -> bool:
    return await status(conn, task_id) == wanted


async def _beats(conn: Conn, task_id: Any, before: Any) -> bool:
    [[beat]] = await rows(conn, "select heartbeat_at from treadle.tasks where id = %s", task_id)
    return bool(beat > before)
