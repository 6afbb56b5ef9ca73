"""Spend is counted once, in the same transaction as the step that it paid for."""

from decimal import Decimal
from typing import Any

import pytest

from tests.drivers.workers import Conn, row, rows, run_all
from treadle import Context, InvalidArgument, RetryAfter, Treadle

pytestmark = pytest.mark.requirement("B1")
SPEND = "select call_id, step, usd::float8, model from treadle.spend order by at, call_id"


async def test_what_a_step_spends_is_settled_with_it(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def write(ctx: Context) -> None:
        def plain() -> None:
            ctx.blocking.spend(0.5, model="small", input_tokens=100)

        async def paid() -> str:
            await ctx.spend(Decimal("0.25"), model="large", output_tokens=7)
            await ctx.spend(0.125, call_id="msg_1")
            await ctx.step("inner", plain)
            return "text"

        await ctx.step("draft", paid)
        await ctx.spend(1, call_id="outside")
        await ctx.spend(1, call_id="outside")
        if ctx.attempt == 1:
            raise RetryAfter(0)
        assert [step.cost_usd for step in ctx.steps] == [0.5, 0.375]

    handle = await write.enqueue()

    await run_all(app)

    await handle.result(timeout=5)
    assert await rows(conn, SPEND) == [
        ("inner:1", "inner", 0.5, "small"),
        ("draft:1", "draft", 0.25, "large"),
        ("msg_1", "draft", 0.125, None),
        ("outside", None, 1.0, None),
    ]
    assert await row(conn, "select cost_usd::float8 from treadle.tasks") == (1.875,)


async def test_what_a_failed_step_has_spent_is_counted_each_time(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def write(ctx: Context) -> None:
        async def paid() -> None:
            await ctx.spend(0.5)
            if ctx.attempt < 3:
                raise RetryAfter(0)

        await ctx.step("draft", paid)

    handle = await write.enqueue()

    await run_all(app)

    await handle.result(timeout=5)
    assert await row(conn, "select cost_usd::float8 from treadle.tasks") == (1.5,)


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), 2_000_000])
async def test_a_cost_that_is_none_is_refused_before_the_step_is_lost(
    app: Treadle, wrong: float
) -> None:
    @app.task()
    async def write(ctx: Context) -> Any:
        async def paid() -> str:
            with pytest.raises(InvalidArgument, match="usd must be"):
                await ctx.spend(wrong)
            return "kept"

        return await ctx.step("draft", paid)

    handle = await write.enqueue()

    await run_all(app)

    assert await handle.result(timeout=5) == "kept"
