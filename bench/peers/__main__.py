"""Measure an adapter: `python -m bench.peers NAME enqueue|work|serve|produce`.

Runs in the peer's own environment, so it imports the standard library, psycopg and, where it is
installed, uvloop. The order comes as JSON in the variable BENCH, the answer is one line of JSON.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import json
import os
import platform
import random
import resource
import sys
import time
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

BATCH = 1000
ORDER: dict[str, Any] = json.loads(os.environ["BENCH"])
URL: str = ORDER["url"]
N: int = ORDER["n"]
SLOTS: int = ORDER["slots"]


async def enqueue(adapter: Any) -> None:
    """Install the schema, then time the bulk enqueue of N jobs."""
    await adapter.install(URL)
    async with adapter.producer(URL) as push:
        started = time.perf_counter()
        for first in range(0, N, BATCH):
            await push(range(first, min(N, first + BATCH)))
        elapsed = time.perf_counter() - started
        answer(enqueue_s=elapsed, version=importlib.metadata.version(adapter.DISTRIBUTION))


async def work(adapter: Any) -> None:
    """Time one worker from its start until the last job is committed as finished."""
    handled = 0
    all_handled = asyncio.Event()

    def handle(_number: int) -> None:
        nonlocal handled
        handled += 1
        if handled >= N:
            all_handled.set()

    started = time.perf_counter()
    async with adapter.worker(URL, SLOTS, handle):
        # The database is asked only once every handler was called, so asking disturbs nothing.
        await all_handled.wait()
        handler_s = time.perf_counter() - started
        await asyncio.to_thread(wait_until_finished, adapter.UNFINISHED)
        done_s = time.perf_counter() - started
        answer(handler_s=handler_s, done_s=done_s, handled=handled, peak_mb=peak_mb())


async def serve(adapter: Any) -> None:
    """Run a worker until stdin closes; answer when each job reached its handler."""
    starts: list[tuple[int, float]] = []

    def handle(number: int) -> None:
        starts.append((number, time.monotonic()))

    async with adapter.worker(URL, SLOTS, handle):
        answer(ready=True)
        await asyncio.to_thread(sys.stdin.read)
        answer(starts=starts, peak_mb=peak_mb())


async def produce(adapter: Any) -> None:
    """Push N single jobs with pauses; answer when each push began.

    The monotonic clock is one for all processes of a machine, so the times of `serve` compare.
    """
    sent: list[tuple[int, float]] = []
    async with adapter.producer(URL) as push:
        for number in range(N):
            sent.append((number, time.monotonic()))
            await push(range(number, number + 1))
            await asyncio.sleep(ORDER["pause_s"] * random.uniform(0.5, 1.5))
    answer(sent=sent)


def wait_until_finished(unfinished: str) -> None:
    import psycopg

    with psycopg.connect(URL, autocommit=True) as conn:
        while True:
            row = conn.execute(unfinished).fetchone()
            if row is None or not row[0]:
                return
            time.sleep(0.002)


def peak_mb() -> float:
    """The highest resident size so far. On Linux getrusage would count the parent's pages too."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def answer(**fields: Any) -> None:
    print("BENCH " + json.dumps({"python": platform.python_version(), **fields}), flush=True)


def run(main: Coroutine[Any, Any, None], *, uvloop: bool) -> None:
    factory = None
    if uvloop:
        with suppress(ImportError):
            factory = importlib.import_module("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main)


if __name__ == "__main__":
    name, verb = sys.argv[1:]
    module = importlib.import_module(f"bench.peers.{name}")
    verbs = {"enqueue": enqueue, "work": work, "serve": serve, "produce": produce}
    run(verbs[verb](module), uvloop=getattr(module, "UVLOOP", True))
    # The result is printed; threads and pools that a peer leaves behind must not block the exit.
    sys.stdout.flush()
    os._exit(0)
