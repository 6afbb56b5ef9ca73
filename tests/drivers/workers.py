"""Run a worker inside the test, and wait for what it does."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Unpack
from uuid import UUID

import anyio

from tests.drivers.processes.children import Conn as Conn
from tests.drivers.processes.children import rows as rows
from tests.drivers.processes.children import statuses as statuses
from tests.drivers.processes.children import until as until
from treadle.app import Treadle
from treadle.worker.loop import Worker, WorkerSettings


@asynccontextmanager
async def working(app: Treadle, **options: Unpack[WorkerSettings]) -> AsyncIterator[Worker]:
    """A worker that runs beside the test and is drained when the test is done with it."""
    async with app.worker(**options) as worker, anyio.create_task_group() as group:
        group.start_soon(worker.run)
        yield worker
        worker.drain()


async def run_all(app: Treadle, within: float = 30, **options: Unpack[WorkerSettings]) -> None:
    """Work until there is nothing left to claim."""
    with anyio.fail_after(within):
        options["until_empty"] = True
        await app.run_worker(**options)


async def row(conn: Conn, query: str, *parameters: object) -> tuple[Any, ...]:
    """The one row that a query gives."""
    found = await rows(conn, query, *parameters)
    assert len(found) == 1, found
    return found[0]


async def status(conn: Conn, task_id: UUID) -> str:
    """The state of a task."""
    return str((await row(conn, "select status from treadle.tasks where id = %s", task_id))[0])


async def expire(conn: Conn, task_id: UUID) -> None:
    """Let the lease of a task run out and take the task back, as a reaper does."""
    # In one transaction: a heartbeat in between would renew the lease.
    async with conn.transaction():
        await conn.execute(
            "update treadle.tasks set lease_until = clock_timestamp() - interval '1 s' "
            "where id = %s",
            (task_id,),
        )
        assert await rows(conn, "select id from treadle.reap_claims()") == [(task_id,)]


async def answer_all(app: Treadle, conn: Conn, value: Any = "yes") -> int:
    """Answer every open question."""
    found = await rows(conn, "select id from treadle.waits where status = 'open'")
    for (wait,) in found:
        await app.answer(wait, value)
    return len(found)


class Stopwatch:
    """How long ago something began."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began
