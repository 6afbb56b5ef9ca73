"""The application of `treadle demo`, and of `treadle dev` when it is given none.

Its tasks pretend to work. Their types show what a task can do: run in a thread or on the event
loop, report progress, fail once, fail for ever.
"""

import time
from typing import Annotated

import anyio
from pydantic import Field

from treadle.app import Treadle
from treadle.worker.context import Context

app = Treadle()


@app.task(max_attempts=5, retry={"strategy": "immediate"})
def thumbnail(page: int) -> str:
    """Make a thumbnail: quick, and a plain function, so it runs in a thread."""
    time.sleep(0.1)
    return f"page-{page}.png"


@app.task(max_attempts=5, retry={"strategy": "immediate"})
async def summarise(
    ctx: Context, document: str, seconds: Annotated[float, Field(ge=0, le=60)] = 1.0
) -> str:
    """Summarise a document: takes seconds, and says how far it is."""
    for step in range(1, 11):
        await anyio.sleep(seconds / 10)
        ctx.progress(step / 10)
    return f"{document}, in one sentence"


@app.task(max_attempts=5, retry={"strategy": "fixed", "initial_delay_s": 1, "jitter": False})
async def publish(ctx: Context, channel: str) -> str:
    """Publish somewhere that is never there at the first call."""
    if not any(attempt["class"] == "error" for attempt in ctx.previous_attempts):
        raise ConnectionError(f"{channel} answers 503")
    return f"published to {channel}"


@app.task(
    max_attempts=3,
    retry={"strategy": "fixed", "initial_delay_s": 0.5, "jitter": False, "poison": False},
)
async def import_invoice(path: str) -> None:
    """Read a file that nobody can read: ends among the dead letters."""
    raise ValueError(f"{path}: '12,4O' is not a number")


@app.task(max_attempts=5, retry={"strategy": "immediate"})
async def send_digest(to: str) -> str:
    """Send the digest of the day."""
    return f"sent to {to}"


@app.task(max_attempts=5, retry={"strategy": "immediate"})
async def charge(order: int, cents: int) -> str:
    """Charge an order: to be enqueued with a key, so that it happens once."""
    return f"order {order}: {cents / 100:.2f}"
