"""Heartbeats beside the work, and the news that a claim was lost."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

from treadle.client.errors import ClaimLost, ClientError

log = logging.getLogger(__name__)
JOIN_S = 2.0


class _Base:
    """What both kinds tell the work beside them."""

    def __init__(self, every_s: float) -> None:
        if every_s <= 0:
            raise ValueError("heartbeats are some time apart")
        self._every_s = every_s
        self._error: ClaimLost | None = None

    @property
    def lost(self) -> bool:
        """Whether another claim has the task now: what is done about it is done in vain."""
        return self._error is not None

    def check(self) -> None:
        """Raise ClaimLost when the claim was lost; for the steps of long work."""
        if self._error is not None:
            raise self._error


class Alive(_Base):
    """Heartbeats from a thread."""

    def __init__(self, beat: Callable[[], bool], every_s: float) -> None:
        super().__init__(every_s)
        self._beat = beat
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="treadle-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        # One that waits for an answer ends by itself, and keeps no program alive.
        self._thread.join(JOIN_S)

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            try:
                if not self._beat():
                    return
            except ClaimLost as error:
                self._error = error
                return
            except ClientError as error:
                log.warning("no heartbeat: %s", error)


class AsyncAlive(_Base):
    """Heartbeats from a task of the event loop."""

    def __init__(self, beat: Callable[[], Awaitable[bool]], every_s: float) -> None:
        super().__init__(every_s)
        self._beat = beat
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            try:
                if not await self._beat():
                    return
            except ClaimLost as error:
                self._error = error
                return
            except ClientError as error:
                log.warning("no heartbeat: %s", error)
