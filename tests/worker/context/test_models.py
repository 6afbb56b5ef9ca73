"""What an attempt gets: its models, and the results and notes of earlier attempts."""

from typing import Any

import pytest

from tests.drivers.workers import Conn, row, rows, run_all
from treadle import Context, Treadle
from treadle.fields import RetryPolicy

AT_ONCE: RetryPolicy = {"strategy": "immediate"}


@pytest.mark.requirement("F14")
async def test_the_fallback_models_come_with_the_third_attempt(app: Treadle, conn: Conn) -> None:
    used: dict[str, list[list[str]]] = {}

    @app.task(max_attempts=4, retry=AT_ONCE, models=["large", "medium"], fallback_models=["small"])
    async def work(ctx: Context) -> None:
        used.setdefault(str(ctx.task.id), []).append(ctx.models)
        raise ValueError("not good enough")

    handle = await work.enqueue()
    own = await work.using(models=["tiny"], max_attempts=1).enqueue()

    await run_all(app)

    first = ["large", "medium"]
    assert used[str(handle.id)] == [first, first, ["small"], ["small"]]
    assert used[str(own.id)] == [["tiny"]]
    models = "select model from treadle.attempts where task_id = %s order by attempt"
    assert await rows(conn, models, handle.id) == [("large",), ("large",), ("small",), ("small",)]
    assert await rows(conn, models, own.id) == [("tiny",)]


@pytest.mark.requirement("F14")
async def test_a_task_that_names_no_models_has_none(app: Treadle, conn: Conn) -> None:
    @app.task()
    async def work(ctx: Context) -> list[str]:
        return ctx.models

    handle = await work.enqueue()

    await run_all(app)

    assert await handle.result(timeout=5) == []


@pytest.mark.requirement("F14")
async def test_an_attempt_is_recorded_with_the_model_that_it_has_paid_for(
    app: Treadle, conn: Conn
) -> None:
    @app.task(max_attempts=1, models=["large"])
    async def work(ctx: Context) -> None:
        await ctx.spend(0.01, model="large")
        await ctx.spend(0.01, model="medium")
        raise ValueError("no")

    await work.enqueue()

    await run_all(app)

    assert await rows(conn, "select model from treadle.attempts") == [("medium",)]


async def test_notes_of_an_attempt_go_to_those_that_follow(app: Treadle, conn: Conn) -> None:
    seen: list[Any] = []

    @app.task(max_attempts=3, retry=AT_ONCE)
    async def work(ctx: Context) -> None:
        seen.append(([past["notes"] for past in ctx.previous_attempts], ctx.tried))
        await ctx.note(f"tried way {ctx.attempt}")
        await ctx.note(f"tried way {ctx.attempt}")
        raise ValueError("a dead end")

    await work.enqueue()

    await run_all(app)

    assert [notes for notes, _ in seen] == [
        [],
        [["tried way 1"]],
        [["tried way 1"], ["tried way 2"]],
    ]
    assert "  note: tried way 2" in seen[2][1].splitlines()


async def test_a_plain_function_leaves_notes_too(app: Treadle, conn: Conn) -> None:
    @app.task(max_attempts=2, retry=AT_ONCE)
    def work(ctx: Context) -> list[Any]:
        if ctx.attempt == 1:
            ctx.blocking.note("it needs a login")
            raise ValueError("no")
        return [past["notes"] for past in ctx.previous_attempts]

    handle = await work.enqueue()

    await run_all(app)

    assert await handle.result(timeout=5) == [["it needs a login"]]


async def test_the_next_attempt_gets_the_note_of_the_reviewer(app: Treadle, conn: Conn) -> None:
    @app.task(max_attempts=1)
    async def work(ctx: Context) -> list[Any]:
        if not ctx.previous_attempts:
            raise ValueError("which one?")
        [past] = ctx.previous_attempts
        review = past["review"]
        return [past["error"].split("\n")[0], review["by"], review["note"], ctx.tried]

    handle = await work.enqueue()
    await run_all(app)
    await row(
        conn,
        "select treadle.retry_task(%s, p_reviewer => 'ada', p_note => 'the blue one')",
        handle.id,
    )

    await run_all(app)

    *found, tried = await handle.result(timeout=5)
    assert found == ["ValueError: which one?", "ada", "the blue one"]
    assert "  review by ada: the blue one" in tried.splitlines()
