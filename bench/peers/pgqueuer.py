"""pgqueuer: array enqueue, one PgQueuer on asyncpg with a large dequeue batch.

Jobs in flight are not limited, as in its own benchmark tool: a limit costs it a budget query per
dequeue. Durability is its default. It deletes finished jobs and appends to a log table.
"""

# mypy: disable-error-code="import-not-found, untyped-decorator"

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

DISTRIBUTION = "pgqueuer"
UNFINISHED = "select exists (select from pgqueuer)"

logging.disable(logging.CRITICAL)


async def install(url: str) -> None:
    connection = await asyncpg.connect(url)
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


@asynccontextmanager
async def producer(url: str) -> AsyncIterator[Callable[[Sequence[int]], Awaitable[None]]]:
    queries = Queries(AsyncpgDriver(await asyncpg.connect(url)))

    async def push(numbers: Sequence[int]) -> None:
        payloads = [b"%d" % number for number in numbers]
        await queries.enqueue(["noop"] * len(payloads), payloads, [0] * len(payloads))

    yield push


@asynccontextmanager
async def worker(url: str, slots: int, handle: Callable[[int], None]) -> AsyncIterator[None]:
    queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(url)))

    @queue.entrypoint("noop")
    async def noop(job: Any) -> None:
        handle(int(job.payload))

    running = asyncio.create_task(
        queue.run(batch_size=max(10, slots), dequeue_timeout=timedelta(seconds=5))
    )
    yield
    queue.shutdown.set()
    await asyncio.wait({running}, timeout=10)
