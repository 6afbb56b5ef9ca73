"""A step that was saved for one input is not reused for another."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tests.drivers.workers import Conn, row, run_all
from treadle import Context, InvalidArgument, RetryAfter, StepConflict, Treadle

pytestmark = pytest.mark.requirement("B1")
ENDED = "select status, failure_class, failure_reason, attempt from treadle.tasks where id = %s"


class Client:
    """Something that is not JSON."""


@dataclass
class Order:
    number: int
    client: Client


async def echo(*args: Any, **kwargs: Any) -> str:
    return "done"


async def test_another_input_under_the_same_name_fails_for_good(app: Treadle, conn: Conn) -> None:
    @app.task(max_attempts=5)
    async def write(ctx: Context) -> None:
        await ctx.step("draft", echo, "birds", model="small", n=ctx.attempt)
        raise RetryAfter(0)

    handle = await write.enqueue()

    await run_all(app)

    status, kind, reason, attempt = await row(conn, ENDED, handle.id)
    assert (status, kind, attempt) == ("dead_lettered", "error", 2)
    assert 'step draft was saved for ("birds", model="small", n=1)' in reason
    assert 'is now called with ("birds", model="small", n=2)' in reason


async def test_a_conflict_found_by_the_database_names_both_inputs(app: Treadle, conn: Conn) -> None:
    @app.task(max_attempts=5)
    async def write(ctx: Context) -> None:
        async def slow(n: int) -> None:
            await conn.execute(
                "select treadle.save_step(%s, %s, 'draft', '1', 'step', 'abc', '7')",
                (ctx.task.id, ctx.task.token),
            )

        await ctx.step("draft", slow, 8)

    handle = await write.enqueue()

    await run_all(app)

    status, _, reason, attempt = await row(conn, ENDED, handle.id)
    assert (status, attempt) == ("dead_lettered", 1)
    assert "'draft'" in reason
    assert 'input "7"' in reason
    assert 'input "8"' in reason


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((Client(), 1), (Client(), 1)),
        (({"a": 1, "b": {2, 3, 1}},), ({"b": {1, 2, 3}, "a": 1},)),
        ((Order(1, Client()),), (Order(1, Client()),)),
        ((UUID(int=1), Decimal("1.50"), (1, 2)), (UUID(int=1), Decimal("1.50"), [1, 2])),
    ],
    ids=["clients", "order of keys", "dataclass", "values"],
)
async def test_equal_inputs_are_equal(app: Treadle, first: Any, second: Any) -> None:
    @app.task()
    async def write(ctx: Context) -> Any:
        await ctx.step("draft", echo, *first)
        return await ctx.step("draft", echo, *second)

    handle = await write.enqueue()

    await run_all(app)

    assert await handle.result(timeout=5) == "done"


async def test_a_key_is_compared_instead_of_the_arguments(app: Treadle) -> None:
    seen = []

    @app.task()
    async def write(ctx: Context) -> None:
        if ctx.attempt == 1:
            for name in ("same", "off", "other", "arguments"):
                await ctx.step(name, echo, 1, step_key="v1")
            raise RetryAfter(0)
        seen.append(await ctx.step("same", echo, 2, step_key="v1"))
        seen.append(await ctx.step("off", echo, 3, step_key=None))
        for name, wrong in (("other", "v2"), ("arguments", ...)):
            # The second call has the same answer.
            for _ in range(2):
                try:
                    await ctx.step(name, echo, 1, step_key=wrong)
                except StepConflict as error:
                    seen.append(str(error))

    handle = await write.enqueue()

    await run_all(app)

    await handle.result(timeout=5)
    assert seen == [
        "done",
        "done",
        *['step other was saved for ("v1") and is now called with ("v2")'] * 2,
        *['step arguments was saved for ("v1") and is now called with (1)'] * 2,
    ]


async def test_names_and_functions_are_checked(app: Treadle) -> None:
    seen = []

    @app.task()
    async def write(ctx: Context) -> None:
        for arguments in [("", echo), (echo, 1), ("é" * 101, echo), ("ask:me", echo), ("x", 3)]:
            try:
                await ctx.step(*arguments)  # type: ignore[arg-type]
            except InvalidArgument as error:
                seen.append(str(error))
        try:
            await ctx.step("outer", lambda: ctx.step("outer", echo))
        except InvalidArgument as error:
            seen.append(str(error))

    handle = await write.enqueue()

    await run_all(app)

    await handle.result(timeout=5)
    assert "".join(seen).count("0x") == 1
    assert [seen[0], *seen[2:]] == [
        "'' is not a valid name of a step",
        "the name of a step has 202 bytes, 200 are allowed",
        "the name of a step cannot begin with ask:",
        "step x needs a function, not int",
        "step outer calls itself",
    ]


async def test_a_result_that_is_too_large_fails_for_good(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def large(ctx: Context) -> None:
        await ctx.step("download", lambda: "x" * (17 * 1024 * 1024))

    handle = await large.enqueue()

    await run_all(app)

    status, kind, reason, attempt = await row(conn, ENDED, handle.id)
    assert (status, kind, attempt) == ("dead_lettered", "invalid_output", 1)
    assert "the result of step download has 17825794 bytes, 16777216 are allowed" in reason


async def test_a_fork_keeps_the_steps_before_it(app: Treadle) -> None:
    calls = []

    async def count(name: str, tone: str = "") -> str:
        calls.append(name + tone)
        return name

    @app.task()
    async def write(ctx: Context, tone: str) -> str:
        await ctx.step("outline", count, "outline")
        await ctx.step("draft", count, "draft", tone)
        return tone

    first = await write.enqueue(tone="warm")
    await run_all(app)

    fork = await app.fork(first, from_step="draft", tone="dry")
    await run_all(app)

    assert await fork.result(timeout=5) == "dry"
    assert await first.result(timeout=5) == "warm"
    assert calls == ["outline", "draftwarm", "draftdry"]
