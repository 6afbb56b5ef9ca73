"""procrastinate: batch defer, one async worker, a pool as wide as its slots (50 at most).

Finished jobs are kept, its default.
"""

# mypy: disable-error-code="import-not-found, untyped-decorator"

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import procrastinate

DISTRIBUTION = "procrastinate"
UNFINISHED = "select exists (select from procrastinate_jobs where status in ('todo', 'doing'))"

logging.disable(logging.CRITICAL)


def app_with_task(
    url: str, handle: Callable[[int], None], *, connections: int
) -> tuple[procrastinate.App, procrastinate.tasks.Task]:
    connector = procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=connections)
    app = procrastinate.App(connector=connector)

    @app.task(queue="default", name="noop")
    async def noop(i: int) -> None:
        handle(i)

    return app, noop


async def install(url: str) -> None:
    app, _ = app_with_task(url, lambda _: None, connections=1)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


@asynccontextmanager
async def producer(url: str) -> AsyncIterator[Callable[[Sequence[int]], Awaitable[None]]]:
    app, noop = app_with_task(url, lambda _: None, connections=4)

    async def push(numbers: Sequence[int]) -> None:
        await noop.batch_defer_async(*[{"i": number} for number in numbers])

    async with app.open_async():
        yield push


@asynccontextmanager
async def worker(url: str, slots: int, handle: Callable[[int], None]) -> AsyncIterator[None]:
    app, _ = app_with_task(url, handle, connections=max(4, min(slots + 2, 50)))
    async with app.open_async():
        running = asyncio.create_task(
            app.run_worker_async(
                queues=["default"], concurrency=slots, install_signal_handlers=False
            )
        )
        yield
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
