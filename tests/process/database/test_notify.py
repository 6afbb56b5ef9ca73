"""NOTIFY is a hint: everything works without it, and it recovers by itself."""

import psycopg
import pytest

from tests.drivers.processes.children import (
    NO_QUICK_POLLS,
    Conn,
    Spawn,
    all_completed,
    is_idle,
    rows,
    until,
    value,
)
from treadle import Treadle

pytestmark = pytest.mark.requirement("F11")

LISTENERS = """
    select pid from pg_stat_activity
    where application_name = 'treadle-listener' and datname = current_database()
"""


async def test_everything_is_done_by_polling_when_notify_is_off(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    quiet = {"notify": "false", "poll_s": 0.3, "service_s": 0.3}
    worker = spawn("worker", **quiet, constants=NO_QUICK_POLLS)
    promoter, _ = spawn("promoter", **quiet), spawn("reaper", **quiet)
    await worker.logged("worker.started")
    await promoter.logged("promoter.started")
    await until(lambda: is_idle(conn))

    for delay in (0, 0, 0.4):
        await app.enqueue("nap", {"naps": [0]}, delay=delay)
    await app.enqueue("stumble")

    await all_completed(conn, 4)
    assert await rows(conn, LISTENERS) == []


async def test_a_worker_whose_listener_was_killed_works_on_and_listens_again(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    worker = spawn("worker", poll_s=600, constants=NO_QUICK_POLLS)
    await worker.logged("worker.started")
    await until(lambda: rows(conn, LISTENERS))
    # A task that commits while the worker becomes idle is found by a quick poll; it has none here.
    await until(lambda: is_idle(conn))
    await (await app.enqueue("nap", {"naps": [0]})).result(timeout=20)
    (listener,) = await rows(conn, LISTENERS)

    await conn.execute("select pg_terminate_backend(%s)", listener)
    deaf = await app.enqueue("nap", {"naps": [0]})

    await deaf.result(timeout=40)
    await worker.logged("listener.disconnected")
    await until(lambda: _listens(conn, but_not=listener[0]))
    for _ in range(2):
        await until(lambda: is_idle(conn))
        # The next poll is minutes away: a notification has to bring it.
        await (await app.enqueue("nap", {"naps": [0]})).result(timeout=40)


@pytest.mark.requirement("B8")
@pytest.mark.parametrize("way", ["python", "sql"])
async def test_a_rolled_back_transaction_leaves_no_rows_and_sends_no_notification(
    app: Treadle, conn: Conn, spawn: Spawn, database_url: str, way: str
) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as ears:
        await ears.execute('listen "task_ready.default"')
        worker = spawn("worker")
        await worker.logged("worker.started")
        await until(lambda: is_idle(conn))

        async def enqueue(tx: Conn) -> None:
            if way == "python":
                await app.enqueue("nap", {"naps": [0]}, conn=tx)
            else:
                await tx.execute("select treadle.enqueue_task('default', 'nap', '{\"naps\": [0]}')")

        async with conn.transaction(force_rollback=True):
            await enqueue(conn)
            assert await value(conn, "select count(*) from treadle.tasks") == 1
        rolled_back = [each.channel async for each in ears.notifies(timeout=0.5)]
        async with conn.transaction():
            await enqueue(conn)
        committed = [each.channel async for each in ears.notifies(timeout=20, stop_after=1)]

    assert rolled_back == []
    assert committed == ["task_ready.default"]
    await all_completed(conn, 1)
    assert await rows(conn, "select count(distinct task_id) from effects") == [(1,)]


async def _listens(conn: Conn, *, but_not: int) -> bool:
    found = [pid for (pid,) in await rows(conn, LISTENERS)]
    return bool(found) and but_not not in found
