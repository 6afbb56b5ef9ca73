"""Behind a transaction pooler everything works; only LISTEN needs a direct connection."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.drivers.apps.naps import make_app
from tests.drivers.processes.children import (
    NO_QUICK_POLLS,
    Conn,
    Spawn,
    all_completed,
    is_idle,
    rows,
    until,
)
from tests.drivers.processes.pooler import pooler
from treadle import Treadle
from treadle.settings import load_settings

pytestmark = pytest.mark.requirement("B13")

TROUBLE = {
    "listener.blocked",
    "listener.disconnected",
    "claim.failed",
    "completer.flush_failed",
    "completer.result_rejected",
    "heartbeat.failed",
    "task.result_stale",
}
POOLED = {"prepare": "false", "heartbeat_s": 1, "service_s": 1}


@pytest.fixture
def pooled_url(database_url: str) -> Iterator[str]:
    """The test's database through PgBouncer."""
    with pooler(database_url) as url:
        yield url


@pytest.fixture
async def pooled(app: Treadle, pooled_url: str) -> AsyncIterator[Treadle]:
    """A producer behind the pooler."""
    settings = load_settings(database_url=pooled_url, prepare=False)
    async with make_app(settings=settings) as made:
        yield made


async def mixed_load(app: Treadle) -> int:
    """Tasks that touch every path: plain, threaded, transactions, retries, delays, keys."""
    for n in range(20):
        await app.enqueue("nap", {"naps": [0]}, key=f"nap-{n}")
    for _ in range(10):
        await app.enqueue("pay", {"naps": [0.01]})
    await app.enqueue("doze", {"naps": [1.2]})
    await app.enqueue("stumble")
    await app.enqueue("nap", {"naps": [0]}, delay=0.5)
    return 33


async def test_everything_works_through_the_pooler_with_a_direct_listener(
    pooled: Treadle, conn: Conn, spawn: Spawn, database_url: str, pooled_url: str
) -> None:
    settings = {**POOLED, "database_url": pooled_url, "listen_url": database_url, "slots": 4}
    settings["poll_s"] = 600
    children = [spawn("worker", **settings, constants=NO_QUICK_POLLS) for _ in range(2)]
    children += [spawn("promoter", **settings), spawn("reaper", **settings)]
    for child in children[:2]:
        await child.logged("worker.started")

    await all_completed(conn, await mixed_load(pooled))
    paid = await rows(conn, "select task_id from effects where what = 'paid'")
    for _ in range(2):
        await until(lambda: is_idle(conn))
        # The next poll is minutes away: a notification has to bring it.
        await (await pooled.enqueue("nap", {"naps": [0]})).result(timeout=40)

    assert len(paid) == len(set(paid)) == 10
    assert [line for child in children for line in child.lines() if line["event"] in TROUBLE] == []


async def test_without_a_direct_listener_the_worker_detects_blocked_notifications_and_polls(
    pooled: Treadle, conn: Conn, spawn: Spawn, pooled_url: str
) -> None:
    settings = {**POOLED, "database_url": pooled_url, "poll_s": 0.5}
    worker = spawn("worker", **settings)
    spawn("promoter", **settings)
    await worker.logged("worker.started")

    await all_completed(conn, await mixed_load(pooled))

    line = await worker.logged("listener.blocked")
    assert "TREADLE_LISTEN_URL" in line["hint"]
    await (await pooled.enqueue("nap", {"naps": [0]})).result(timeout=20)


async def test_a_direct_listener_is_not_reported_as_blocked(
    app: Treadle, spawn: Spawn, database_url: str
) -> None:
    worker = spawn("worker", database_url=database_url)
    await worker.logged("worker.started")

    await (await app.enqueue("nap", {"naps": [0]})).result(timeout=20)

    assert worker.events("listener.blocked") == []
