"""awa: a Rust core with Python handlers; COPY enqueue into its segmented storage, one worker."""

# mypy: disable-error-code="import-not-found, untyped-decorator"

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import awa

DISTRIBUTION = "awa-pg"
# Counted where its storage keeps completions: its view awa.jobs takes seconds to answer, and that
# would be charged to the worker.
UNFINISHED = """
    select
        (select count(*) from awa.ready_entries)
        > (select count(*) from awa.done_entries)
        + (select coalesce(sum(completed_count), 0) from awa.receipt_completion_batches)
"""
UVLOOP = False  # its bridge from Rust drives the standard event loop


@dataclass
class Noop:
    """A job; its class is its type."""

    i: int


async def install(url: str) -> None:
    client = awa.AsyncClient(url)
    await client.migrate()
    await client.install_queue_storage(schema="awa")
    await client.close()


@asynccontextmanager
async def producer(url: str) -> AsyncIterator[Callable[[Sequence[int]], Awaitable[None]]]:
    client = awa.AsyncClient(url)

    async def push(numbers: Sequence[int]) -> None:
        await client.enqueue_many_copy([Noop(number) for number in numbers], queue="bench")

    yield push
    await client.close()


@asynccontextmanager
async def worker(url: str, slots: int, handle: Callable[[int], None]) -> AsyncIterator[None]:
    client = awa.AsyncClient(url)

    @client.task(Noop, queue="bench")
    async def noop(job: Any) -> None:
        handle(job.args.i)

    await client.start([("bench", slots)])
    yield
    await client.shutdown()
