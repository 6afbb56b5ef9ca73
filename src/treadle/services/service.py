"""The one shape of a background process: do what is due, sleep until something is.

Any number may run side by side: what to do is decided in SQL, row by row, under locks. A row that
cannot be moved is logged, left out from then on, and does not stop the others.
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
from treadle.health import keep_health_file
from treadle.settings import Settings
from treadle.shutdown import exit_within

log = structlog.get_logger(__name__)
BATCH = 500
SHORTEST_S = 0.02
STUCK_S = 1.0
FORGET_AFTER_S = 300.0
# How long the batch in hand may take after a stop; then it is cut off, and PostgreSQL undoes it.
FINISH_S = 5.0


class Service(ABC):
    """A loop around one tick."""

    name: ClassVar[str]
    channel: ClassVar[str | None] = None
    also: ClassVar[tuple[str, ...]] = ()
    # How long it may take to end.
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
        self._heartbeat_s = 30.0
        self._bad: dict[UUID, float] = {}
        self.moved = 0

    def configure(self, settings: Settings) -> None:
        """Take the settings; those that are for this one alone are read where it overrides."""
        self._settings = settings
        self._heartbeat_s = settings.heartbeat_s

    @abstractmethod
    async def tick(self) -> int:
        """Move one batch of what is due; returns how many rows it looked at."""

    @abstractmethod
    async def next_in(self) -> float | None:
        """Seconds until something falls due; None when nothing is waiting."""

    def stop(self) -> None:
        """End after the batch in hand, or without it when it takes too long."""
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
                channels = [self.channel, *self.also]
                listener = Listener(self._listen_url, channels, lambda _: self._wake.set())
                helpers.start_soon(listener.run)
            with anyio.CancelScope() as scope:
                helpers.start_soon(self._cut_off, scope)
                await self._loop()
            helpers.cancel_scope.cancel()
        log.info(f"{self.name}.stopped", moved=self.moved)

    async def _cut_off(self, loop: anyio.CancelScope) -> None:
        """End the loop a while after a stop, whatever it waits for."""
        await self._stopped.wait()
        await anyio.sleep(FINISH_S)
        log.warning(f"{self.name}.cut_off", after_s=FINISH_S)
        loop.cancel()

    def left_of(self, grace_s: float) -> float:
        """What is left of a grace that began with the stop; at least a second."""
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
                log.warning(f"{self.name}.waiting", error=str(error))
                pause = random.uniform(delay / 2, delay)
                delay = min(delay * 2, 5.0)
            with anyio.move_on_after(pause):
                await self._wake.wait()
            self._wake = anyio.Event()

    def _pause(self, due_s: float | None, seen: int) -> float:
        """Sleep until the next is due; what is overdue and did not move is held by somebody."""
        if due_s is None:
            return self._longest_s
        shortest = SHORTEST_S if seen or due_s > 0 else STUCK_S
        return min(max(due_s, shortest), self._longest_s)

    def skip(self) -> list[UUID]:
        """Rows that could not be moved a short while ago."""
        now = time.monotonic()
        self._bad = {row: at for row, at in self._bad.items() if now - at < FORGET_AFTER_S}
        return list(self._bad)

    def skip_row(self, row: UUID, problem: str, key: str = "task_id") -> None:
        log.error(f"{self.name}.bad_row", problem=problem, **{key: str(row)})
        self._bad[row] = time.monotonic()

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
