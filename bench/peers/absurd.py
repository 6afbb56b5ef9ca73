"""absurd: its spawn function over a series in SQL, since it has no bulk call; one async worker.

A batch of claims is as large as the slots. Finished tasks are kept.
"""

# mypy: disable-error-code="import-not-found, untyped-decorator"

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import absurdctl
import psycopg
from absurd_sdk import Absurd, AsyncAbsurd

DISTRIBUTION = "absurd-sdk"
UNFINISHED = "select exists (select from absurd.t_default where state <> 'completed')"
SPAWN = """
    select count(*)
    from unnest(%s::int[]) as job (i)
    cross join lateral absurd.spawn_task(
        'default', 'noop', jsonb_build_object('i', job.i), '{"max_attempts": 5}'::jsonb
    )
"""


async def install(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(absurdctl.BUNDLED_SCHEMA_SQL)
    Absurd(url, queue_name="default").create_queue("default")


@asynccontextmanager
async def producer(url: str) -> AsyncIterator[Callable[[Sequence[int]], Awaitable[None]]]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as conn:

        async def push(numbers: Sequence[int]) -> None:
            await conn.execute(SPAWN, (list(numbers),))

        yield push


@asynccontextmanager
async def worker(url: str, slots: int, handle: Callable[[int], None]) -> AsyncIterator[None]:
    app = AsyncAbsurd(url, queue_name="default")

    @app.register_task("noop")
    async def noop(params: dict[str, int], _context: object) -> None:
        handle(params["i"])

    running = asyncio.create_task(
        app.start_worker(concurrency=slots, batch_size=slots, claim_timeout=120)
    )
    yield
    app.stop_worker()
    await asyncio.wait({running}, timeout=5)
