"""chancy: push_many; one Worker with an async executor, eager polling and a quick flush.

The default executor is a process pool and finished jobs are flushed once a second; both are tuned.
"""

# mypy: disable-error-code="import-not-found, untyped-decorator"

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from chancy import Chancy, Queue, Worker, job

DISTRIBUTION = "chancy"
UNFINISHED = "select exists (select from chancy_jobs where state not in ('succeeded', 'failed'))"
FLUSH_S = 0.05

silent = logging.getLogger("bench.silent")
silent.setLevel(logging.CRITICAL + 1)
silent.propagate = False
handlers: list[Callable[[int], None]] = []


@job(queue="default")
async def noop(*, i: int) -> None:
    """Found by its dotted path, so it reaches the handler through the module."""
    handlers[-1](i)


def queue(slots: int) -> Queue:
    return Queue(
        "default",
        concurrency=slots,
        executor="chancy.executors.asyncex.AsyncExecutor",
        polling_interval=1,
        eager_polling=True,
    )


async def install(url: str) -> None:
    async with Chancy(url, log=silent) as chancy:
        await chancy.migrate()


@asynccontextmanager
async def producer(url: str) -> AsyncIterator[Callable[[Sequence[int]], Awaitable[None]]]:
    async with Chancy(url, log=silent) as chancy:

        async def push(numbers: Sequence[int]) -> None:
            jobs = [noop.job.with_kwargs(i=number) for number in numbers]
            async for _ in chancy.push_many(jobs, batch_size=len(jobs)):
                pass

        yield push


@asynccontextmanager
async def worker(url: str, slots: int, handle: Callable[[int], None]) -> AsyncIterator[None]:
    handlers.append(handle)
    async with Chancy(url, log=silent) as chancy:
        await chancy.declare(queue(slots), upsert=True)
        running = Worker(chancy, register_signal_handlers=False)
        running.send_outgoing_interval = FLUSH_S
        async with running:
            yield
