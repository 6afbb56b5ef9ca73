"""Long polls: requests that wait for tasks to claim, or for the end of a task.

One LISTEN connection serves all of them, and no request holds a connection of the pool while it
waits. NOTIFY is a hint only: requests also poll.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

import anyio
from fastapi import FastAPI, Request

from treadle.api.access import check_token_valid
from treadle.app import Treadle
from treadle.db.listener import Listener

LONGEST_S = 30
# The first pauses: a task may be enqueued just before its producer knows that a request waits.
QUICK_LOOKS_S = (0.0, 0.05, 0.2, 1.0)
# Shorter than the mark lasts.
MARK_S = 20.0
# A notification wakes all waiting requests; they must not use the whole pool.
LOOKS_AT_ONCE = 2
Found = TypeVar("Found")


class _Waiter:
    __slots__ = ("channels", "event")

    def __init__(self, channels: frozenset[str]) -> None:
        self.channels = channels
        self.event = anyio.Event()

    async def sleep(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self.event.wait()
        self.event = anyio.Event()


class LongPoll:
    """Wakes requests that wait for tasks of a queue."""

    def __init__(self, url: str | None, poll_s: float) -> None:
        self._url = url
        self._longest_s = poll_s if url is None else min(poll_s, MARK_S)
        self._channels: set[str] = set()
        self._more = anyio.Event()
        self._waiters: set[_Waiter] = set()
        self._looking = anyio.Semaphore(LOOKS_AT_ONCE)
        self._closed = False

    async def run(self) -> None:
        """Listen on the queues that requests have asked for, until cancelled."""
        while True:
            await self._more.wait()
            self._more = anyio.Event()
            if self._url is None:
                continue
            listener = Listener(self._url, sorted(self._channels), self._on_notify)
            async with anyio.create_task_group() as listening:
                listening.start_soon(listener.run)
                await self._more.wait()
                listening.cancel_scope.cancel()
            # The next listener reports when it listens, which wakes all requests.

    def close(self) -> None:
        """End all long polls, because the server stops."""
        self._closed = True
        self._on_notify(None)

    async def poll_until(
        self,
        request: Request,
        queues: Sequence[str],
        seconds: float,
        look: Callable[[], Awaitable[Sequence[Found]]],
    ) -> Sequence[Found]:
        """Call `look` now and after each notification, until it finds something or time is up.

        A call of `look` is never cancelled, so that what it claimed is known. The caller may have
        disconnected by then.
        """
        found: Sequence[Found] = ()
        until = time.monotonic() + seconds
        with self._waiter(queues) as waiter:
            async with cancel_on_disconnect(request):
                looks = 0
                while not self._closed:
                    await check_token_valid(request)
                    async with self._looking:
                        with anyio.CancelScope(shield=True):
                            found = await look()
                    left = until - time.monotonic()
                    if found or left <= 0:
                        break
                    await waiter.sleep(min(self._pause(looks), left))
                    looks += 1
        return found

    def _pause(self, looks: int) -> float:
        if looks < len(QUICK_LOOKS_S):
            return min(QUICK_LOOKS_S[looks], self._longest_s)
        return self._longest_s * random.uniform(0.8, 1.0)

    @contextmanager
    def _waiter(self, queues: Sequence[str]) -> Iterator[_Waiter]:
        waiter = _Waiter(frozenset(f"task_ready.{queue}" for queue in queues))
        if not waiter.channels <= self._channels:
            self._channels |= waiter.channels
            self._more.set()
        self._waiters.add(waiter)
        try:
            yield waiter
        finally:
            self._waiters.discard(waiter)

    def _on_notify(self, channel: str | None) -> None:
        for waiter in self._waiters:
            if channel is None or channel in waiter.channels:
                waiter.event.set()


@asynccontextmanager
async def cancel_on_disconnect(request: Request) -> AsyncIterator[None]:
    """Cancel the block when the client disconnects."""

    async def watch(scope: anyio.CancelScope) -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    with anyio.CancelScope() as scope:
        watcher = asyncio.create_task(watch(scope))
        try:
            yield
        finally:
            watcher.cancel()


@asynccontextmanager
async def long_poll_lifespan(app: FastAPI, treadle: Treadle) -> AsyncIterator[None]:
    """Run the long polls of a server."""
    settings = treadle.settings
    url = (settings.listen_url or treadle.url) if settings.notify else None
    app.state.long_poll = LongPoll(url, settings.poll_s)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(app.state.long_poll.run)
        yield
        tasks.cancel_scope.cancel()


def long_poll_of(request: Request) -> LongPoll:
    """The long polls of the server that handles a request."""
    long_poll: LongPoll = request.app.state.long_poll
    return long_poll
