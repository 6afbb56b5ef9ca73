"""A handler over its budget waits for a person, or fails; it can read and reserve budgets."""

from decimal import Decimal
from typing import Any

import pytest

from tests.drivers.workers import Conn, row, rows, run_all
from treadle import BudgetExceeded, Context, InvalidArgument, Treadle
from treadle.services.promoter import Promoter

pytestmark = [pytest.mark.requirement("F25"), pytest.mark.requirement("B5")]
STATE = "select status, attempt, failure_class from treadle.tasks"


async def limit(conn: Conn, usd: float, policy: str = "ask") -> None:
    await rows(conn, "select treadle.set_budget('all', null, %s, null, %s)", usd, policy)
    await conn.commit()


async def the_question(conn: Conn) -> Any:
    found = await row(conn, "select id, question from treadle.waits where status = 'open'")
    await conn.commit()
    return found


async def test_a_task_over_its_limit_waits_and_resumes_where_it_was(
    app: Treadle, conn: Conn
) -> None:
    calls: list[str] = []

    @app.task(max_attempts=1)
    async def write(ctx: Context) -> str:
        async def paid(what: str) -> str:
            calls.append(what)
            await ctx.spend(0.75)
            return what

        first = await ctx.step("outline", paid, "outline")
        second = await ctx.step("draft", paid, "draft")
        return f"{first} {second} {ctx.attempt}"

    handle = await write.using(max_cost_usd=1).enqueue()
    await run_all(app)
    assert await row(conn, STATE) == ("blocked", 0, None)
    wait_id, question = await the_question(conn)
    assert question.startswith("The task has cost $1.50 and may cost $1.00.")

    await app.answer(wait_id, 3)
    await run_all(app)

    assert await handle.result(timeout=5) == "outline draft 1"
    assert calls == ["outline", "draft"]


async def test_no_makes_it_a_dead_letter(app: Treadle, conn: Conn) -> None:
    await limit(conn, 1)

    @app.task()
    async def write(ctx: Context) -> None:
        await ctx.spend(2, call_id="one")

    await write.enqueue()
    await run_all(app)
    wait_id, question = await the_question(conn)
    assert question.startswith("$2.00 of $1.00 is spent of the budget of all tasks")

    await app.answer(wait_id, False)

    assert await row(conn, STATE) == ("dead_lettered", 0, "budget_exceeded")


async def test_the_promoter_asks_for_a_task_that_cannot_start(app: Treadle, conn: Conn) -> None:
    await limit(conn, 1)

    @app.task()
    async def write() -> str:
        return "done"

    handle = await write.using(max_cost_usd=2).enqueue()
    await run_all(app)
    promoter = Promoter(app.db)

    assert await promoter.tick() == 1
    wait_id, _ = await the_question(conn)
    await app.answer(wait_id, 2)
    await run_all(app)

    assert await handle.result(timeout=5) == "done"


async def test_with_the_policy_fail_the_task_gives_up_at_once(app: Treadle, conn: Conn) -> None:
    await limit(conn, 1, "fail")
    after: list[int] = []

    @app.task()
    async def write(ctx: Context) -> None:
        async def outer() -> None:
            async def inner() -> None:
                await ctx.spend(2)

            await ctx.step("inner", inner)
            after.append(1)

        await ctx.step("outer", outer)
        after.append(2)

    await write.enqueue()
    await run_all(app)

    # The step it was in is finished and kept; nothing after it begins.
    assert after == [1]
    assert await row(conn, STATE) == ("dead_lettered", 1, "budget_exceeded")
    assert await rows(conn, "select name from treadle.steps order by seq") == [
        *(("inner",), ("outer",)),
    ]


async def test_a_handler_can_look_and_reserve_and_do_with_less(app: Treadle, conn: Conn) -> None:
    await limit(conn, 5, "fail")

    @app.task()
    async def write(ctx: Context) -> str:
        assert (await ctx.budget()).left_usd == 5
        with pytest.raises(BudgetExceeded) as raised:
            await ctx.reserve(6)
        assert Decimal(str(raised.value.detail["left_usd"])) == 5
        await ctx.reserve(Decimal("2.5"))
        async with app.db.calls.connection() as other:
            cursor = await other.execute("select reserved_usd from treadle.budgets")
            return str(await cursor.fetchall())

    handle = await write.enqueue()
    await run_all(app)

    assert "2.5" in str(await handle.result(timeout=5))
    assert await row(conn, "select spent_usd, reserved_usd from treadle.budgets") == (0, 0)


async def test_a_reservation_that_is_refused_and_not_caught_ends_the_task(
    app: Treadle, conn: Conn
) -> None:
    await limit(conn, 1, "fail")

    @app.task()
    def write(ctx: Context) -> None:
        assert ctx.blocking.budget().left_usd == 1
        ctx.blocking.reserve(2)

    await write.enqueue()
    await run_all(app)

    assert await row(conn, STATE) == ("dead_lettered", 1, "budget_exceeded")


async def test_a_reservation_that_has_to_be_asked_for_suspends_the_task(
    app: Treadle, conn: Conn
) -> None:
    await limit(conn, 1)
    begun: list[int] = []

    @app.task()
    async def write(ctx: Context) -> str:
        begun.append(ctx.attempt)
        await ctx.reserve(2)
        return "done"

    handle = await write.enqueue()
    await run_all(app)
    wait_id, _ = await the_question(conn)
    await app.answer(wait_id, 2)
    await run_all(app)

    assert await handle.result(timeout=5) == "done"
    assert begun == [1, 1]


@pytest.mark.parametrize("usd", [-1, float("nan"), float("inf"), Decimal("-0.01")])
async def test_money_that_makes_no_sense_is_refused(
    app: Treadle, conn: Conn, usd: float | Decimal
) -> None:
    seen: list[str] = []

    @app.task()
    async def write(ctx: Context) -> None:
        for call in (ctx.spend, ctx.reserve):
            with pytest.raises(InvalidArgument, match="usd must be"):
                await call(usd)
            seen.append(call.__name__)

    await write.enqueue()
    await run_all(app)

    assert seen == ["spend", "reserve"]
    assert await row(conn, "select count(*) from treadle.spend") == (0,)
