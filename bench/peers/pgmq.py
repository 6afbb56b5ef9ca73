"""pgmq: batch send; loops of read a batch of 100, handle, delete the batch.

Ten loops at most: more of them are slower here, so 100 slots are ten loops too.
A message queue with a visibility timeout: no task state, no retry policy, no priorities, no worker.
It shows what the bare messages cost, so the loop around it is the shortest one there is.
"""

# mypy: disable-error-code="import-not-found, untyped-decorator"

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import asyncpg
import psycopg
from pgmq import AsyncPGMQueue
from pgmq.install import get_embedded_install_sql

DISTRIBUTION = "pgmq"
UNFINISHED = "select exists (select from pgmq.q_bench)"
READ_BATCH = 100
LOOPS = 10


async def connect(url: str, *, connections: int) -> AsyncPGMQueue:
    # With a pool of ours, since its own parser knows no Unix sockets.
    pool = await asyncpg.create_pool(url, min_size=1, max_size=connections)
    queue = AsyncPGMQueue(pool=pool, init_extension=False)
    await queue.init()
    return queue


async def install(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(get_embedded_install_sql())
    queue = await connect(url, connections=2)
    await queue.create_queue("bench")


@asynccontextmanager
async def producer(url: str) -> AsyncIterator[Callable[[Sequence[int]], Awaitable[None]]]:
    queue = await connect(url, connections=2)

    async def push(numbers: Sequence[int]) -> None:
        await queue.send_batch("bench", [{"i": number} for number in numbers])

    yield push


@asynccontextmanager
async def worker(url: str, slots: int, handle: Callable[[int], None]) -> AsyncIterator[None]:
    queue = await connect(url, connections=LOOPS)

    async def consume() -> None:
        while True:
            messages = await queue.read_batch("bench", vt=120, batch_size=READ_BATCH)
            if not messages:
                await asyncio.sleep(0.05)
                continue
            for message in messages:
                handle(message.message["i"])
            await queue.delete_batch("bench", [message.msg_id for message in messages])

    loops = [asyncio.create_task(consume()) for _ in range(min(slots, LOOPS))]
    yield
    for loop in loops:
        loop.cancel()
