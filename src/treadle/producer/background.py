"""An event loop in a thread of its own, for callers without a running event loop.

A process has one such thread. It starts with the first call and ends with the process; a forked
process starts its own. Connections belong to the loop that opened them, so calls from sync code
share the connections of this loop.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from treadle.errors import Unavailable

T = TypeVar("T")
# How long the process waits at exit for connections to close.
CLOSE_S = 5.0

# The running event loop of this thread, or None.
running_loop = asyncio._get_running_loop
_starting = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_owners: "WeakSet[Owner]" = WeakSet()


class Owner(Protocol):
    """What has connections on the background loop: an application."""

    async def close(self) -> None: ...


def run_in_background(work: Coroutine[Any, Any, T], *, timeout: float | None, owner: Owner) -> T:
    """Run a coroutine on the background loop and wait for its result.

    The owner of its connections is closed when the process ends.
    """
    loop = _background_loop()
    _owners.add(owner)
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result(timeout)
    except TimeoutError:
        if future.done():
            raise
        future.cancel()
        raise Unavailable(
            f"no result within {timeout:g} s",
            hint="Check that PostgreSQL runs and that the URL is right: treadle doctor",
        ) from None
    except BaseException:
        # A signal such as Ctrl-C interrupts the wait; the work ends, too.
        future.cancel()
        raise


def _background_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _starting:
        if _loop is None:
            loop = asyncio.new_event_loop()
            threading.Thread(
                target=_serve, args=(loop,), name="treadle-producer", daemon=True
            ).start()
            atexit.register(_stop)
            _loop = loop
        return _loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()


def _stop() -> None:
    """Close the connections and the loop when the process ends."""
    loop = _loop
    if loop is None:
        return

    async def close_all() -> None:
        for owner in list(_owners):
            await owner.close()

    future = asyncio.run_coroutine_threadsafe(close_all(), loop)
    try:
        future.result(CLOSE_S)
    except Exception:
        # The process ends in any case, and PostgreSQL notices lost connections.
        future.cancel()
    loop.call_soon_threadsafe(loop.stop)


def _forget() -> None:
    """Start anew in a forked process: threads and connections belong to its parent."""
    global _starting, _loop
    _starting = threading.Lock()
    _loop = None
    _owners.clear()
    atexit.unregister(_stop)


os.register_at_fork(after_in_child=_forget)
