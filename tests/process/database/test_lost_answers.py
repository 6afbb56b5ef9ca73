"""Every call may be repeated after a lost response and has one effect."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import anyio
import pytest

from tests.drivers.processes.children import Conn, rows, until, value
from tests.drivers.processes.postgres_proxy import Proxy, When
from treadle import Context, Treadle
from treadle.errors import TreadleError
from treadle.settings import load_settings
from treadle.worker import lease

pytestmark = pytest.mark.parametrize("when", ["before", "after"])
AUDIT = """select treadle.define_queue('default', '{"audit": "full"}')"""


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[Proxy]:
    """A way to the database that can lose answers."""
    async with Proxy(database_url) as made:
        yield made


@pytest.fixture
async def far(proxy: Proxy, conn: Conn) -> AsyncIterator[Treadle]:
    """An application behind the proxy; every transition is in the events."""
    settings = load_settings(database_url=proxy.url, prepare=False, notify=False, poll_s=0.2)
    await conn.execute(AUDIT)
    async with Treadle(settings=settings) as made:
        yield made


async def events(conn: Conn) -> list[str]:
    """The transitions of all tasks, in order."""
    found = await rows(
        conn, "select kind from treadle.events where task_id is not null order by id"
    )
    return [kind.removeprefix("task.") for (kind,) in found]


async def run_and_lose(far: Treadle, proxy: Proxy, conn: Conn, needle: str, when: When) -> None:
    """Work until nothing is left, with one request lost on the way."""
    proxy.lose(needle, when)
    async with far.worker(slots=2) as worker, anyio.create_task_group() as group:
        group.start_soon(worker.run)
        await until(lambda: _all_ended(conn))
        worker.drain()
    assert len(proxy.lost) == 1


@pytest.mark.requirement("R1")
async def test_an_enqueue_with_a_key_is_one_task(
    far: Treadle, proxy: Proxy, conn: Conn, when: When
) -> None:
    @far.task()
    async def work(n: int) -> int:
        return n

    proxy.lose("enqueue_batch", when)

    made = await work.using(key="once").enqueue(n=1)

    assert len(proxy.lost) == 1
    assert made.created is (when == "before")
    assert await rows(conn, "select id, idempotency_key from treadle.tasks") == [(made.id, "once")]


async def test_a_claim_is_taken_once_and_its_tasks_are_not_lost(
    far: Treadle, proxy: Proxy, conn: Conn, when: When
) -> None:
    ran = []

    @far.task()
    async def work(n: int) -> int:
        ran.append(n)
        return n

    await work.enqueue_many([{"n": n} for n in range(2)])

    await run_and_lose(far, proxy, conn, "claim_tasks", when)

    assert sorted(ran) == [0, 1]
    assert sorted(await events(conn)) == ["claimed"] * 2 + ["completed"] * 2
    assert await value(conn, "select max(attempt) from treadle.tasks") == 1


async def test_a_completion_counts_once(far: Treadle, proxy: Proxy, conn: Conn, when: When) -> None:
    @far.task()
    async def work() -> str:
        return "done"

    handle = await work.enqueue()

    await run_and_lose(far, proxy, conn, "complete_tasks", when)

    assert await handle.result(timeout=5) == "done"
    assert await events(conn) == ["claimed", "completed"]


async def test_a_failure_counts_once(far: Treadle, proxy: Proxy, conn: Conn, when: When) -> None:
    @far.task(max_attempts=2, retry={"strategy": "immediate"})
    async def work(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise ValueError("no")
        return ctx.attempt

    handle = await work.enqueue()

    await run_and_lose(far, proxy, conn, "fail_tasks", when)

    assert await handle.result(timeout=5) == 2
    assert await events(conn) == ["claimed", "failed", "claimed", "completed"]
    assert await value(conn, "select count(*) from treadle.attempts") == 1


async def test_a_release_counts_once(
    far: Treadle, proxy: Proxy, conn: Conn, when: When, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "START_AFTER_S", 60)

    @far.task()
    async def work() -> None:
        await anyio.sleep(30)

    await work.enqueue()

    proxy.lose("release_tasks", when)
    async with far.worker(drain_s=0) as worker, anyio.create_task_group() as group:
        group.start_soon(worker.run)
        await until(lambda: _any_claimed(conn))
        worker.drain()

    assert len(proxy.lost) == 1
    assert await events(conn) == ["claimed", "released"]
    assert await rows(conn, "select status, attempt from treadle.tasks") == [("ready", 0)]


async def test_a_transaction_of_a_handler_counts_once(
    far: Treadle, proxy: Proxy, conn: Conn, when: When
) -> None:
    """The handler itself tries again: its writes are not made twice."""
    await conn.execute("create table notes (attempt integer)")
    errors = []

    @far.task()
    async def work(ctx: Context) -> Any:
        for _ in range(2):
            try:
                async with ctx.transaction(output="paid") as tx:
                    await tx.execute("insert into notes values (%s)", (ctx.attempt,))
                return
            except TreadleError as error:
                errors.append(error)

    handle = await work.enqueue()

    await run_and_lose(far, proxy, conn, "COMMIT", when)

    assert len(errors) == 1
    assert await handle.result(timeout=5) == "paid"
    assert await rows(conn, "select attempt from notes") == [(1,)]
    assert await events(conn) == ["claimed", "completed"]


async def test_results_are_taken_once(far: Treadle, proxy: Proxy, conn: Conn, when: When) -> None:
    @far.task()
    async def work(n: int) -> int:
        return n

    await work.using(consumer="me").enqueue_many([{"n": n} for n in range(3)])
    await far.run_worker(until_empty=True)
    db, token = far.db, uuid4()

    proxy.lose("take_results", when)
    taken = await db.tasks.take_results("me", 10, token)

    assert sorted(each.output for each in taken) == [0, 1, 2]
    assert await db.tasks.take_results("me", 10, uuid4()) == []


async def _all_ended(conn: Conn) -> bool:
    return bool(await value(conn, "select bool_and(completed_at is not null) from treadle.tasks"))


async def _any_claimed(conn: Conn) -> bool:
    return bool(await rows(conn, "select from treadle.tasks where status = 'claimed'"))
