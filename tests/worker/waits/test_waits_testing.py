"""Users test tasks that wait, without a running clock."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from treadle import Context, Treadle, WaitExpired
from treadle.errors import IllegalTransition
from treadle.testing import TaskRunner

pytestmark = [pytest.mark.requirement("B14"), pytest.mark.own_database]

app = Treadle("postgresql://nobody@localhost:1/production")


@app.task()
async def publish(ctx: Context) -> str:
    """Ask before something is published."""
    try:
        answer = await ctx.ask("Publish?", approvers=1, expires=timedelta(days=1))
    except WaitExpired:
        return "forgotten"
    return "published" if answer.approved else f"left: {answer.note}"


@app.task()
async def quick(ctx: Context) -> str:
    """Do something once."""
    return str(await ctx.step("once", lambda: "done"))


@pytest.fixture
async def harness(database_url: str) -> AsyncIterator[TaskRunner]:
    async with TaskRunner(app, database_url) as made:
        yield made


async def test_a_question_is_answered_and_the_task_drained(harness: TaskRunner) -> None:
    handle = await publish.enqueue()
    with pytest.raises(IllegalTransition, match="has no open question"):
        await harness.answer(handle, "approve")

    assert await harness.drain() == {"blocked": 1}
    [wait] = await harness.waits(handle)
    assert (wait["question"], wait["options"]) == ("Publish?", ["approve", "reject", "revise"])
    assert await harness.answer(handle, "reject", note="typo") == "answered"

    assert await harness.drain() == {"completed": 1}
    assert await handle.result() == "left: typo"


async def test_a_question_expires_by_the_clock(harness: TaskRunner) -> None:
    handle = await publish.enqueue()

    assert await harness.drain(promote=True) == {"blocked": 1}
    await harness.clock.advance(timedelta(days=2))
    assert await harness.drain(promote=True) == {"completed": 1}

    assert await handle.result() == "forgotten"


async def test_run_inline_runs_steps_and_raises_when_a_task_waits(harness: TaskRunner) -> None:
    assert await harness.run_inline(quick) == "done"

    with pytest.raises(IllegalTransition, match="publish has no result yet: it is waiting"):
        await harness.run_inline(publish)

    assert await harness.states() == {"completed": 1, "blocked": 1}
