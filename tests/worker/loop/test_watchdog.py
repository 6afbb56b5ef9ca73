"""A handler that blocks the event loop is named, keeps its lease, and has to end in time."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import anyio
import psycopg
import pytest
from structlog.testing import capture_logs

from tests.drivers.workers import Conn, row, run_all
from treadle import Treadle
from treadle.worker import watchdog

pytestmark = pytest.mark.requirement("F28")


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "TICK_S", 0.05)


@pytest.fixture
def block_until(database_url: str) -> Callable[[str], None]:
    """Block the calling thread until a query returns a row."""

    def block(query: str) -> None:
        until = time.monotonic() + 20
        with psycopg.connect(database_url, autocommit=True) as conn:
            while not conn.execute(query.encode()).fetchall():
                assert time.monotonic() < until, "the row never came"
                time.sleep(0.02)

    return block


async def test_heartbeats_go_on_and_a_warning_names_the_task_and_its_line(
    app: Treadle, conn: Conn, block_until: Callable[[str], None]
) -> None:
    @app.task()
    async def hang() -> None:
        # Two more heartbeats than the start, and one of the agent.
        for _ in range(2):
            block_until("select from treadle.tasks where heartbeat_at > started_at")
            block_until("select from treadle.agents where heartbeat_at > registered_at")
        await anyio.sleep(0.2)
        block_until("select")

    handle = await hang.enqueue()

    with capture_logs() as logs:
        await run_all(app, heartbeat_s=0.4)

    [warning] = [each for each in logs if each["event"] == "task.blocks_event_loop"]
    assert warning["log_level"] == "warning"
    assert (warning["type"], warning["task_id"], warning["attempt"]) == ("hang", str(handle.id), 1)
    assert f"{__file__}:" in warning["line"]
    assert warning["line"].endswith(" in block")
    assert await row(conn, "select status, attempt from treadle.tasks") == ("completed", 1)
    assert not [each for each in threading.enumerate() if each.name == "treadle-watchdog"]


async def test_the_task_is_named_if_it_blocks_in_an_async_task_of_its_own(
    app: Treadle, block_until: Callable[[str], None]
) -> None:
    async def block() -> None:
        block_until("select from treadle.tasks where started_at is not null")

    @app.task()
    async def hang() -> None:
        await asyncio.create_task(block())

    handle = await hang.enqueue()

    with capture_logs() as logs:
        await run_all(app)

    [warning] = [each for each in logs if each["event"] == "task.blocks_event_loop"]
    assert warning["task_id"] == str(handle.id)


@pytest.mark.parametrize("reaped", [True, False])
async def test_a_timeout_ends_an_attempt_that_blocks(
    app: Treadle, conn: Conn, block_until: Callable[[str], None], reaped: bool
) -> None:
    @app.task(max_attempts=1, timeout_s=0.3)
    async def hang() -> str:
        if reaped:
            block_until("select from treadle.reap_claims() where reason = 'timeout'")
        else:
            block_until(
                "select from treadle.tasks where claimed_at < clock_timestamp() - interval '0.5 s'"
            )
        return "late"

    await hang.enqueue()

    await run_all(app, heartbeat_s=0.2)

    ended: tuple[Any, ...] = await row(
        conn,
        """
        select tasks.status, tasks.output, attempts.class, attempts.reason
        from treadle.tasks inner join treadle.attempts on tasks.id = attempts.task_id
        """,
    )
    assert ended[:3] == ("dead_lettered", None, "timeout")


async def test_a_task_that_is_past_its_timeout_is_not_renewed(
    app: Treadle, conn: Conn, block_until: Callable[[str], None]
) -> None:
    @app.task(max_attempts=1, timeout_s=0.1)
    async def hang() -> None:
        # The lease of one heartbeat interval ends although the worker sends heartbeats.
        block_until("select from treadle.tasks where lease_until < clock_timestamp()")

    await hang.enqueue()

    await run_all(app, heartbeat_s=0.2)

    assert await row(conn, "select class from treadle.attempts") == ("timeout",)
