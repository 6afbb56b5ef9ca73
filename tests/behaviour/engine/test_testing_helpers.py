"""Users test their tasks with the helpers of treadle.testing, on a real database."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from treadle import Context, FailPermanently, InvalidArgument, RetryAfter, Task, Treadle
from treadle.errors import ClaimLost, IllegalTransition, SchemaMissing, TaskNotFound
from treadle.settings import load_settings
from treadle.testing import TaskRunner

pytestmark = pytest.mark.requirement("B14")

MINUTE = timedelta(minutes=1)


class Shop:
    """An application such as a user's: a module with an app and its tasks."""

    def __init__(self) -> None:
        self.app = Treadle("postgresql://nobody@localhost:1/production")
        self.seen: list[Context] = []
        self.double: Task = self.app.task("double")(self._double)
        self.app.queue("slow")
        self.slow: Task = self.app.task("slow", queue="slow", timeout_s=0.05)(self._slow)
        self.flaky: Task = self.app.task(
            "flaky", retry={"strategy": "fixed", "initial_delay_s": 60, "jitter": False}
        )(self._flaky)
        self.hopeless: Task = self.app.task("hopeless", max_attempts=1)(self._hopeless)

    def _double(self, ctx: Context, n: int) -> int:
        self.seen.append(ctx)
        return 2 * n

    async def _slow(self) -> None:
        import anyio

        await anyio.sleep(5)

    async def _flaky(self, ctx: Context) -> str:
        if ctx.attempt == 1:
            raise ConnectionError("come back later")
        return ctx.previous_attempts[0]["class"]  # type: ignore[no-any-return]

    async def _hopeless(self) -> None:
        raise FailPermanently("never")


@pytest.fixture(scope="session")
def treadle_server_url(server_url: str) -> str:
    """The plugin's fixtures on the server that all our tests share."""
    return server_url


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
async def harness(
    shop: Shop, treadle_runner: Callable[[Treadle], TaskRunner]
) -> AsyncIterator[TaskRunner]:
    async with treadle_runner(shop.app) as made:
        yield made


async def test_run_inline_runs_a_claimed_task_and_returns_its_result(
    harness: TaskRunner, shop: Shop
) -> None:
    assert await harness.run_inline(shop.double, n=21) == 42

    [ctx] = shop.seen
    assert ctx.attempt == 1
    assert await harness.state_of(ctx.task.id) == "completed"
    row = await shop.app.db.tasks.get(ctx.task.id)
    assert row["output"] == 42


async def test_run_inline_checks_the_arguments_first(harness: TaskRunner, shop: Shop) -> None:
    with pytest.raises(InvalidArgument, match="n: "):
        await harness.run_inline(shop.double, n="many")

    assert await harness.states() == {}


async def test_run_inline_runs_its_own_task_and_no_other(harness: TaskRunner, shop: Shop) -> None:
    urgent = await shop.double.using(priority=0).enqueue(n=1)

    assert await harness.run_inline(shop.double.using(priority=100, delay=60), n=5) == 10

    assert await harness.state_of(urgent) == "ready"


async def test_run_inline_meets_the_capabilities_that_the_task_asks_for(
    harness: TaskRunner, shop: Shop
) -> None:
    picky = shop.double.using(capabilities=["gpu"], assigned_agent="titan")

    assert await harness.run_inline(picky, n=1) == 2

    assert shop.seen[0].agent == "titan"


async def test_run_inline_raises_what_the_handler_raises_and_records_the_attempt(
    harness: TaskRunner, shop: Shop
) -> None:
    with pytest.raises(ConnectionError, match="come back later"):
        await harness.run_inline(shop.flaky)

    assert await harness.states() == {"retrying": 1}


async def test_run_inline_raises_outcomes_too(harness: TaskRunner, shop: Shop) -> None:
    @shop.app.task()
    def polite() -> RetryAfter:
        return RetryAfter(30)

    with pytest.raises(FailPermanently, match="never"):
        await harness.run_inline(shop.hopeless)
    with pytest.raises(RetryAfter):
        await harness.run_inline(polite)

    assert await harness.states() == {"dead_lettered": 1, "retrying": 1}


