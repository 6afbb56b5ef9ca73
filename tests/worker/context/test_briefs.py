"""A brief describes the work of an agent; the next attempt gets what was tried."""

import re
from typing import Any

import pytest

from tests.drivers.workers import run_all
from treadle import Brief, Context, InvalidArgument, Treadle

pytestmark = pytest.mark.requirement("R8")
WORK = Brief(
    action="implement",
    target="src/auth.py",
    params={"algorithm": "HS256"},
    goal="Tokens expire after an hour",
    constraints=["No third-party deps", "Maintain backwards compat"],
    context={"relatedFiles": ["src/session.py"]},
)


async def test_a_brief_reaches_the_handler_as_it_was_given(app: Treadle) -> None:
    @app.task()
    async def implement(brief: Brief) -> Any:
        return [brief.action, brief.target, brief.params, brief.goal, brief.constraints]

    handle = await implement.enqueue(brief=WORK)
    await run_all(app)

    assert await handle.result(10) == [
        "implement",
        "src/auth.py",
        {"algorithm": "HS256"},
        "Tokens expire after an hour",
        ["No third-party deps", "Maintain backwards compat"],
    ]


WRONG: dict[str, Any] = {"brief": {"target": "src/auth.py"}}


async def test_a_brief_without_an_action_is_refused(app: Treadle) -> None:
    @app.task()
    async def implement(brief: Brief) -> None: ...

    with pytest.raises(InvalidArgument, match=r"brief\.action"):
        await implement.enqueue(**WRONG)


async def test_the_next_attempt_gets_the_earlier_attempts_and_steps(app: Treadle) -> None:
    @app.task(retry={"strategy": "immediate"})
    async def implement(ctx: Context, brief: Brief) -> str:
        await ctx.step("outline", lambda: "three parts")
        if ctx.attempt == 1:
            raise ValueError("the tests of session.py are red")
        return ctx.tried

    handle = await implement.enqueue(brief=WORK)
    await run_all(app, agent="ada")

    first, second = (await handle.result(10)).splitlines()
    failed = r"Attempt 1 \(ada, \d+ s\) failed: error: ValueError: the tests of session"
    assert re.match(failed, first), first
    assert second == "Steps that are done: outline"


async def test_the_first_attempt_has_no_history(app: Treadle) -> None:
    @app.task()
    async def implement(ctx: Context, brief: Brief) -> str:
        await ctx.step("outline", lambda: "three parts")
        return ctx.tried

    handle = await implement.enqueue(brief=WORK)
    await run_all(app)

    assert await handle.result(10) == ""
