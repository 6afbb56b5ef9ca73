"""A handler decides how its attempt ends: by what it raises, or by what it returns."""

from typing import Any

import anyio
import pytest

from tests.drivers.workers import Conn, row, rows, run_all
from treadle import (
    CancelTask,
    Context,
    FailPermanently,
    RateLimited,
    RetryAfter,
    Task,
    TaskFailed,
    Treadle,
)
from treadle.worker.outcomes import Outcome

ENDED = """
    select status, failure_class, failure_reason, attempt, rate_limits,
      extract(epoch from retry_at - clock_timestamp())::float8
    from treadle.tasks where id = %s
"""


@pytest.mark.requirement("F12")
@pytest.mark.parametrize("how", ["raised", "returned"])
@pytest.mark.parametrize(
    ("outcome", "expected", "delay"),
    [
        (RetryAfter(40, "not yet"), ("retrying", "error", "not yet", 1, 0), 40),
        (FailPermanently("broken", "refused"), ("dead_lettered", "refused", "broken", 1, 0), None),
        (RateLimited(50, "slow down"), ("retrying", "rate_limit", "slow down", 0, 1), 50),
        (CancelTask("not wanted"), ("cancelled", "error", "not wanted", 1, 0), None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Outcome) else None,
)
async def test_a_typed_outcome_decides_what_follows(
    app: Treadle,
    conn: Conn,
    how: str,
    outcome: Outcome,
    expected: tuple[object, ...],
    delay: float | None,
) -> None:
    @app.task(max_attempts=5)
    async def decide() -> Any:
        if how == "raised":
            raise outcome
        return outcome

    handle = await decide.enqueue()

    await run_all(app)

    *found, wait = await row(conn, ENDED, handle.id)
    assert tuple(found) == expected
    assert wait == pytest.approx(delay, abs=3) if delay else wait is None


@pytest.mark.requirement("F12")
async def test_an_error_is_retried_under_the_policy_until_the_attempts_are_used_up(
    app: Treadle, conn: Conn
) -> None:
    @app.task(max_attempts=3, retry={"strategy": "immediate"})
    async def break_down() -> None:
        raise ValueError("it broke \x00 \ud800 here")

    handle = await break_down.enqueue()

    await run_all(app)

    with pytest.raises(TaskFailed) as raised:
        await handle.result(timeout=5)
    errors = await rows(
        conn,
        "select attempt, class, reason, error from treadle.attempts where task_id = %s order by 1",
        handle.id,
    )
    assert raised.value.detail["status"] == "dead_lettered"
    assert [(attempt, kind, reason) for attempt, kind, reason, _ in errors] == [
        (1, "error", "handler"),
        (2, "error", "handler"),
        (3, "error", "handler"),
    ]
    assert all("ValueError: it broke \u2400 ? here" in error for *_, error in errors)


async def test_the_next_attempt_gets_the_history(app: Treadle) -> None:
    seen: list[tuple[int, bool, list[tuple[str, str]]]] = []

    @app.task(max_attempts=3, retry={"strategy": "immediate"})
    async def learn(ctx: Context) -> str:
        past = [(each["class"], each["error"]) for each in ctx.previous_attempts]
        seen.append((ctx.attempt, ctx.is_last_attempt, past))
        if ctx.attempt < 3:
            raise RetryAfter(0, f"attempt {ctx.attempt} was no good")
        return "learnt"

    handle = await learn.enqueue()

    await run_all(app)

    first, second = ("error", "attempt 1 was no good"), ("error", "attempt 2 was no good")
    assert seen == [(1, False, []), (2, False, [first]), (3, True, [first, second])]
    assert await handle.result(timeout=5) == "learnt"


@pytest.mark.requirement("F12")
async def test_a_handler_that_runs_too_long_is_stopped(app: Treadle, conn: Conn) -> None:
    stopped = []

    @app.task(max_attempts=2, timeout_s=0.2, retry={"strategy": "immediate"})
    async def linger() -> None:
        try:
            await anyio.sleep(30)
        finally:
            stopped.append(True)

    handle = await linger.enqueue()

    await run_all(app, within=20)

    assert stopped == [True, True]
    assert await row(conn, ENDED, handle.id) == (
        "dead_lettered",
        "timeout",
        "ran longer than 0.2 s",
        2,
        0,
        None,
    )


async def test_arguments_that_do_not_fit_are_refused_before_the_handler_runs(
    app: Treadle, conn: Conn
) -> None:
    called = []

    @app.task(max_attempts=5)
    async def add(left: int, right: int = 1) -> int:
        called.append((left, right))
        return left + right

    text: Task = add
    fine = await text.enqueue(left="41")
    wrong = await app.enqueue("add", {"left": "many", "middle": 1})

    await run_all(app)

    found = await row(conn, ENDED, wrong.id)
    assert found[:2] == ("dead_lettered", "refused")
    assert "left: Input should be a valid integer" in found[2]
    assert "middle: Extra inputs are not permitted" in found[2]
    assert called == [(41, 1)]
    assert await fine.result(timeout=5) == 42
