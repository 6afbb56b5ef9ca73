"""The test runner runs validators as a worker does, and reports their messages."""

from typing import Any

import anyio
import pytest

from treadle import Context, FailPermanently, InvalidOutput, Treadle
from treadle.testing.runner import TaskRunner

pytestmark = pytest.mark.requirement("F20")


@pytest.fixture
async def plain_app() -> Treadle:
    return Treadle("postgresql://nowhere")


async def test_run_inline_returns_what_passed_and_raises_what_was_refused(
    plain_app: Treadle, database_url: str
) -> None:
    @plain_app.task(validation=[{"validator": "regex", "pattern": "^ok"}])
    async def say(text: str) -> str:
        return text

    async with TaskRunner(plain_app, database_url) as harness:
        assert await harness.run_inline(say, text="ok then") == "ok then"
        with pytest.raises(InvalidOutput, match='"no" does not match'):
            await harness.run_inline(say, text="no")
        assert await harness.states() == {"completed": 1, "retrying": 1}


async def test_run_inline_raises_for_a_missing_report_a_hang_and_a_crash(
    plain_app: Treadle, database_url: str
) -> None:
    @plain_app.task()
    async def work(ctx: Context) -> None: ...

    @plain_app.validator("hang")
    async def hang(output: Any) -> None:
        await anyio.sleep_forever()

    @plain_app.validator("crash")
    async def crash(output: Any) -> None:
        raise ZeroDivisionError

    check: dict[str, Any] = {"validator": "hang", "timeout_s": 0.1}
    async with TaskRunner(plain_app, database_url) as harness:
        with pytest.raises(InvalidOutput, match="report is required"):
            await harness.run_inline(work.using(report="required"))
        with pytest.raises(TimeoutError, match=r"took longer than 0\.1 s"):
            await harness.run_inline(work.using(validation=[check]))
        with pytest.raises(FailPermanently, match="crash crashed"):
            await harness.run_inline(work.using(validation=[{"validator": "crash"}]))
        with pytest.raises(FailPermanently, match="no validator"):
            await harness.run_inline(work.using(validation=[{"validator": "other"}]))
