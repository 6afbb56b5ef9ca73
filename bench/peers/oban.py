"""oban for Python: enqueue_many; one instance with a queue as wide as the slots.

The open-source engine inserts and acknowledges job by job. Finished jobs are kept.
"""

# mypy: disable-error-code="import-not-found, untyped-decorator, attr-defined"

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from oban import Oban
from oban import worker as oban_worker
from oban.schema import install as install_schema

DISTRIBUTION = "oban"
UNFINISHED = "select exists (select from oban_jobs where state <> 'completed')"

logging.disable(logging.CRITICAL)
handlers: list[Callable[[int], None]] = []


@oban_worker(queue="default")
class Noop:
    """Found by its dotted path, so it reaches the handler through the module."""

    async def process(self, job: Any) -> None:
        handlers[-1](job.args["i"])


async def install(url: str) -> None:
    pool = await Oban.create_pool(dsn=url, min_size=1, max_size=2)
    await install_schema(pool)
    await pool.close()


@asynccontextmanager
async def producer(url: str) -> AsyncIterator[Callable[[Sequence[int]], Awaitable[None]]]:
    pool = await Oban.create_pool(dsn=url, min_size=2, max_size=10)
    oban = Oban(pool=pool)

    async def push(numbers: Sequence[int]) -> None:
        await oban.enqueue_many(*[Noop.new({"i": number}) for number in numbers])

    yield push
    await pool.close()


@asynccontextmanager
async def worker(url: str, slots: int, handle: Callable[[int], None]) -> AsyncIterator[None]:
    handlers.append(handle)
    pool = await Oban.create_pool(dsn=url, min_size=2, max_size=10)
    oban = Oban(pool=pool, queues={"default": slots})
    await oban.start()
    yield
    await oban.stop()
    await pool.close()
