"""A rate limit in one worker slows down all workers."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import anyio
import pytest
import structlog

from tests.drivers.workers import Conn, row, rows, run_all, until, working
from treadle import Context, RateLimited, Treadle
from treadle.services.promoter import Promoter
from treadle.worker.rate_limits import ClosedGates

pytestmark = pytest.mark.requirement("R6")


class TooFast(Exception):
    """An error of a library: a status and headers."""

    def __init__(self, retry_after: str) -> None:
        super().__init__("try later")
        self.status_code = 429
        self.headers = {"Retry-After": retry_after}


FOUND = """
    select status, failure_class, attempt, rate_limits,
      extract(epoch from retry_at - clock_timestamp())::float8
    from treadle.tasks where id = %s
"""


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_an_error_with_a_retry_after_is_retried_then_and_burns_no_attempt(
    app: Treadle, conn: Conn, form: str
) -> None:
    later = format_datetime(datetime.now(tz=UTC) + timedelta(seconds=40), usegmt=True)

    @app.task(max_attempts=1, gates=["llm"])
    async def ask() -> None:
        raise RuntimeError("no answer") from TooFast("40" if form == "seconds" else later)

    handle = await ask.enqueue()
    await run_all(app)

    *found, wait = await row(conn, FOUND, handle.id)
    assert found == ["retrying", "rate_limit", 0, 1]
    assert wait == pytest.approx(40, abs=4)


async def test_words_alone_are_enough(app: Treadle, conn: Conn) -> None:
    @app.task(max_attempts=1)
    async def ask() -> None:
        raise RuntimeError("Error code: 429 - please retry after 40 seconds")

    handle = await ask.enqueue()
    await run_all(app)

    *found, wait = await row(conn, FOUND, handle.id)
    assert found == ["retrying", "rate_limit", 0, 1]
    assert wait == pytest.approx(40, abs=4)


async def test_an_error_of_another_kind_is_an_error(app: Treadle, conn: Conn) -> None:
    @app.task(max_attempts=1)
    async def ask() -> None:
        raise RuntimeError("task 4290 is no good")

    handle = await ask.enqueue()
    await run_all(app)

    assert (await row(conn, FOUND, handle.id))[:3] == ("dead_lettered", "error", 1)


async def test_two_workers_stop_at_one_rate_limit_and_continue_when_it_is_over(
    app: Treadle, conn: Conn
) -> None:
    began: list[tuple[str, float]] = []
    seen: list[tuple[datetime | None, datetime | None]] = []
    go_on = anyio.Event()

    @app.task(gates=["llm"], retry={"strategy": "immediate"})
    async def ask(ctx: Context, n: int) -> None:
        began.append((ctx.agent, anyio.current_time()))
        if n == 0 and len(ctx.previous_attempts) == 0:
            raise RateLimited(5, key="llm")

    @app.task()
    async def watch(ctx: Context) -> None:
        await go_on.wait()
        seen.append((ctx.slow_until("llm"), ctx.slow_until()))

    await watch.enqueue()
    async with (
        working(app, agent="one", slots=2),
        working(app, agent="two", slots=2),
        app.service(Promoter) as promoter,
        anyio.create_task_group() as group,
    ):
        group.start_soon(promoter.run)
        await until(lambda: _running(conn))
        await ask.enqueue(n=0)
        await until(lambda: len(began) == 1)
        await until(lambda: _closed(conn))
        met = began[0][1]
        for n in range(1, 7):
            await ask.enqueue(n=n)
        await anyio.sleep(0.5)
        go_on.set()
        early = len(began)
        await until(lambda: len(began) == 8, within=30)
        promoter.stop()

    assert early == 1
    assert min(at for _, at in began[1:]) - met >= 4.9
    assert seen[0][0] is not None
    assert seen[0][1] is None
    attempts = await rows(conn, "select outcome from treadle.attempts")
    assert attempts == [("rate_limited",)]


async def _running(conn: Conn) -> bool:
    return bool(await rows(conn, "select 1 from treadle.tasks where status <> 'ready'"))


async def _closed(conn: Conn) -> bool:
    return bool(await rows(conn, "select 1 from treadle.gates where closed_until is not null"))


def test_a_closed_gate_is_remembered_until_it_opens() -> None:
    heard = ClosedGates()
    soon = datetime.now(tz=UTC) + timedelta(seconds=60)
    heard.record(f'{{"key": "llm", "until": "{soon.isoformat()}", "in_s": 60}}')
    heard.record(f'{{"key": "old", "until": "{soon.isoformat()}", "in_s": -1}}')

    assert heard.until(["llm", "type:x"]) == soon
    assert heard.until(["old"]) is None
    assert heard.until(["other"]) is None


@pytest.mark.parametrize("payload", ["", "no json", "[]", "{}", '{"key": 1, "until": "never"}'])
def test_an_invalid_notification_is_logged_and_ignored(payload: str) -> None:
    heard = ClosedGates()
    with structlog.testing.capture_logs() as logs:
        heard.record(payload)

    assert [each["event"] for each in logs] == ["gate.notification_invalid"]
    assert heard.until(["1"]) is None
