"""treadle: enqueue_many through its pool; one worker with its default settings.

Finished tasks are kept, with their results.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import structlog

from treadle import Task, Treadle
from treadle.db.install.migrate import migrate

DISTRIBUTION = "treadle"
UNFINISHED = "select exists (select from treadle.tasks where completed_at is null)"

structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def app_with_task(url: str, handle: Callable[[int], None]) -> tuple[Treadle, Task]:
    app = Treadle(url)

    @app.task()
    async def noop(i: int) -> None:
        handle(i)

    return app, noop


async def install(url: str) -> None:
    await asyncio.to_thread(migrate, url)


@asynccontextmanager
async def producer(url: str) -> AsyncIterator[Callable[[Sequence[int]], Awaitable[None]]]:
    app, noop = app_with_task(url, lambda _: None)

    async def push(numbers: Sequence[int]) -> None:
        await noop.enqueue_many([{"i": number} for number in numbers])

    async with app:
        yield push


@asynccontextmanager
async def worker(url: str, slots: int, handle: Callable[[int], None]) -> AsyncIterator[None]:
    app, _ = app_with_task(url, handle)
    async with app, app.worker(slots=slots) as running:
        task = asyncio.create_task(running.run())
        yield
        running.drain()
        await asyncio.wait({task}, timeout=10)
