"""The application of `treadle demo`, and the default application of `treadle dev`.

Its tasks pretend to work: they run in a thread or on the event loop, report progress, fail once,
or always fail.
"""

import time
from typing import Annotated

import anyio
from pydantic import Field

from treadle.app import Treadle
from treadle.worker.context import Context

app = Treadle()
app.queue("demo")


@app.task(max_attempts=5, retry={"strategy": "immediate"})
def thumbnail(page: int) -> str:
    """Make a thumbnail, in a plain function that runs in a thread."""
    time.sleep(0.1)
    return f"page-{page}.png"


@app.task(max_attempts=5, retry={"strategy": "immediate"})
async def summarise(
    ctx: Context, document: str, seconds: Annotated[float, Field(ge=0, le=60)] = 1.0
) -> str:
    """Summarise a document within seconds, and report progress."""
    for step in range(1, 11):
        await anyio.sleep(seconds / 10)
        ctx.progress(step / 10)
    return f"{document}, in one sentence"


@app.task(max_attempts=5, retry={"strategy": "fixed", "initial_delay_s": 1, "jitter": False})
async def publish(ctx: Context, channel: str) -> str:
    """Publish to a channel that fails on the first call."""
    if not any(attempt["class"] == "error" for attempt in ctx.previous_attempts):
        raise ConnectionError(f"{channel} answers 503")
    return f"published to {channel}"


@app.task(
    max_attempts=3,
    retry={"strategy": "fixed", "initial_delay_s": 0.5, "jitter": False, "poison": False},
)
async def import_invoice(path: str) -> None:
    """Read a broken file: always fails, and becomes a dead letter."""
    raise ValueError(f"{path}: '12,4O' is not a number")


@app.task(max_attempts=5, retry={"strategy": "immediate"})
async def send_digest(to: str) -> str:
    """Send the digest of the day."""
    return f"sent to {to}"


@app.task(max_attempts=5, retry={"strategy": "immediate"})
async def charge(order: int, cents: int) -> str:
    """Charge an order; enqueued with an idempotency key, so that it happens once."""
    return f"order {order}: {cents / 100:.2f}"
