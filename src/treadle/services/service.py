"""The base class of background processes: process due rows, then sleep until more are due.

Any number of processes may run concurrently: SQL decides row by row, under locks. A row that
cannot be processed is logged and skipped for a while, so that it does not stop the others.
"""

import random
import signal
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import anyio
import structlog
from anyio.abc import TaskStatus

from treadle.db.database import Database
from treadle.db.listener import Listener
from treadle.errors import TreadleError
from treadle.process import exit_within, keep_health_file
from treadle.settings import HEARTBEAT_S, Settings

log = structlog.get_logger(__name__)
BATCH = 500
MIN_PAUSE_S = 0.02
# The pause when rows are overdue but could not be processed, for example because of locks.
STUCK_PAUSE_S = 1.0
SKIP_S = 300.0
# Time for the current batch to finish after a stop; then it is cancelled and rolled back.
FINISH_S = 5.0


class Service(ABC):
    """A loop that calls `tick` until it is stopped."""

    name: ClassVar[str]
    channel: ClassVar[str | None] = None
    more_channels: ClassVar[tuple[str, ...]] = ()
    # Time to stop after a signal; then the process exits.
    grace_s = FINISH_S

    def __init__(
        self,
        db: Database,
        *,
        longest_s: float = 5.0,
        listen_url: str | None = None,
        health_file: Path | None = None,
        signals: bool = False,
    ) -> None:
        self._db = db
        self._longest_s = longest_s
        self._listen_url = listen_url
        self._health_file = health_file
        self._signals = signals
        self._wake = anyio.Event()
        self._stopping = False
        self._stopped = anyio.Event()
        self._stopped_at = 0.0
        self._heartbeat_s = HEARTBEAT_S
        self._skipped: dict[UUID, float] = {}
        self.moved = 0

    def configure(self, settings: Settings) -> None:
        """Read the settings; subclasses override this to read their own."""
        self._settings = settings
        self._heartbeat_s = settings.heartbeat_s

    @abstractmethod
    async def tick(self) -> int:
        """Process one batch of due rows; return the number of rows it looked at."""

    @abstractmethod
    async def next_in(self) -> float | None:
        """Return the seconds until the next row is due; None if none is waiting."""

    def stop(self) -> None:
        """Stop after the current batch; cancel the batch if it takes too long."""
        if not self._stopping:
            self._stopped_at = time.monotonic()
        self._stopping = True
        self._stopped.set()
        self._wake.set()

    async def run(self) -> None:
        """Tick until stopped."""
        async with anyio.create_task_group() as helpers:
            if self._signals:
                await helpers.start(self._on_signals)
            log.info(f"{self.name}.started")
            if self._health_file is not None:
                helpers.start_soon(
                    keep_health_file,
                    self._health_file,
                    self._facts,
                    self._db,
                    self._heartbeat_s,
                )
            if self.channel is not None and self._listen_url is not None:
                channels = [self.channel, *self.more_channels]
                listener = Listener(self._listen_url, channels, lambda _: self._wake.set())
                helpers.start_soon(listener.run)
            with anyio.CancelScope() as scope:
                helpers.start_soon(self._cancel_late, scope)
                await self._loop()
            helpers.cancel_scope.cancel()
        log.info(f"{self.name}.stopped", moved=self.moved)

    async def _cancel_late(self, loop: anyio.CancelScope) -> None:
        """Cancel the loop if it has not ended some time after a stop."""
        await self._stopped.wait()
        await anyio.sleep(FINISH_S)
        log.warning(f"{self.name}.batch_cancelled", after_s=FINISH_S)
        loop.cancel()

    def left_of(self, grace_s: float) -> float:
        """Return what is left of a grace period that began with the stop; at least a second."""
        return max(1.0, grace_s - (time.monotonic() - self._stopped_at))

    async def _loop(self) -> None:
        delay = 0.1
        while not self._stopping:
            try:
                seen = await self.tick()
                if seen >= BATCH:
                    continue
                pause = self._pause(await self.next_in(), seen)
                delay = 0.1
            except TreadleError as error:
                log.warning(f"{self.name}.tick_failed", error=str(error))
                pause = random.uniform(delay / 2, delay)
                delay = min(delay * 2, 5.0)
            with anyio.move_on_after(pause):
                await self._wake.wait()
            self._wake = anyio.Event()

    def _pause(self, due_s: float | None, seen: int) -> float:
        """Return how long to sleep: until the next row is due, within bounds."""
        if due_s is None:
            return self._longest_s
        shortest = MIN_PAUSE_S if seen or due_s > 0 else STUCK_PAUSE_S
        return min(max(due_s, shortest), self._longest_s)

    def skip(self) -> list[UUID]:
        """Return the rows that recently could not be processed."""
        now = time.monotonic()
        self._skipped = {row: at for row, at in self._skipped.items() if now - at < SKIP_S}
        return list(self._skipped)

    def skip_row(self, row: UUID, problem: str, key: str = "task_id") -> None:
        """Log a row that could not be processed and skip it for a while."""
        log.error(f"{self.name}.row_skipped", problem=problem, **{key: str(row)})
        self._skipped[row] = time.monotonic()

    async def _on_signals(self, *, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
            task_status.started()
            async for number in received:
                log.info(f"{self.name}.stopping", signal=signal.Signals(number).name)
                if not self._stopping:
                    exit_within(self.grace_s)
                self.stop()

    def _facts(self) -> dict[str, Any]:
        return {"status": "ok", "service": self.name, "moved": self.moved}