async def test_run_inline_ends_at_the_timeout_of_the_task(harness: TaskRunner, shop: Shop) -> None:
    with pytest.raises(TimeoutError, match="longer than"):
        await harness.run_inline(shop.slow)


async def test_run_inline_refuses_a_key_that_is_taken_and_a_queue_that_is_paused(
    harness: TaskRunner, shop: Shop
) -> None:
    await harness.run_inline(shop.double.using(key="once"), n=1)
    await shop.app.db.queues.pause("slow", "a holiday")

    with pytest.raises(IllegalTransition, match="it is completed"):
        await harness.run_inline(shop.double.using(key="once"), n=1)
    with pytest.raises(IllegalTransition, match="cannot be claimed"):
        await harness.run_inline(shop.slow)


async def test_drain_runs_all_tasks_and_returns_their_states(
    harness: TaskRunner, shop: Shop
) -> None:
    await shop.double.enqueue_many([{"n": n} for n in range(20)])
    await shop.hopeless.enqueue()
    await shop.flaky.enqueue()
    await shop.slow.enqueue()

    states = await harness.drain("default")

    assert states == {"completed": 20, "dead_lettered": 1, "retrying": 1}
    assert await harness.states("slow") == {"ready": 1}


async def test_retries_run_when_their_time_has_come(harness: TaskRunner, shop: Shop) -> None:
    task = await shop.flaky.enqueue()
    later = await shop.double.using(delay=3600).enqueue(n=1)
    assert await harness.drain(promote=True) == {"pending": 1, "retrying": 1}

    await harness.clock.advance(2 * MINUTE)

    assert await harness.drain(promote=True) == {"pending": 1, "completed": 1}
    assert await task.result(timeout=30) == "error"
    await harness.clock.advance(60 * MINUTE)
    assert [each.id for each in await harness.promote()] == [later.id]


async def test_the_clock_can_be_set_back(harness: TaskRunner, shop: Shop) -> None:
    await harness.clock.advance(60 * MINUTE)
    await harness.clock.reset()
    task = await shop.double.using(delay=60).enqueue(n=1)

    assert await harness.promote() == []
    assert await harness.state_of(task.id) == "pending"


async def test_an_aged_claim_is_reaped_and_its_worker_refused(
    harness: TaskRunner, shop: Shop
) -> None:
    task = await shop.double.enqueue(n=1)
    first = await harness.claim("a")
    assert await harness.reap() == []

    await harness.age_claim(task, by=5 * MINUTE)

    [reaped] = await harness.reap()
    assert (reaped.id, reaped.reason) == (task.id, "heartbeat_timeout")
    await harness.clock.advance(60 * MINUTE)
    await harness.promote()
    second = await harness.claim("b")
    assert (second.id, second.attempt) == (task.id, 2)
    with pytest.raises(ClaimLost):
        async with Context(first, shop.app.db, "a").transaction():
            pass
    assert await harness.state_of(task) == "running"


async def test_aging_an_unclaimed_task_or_claiming_none_is_an_error(
    harness: TaskRunner, shop: Shop
) -> None:
    task = await shop.double.using(delay=60).enqueue(n=1)

    with pytest.raises(IllegalTransition, match="not claimed"):
        await harness.age_claim(task.id, by=MINUTE)
    with pytest.raises(TaskNotFound, match="no task can be claimed in default"):
        await harness.claim("a", "default")


async def test_after_the_block_the_app_is_where_it_was(
    shop: Shop, treadle_runner: Callable[[Treadle], Any], treadle_url: str
) -> None:
    shop.app = Treadle(settings=load_settings(database_url="postgresql:///live", listen_url="live"))
    shop.app.task("double")(lambda: None)
    before = dict(vars(shop.app))

    async with treadle_runner(shop.app):
        inside = shop.app.url, shop.app.settings.listen_url

    assert inside == (treadle_url, None)
    assert vars(shop.app) == before


async def test_a_database_without_the_schema_is_an_error_and_the_app_keeps_its_own(
    shop: Shop, empty_database_url: str
) -> None:
    before = shop.app.url

    with pytest.raises(SchemaMissing):
        async with TaskRunner(shop.app, empty_database_url):
            pass

    assert shop.app.url == before
