"""Heartbeats during work, and async clients."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from tests.drivers.http.harness import ME, expire, fetched, put, rows
from tests.drivers.http.lossy_proxy import Flaky
from tests.drivers.http.servers import Conn
from tests.drivers.processes.children import until
from treadle.client import AsyncHarnessClient, ClaimLost, HarnessClient


@pytest.fixture
def client(way: Flaky) -> Iterator[HarnessClient]:
    with HarnessClient(way.url, ME, patience_s=20) as made:
        yield made


def test_heartbeats_during_work_keep_the_claim_and_report_its_loss(
    client: HarnessClient, way: Flaky, sql: Conn
) -> None:
    task_id = put(sql)
    fetched(client)
    with client.keep_alive(task_id, every_s=0.05) as alive:
        _until(lambda: way.seen[f"/harness/tasks/{task_id}/heartbeat"] >= 3)
        assert not alive.lost
        alive.check()
        expire(sql, task_id)
        _until(lambda: alive.lost)
        with pytest.raises(ClaimLost):
            alive.check()
    assert not [each for each in threading.enumerate() if each.name == "treadle-heartbeat"]


def test_a_task_that_is_completed_inside_the_block_is_not_lost(
    client: HarnessClient, sql: Conn
) -> None:
    task_id = put(sql)
    fetched(client)
    with client.keep_alive(task_id, every_s=0.02) as alive:
        client.complete_task(task_id, {"n": 1})
        _until(lambda: not alive._thread.is_alive())
    assert not alive.lost


@pytest.mark.requirement("H2")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_the_same_for_programs_with_an_event_loop(way: Flaky, sql: Conn, when: str) -> None:
    task_id = put(sql)
    for path in ("/next", "/heartbeat", "/complete"):
        way.lose(path, when)  # type: ignore[arg-type]
    async with AsyncHarnessClient(way.url, ME) as client:
        task = await client.next_task()
        assert task is not None
        await client.heartbeat(task_id)
        async with client.keep_alive(task_id, every_s=0.02) as alive:
            await client.complete_task(task.task_id, {"n": 1})
        assert not alive.lost
        assert await client.next_task() is None
        with pytest.raises(ClaimLost):
            await client.heartbeat(task_id)
    found = "select status, retry_count from treadle.harness_tasks"
    assert rows(sql, found) == [("completed", 0)]


@pytest.mark.requirement("H8")
@pytest.mark.parametrize("taken_back", [False, True])
async def test_a_question_that_is_cancelled_loses_no_task(
    way: Flaky, sql: Conn, taken_back: bool
) -> None:
    first, second = put(sql), put(sql)
    way.lose("/next", "after", times=100)
    async with AsyncHarnessClient(way.url, ME) as client:
        asking = asyncio.create_task(client.next_task())
        claimed = "select from treadle.harness_tasks where status = 'claimed'"
        await until(lambda: rows(sql, claimed))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        way.__dict__["_plans"].clear()
        if taken_back:
            expire(sql, first)

        got = [await client.next_task() for _ in range(3)]

    assert [each and each.task_id for each in got] == [first, second, None]
    assert got[0] is not None
    assert got[0].retry_count == int(taken_back)


async def test_heartbeats_of_an_event_loop_report_a_lost_claim(way: Flaky, sql: Conn) -> None:
    task_id = put(sql)
    async with AsyncHarnessClient(way.url, ME) as client:
        assert await client.next_task() is not None
        async with client.keep_alive(task_id, every_s=0.02) as alive:
            expire(sql, task_id)
            await until(lambda: alive.lost)
        with pytest.raises(ClaimLost):
            alive.check()
        await client.close()


def _until(condition: object, within: float = 10) -> None:
    assert callable(condition)
    until = time.monotonic() + within
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)
