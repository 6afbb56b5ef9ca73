"""Notice a handler that blocks the event loop, and keep the leases of the worker meanwhile.

The event loop counts four times a second, and a thread reads the count. When it has not changed for
a second, the thread logs a warning with the task and the line that blocks, and sends the heartbeats
that the event loop cannot send, on a connection of its own. It does not renew a task that has
exceeded its timeout, so the reaper ends that attempt.
"""

import asyncio
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import structlog

from treadle.db.database import Database
from treadle.worker.context import current_task_id
from treadle.worker.executor import Executor, RunningTask

log = structlog.get_logger(__name__)
TICK_S = 0.25
BLOCKED_TICKS = 4
RENEW_TIMEOUT_S = 10.0
JOIN_S = 2.0
# Frames in these folders do not help the author of a handler.
_LIBRARIES = tuple(
    {
        *(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        str(Path(__file__).parents[1]),
    }
)


class Watchdog:
    """A thread that watches the event loop of a worker."""

    def __init__(self, db: Database, executor: Executor, *, agent: str, heartbeat_s: float) -> None:
        self._db = db
        self._executor = executor
        self._agent = agent
        self._heartbeat_s = heartbeat_s
        self._renewed_at = time.monotonic()
        self._ticks = 0
        self._stop = threading.Event()
        self._renewing: tuple[asyncio.AbstractEventLoop, anyio.CancelScope] | None = None
        self._warned: RunningTask | None = None

    def loop_renewed(self) -> None:
        """Record that the event loop has renewed the leases itself."""
        self._renewed_at = time.monotonic()

    async def tick(self) -> None:
        """Show that the event loop runs, until cancelled."""
        while True:
            self._ticks += 1
            await anyio.sleep(TICK_S)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Run the thread; call this on the event loop that it watches."""
        thread = threading.Thread(
            target=self._watch,
            args=(asyncio.get_running_loop(), threading.get_ident()),
            name="treadle-watchdog",
            daemon=True,
        )
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            renewing = self._renewing
            if renewing is not None:
                # The loop of the thread may have been closed meanwhile.
                with suppress(RuntimeError):
                    renewing[0].call_soon_threadsafe(renewing[1].cancel)
            thread.join(JOIN_S)

    def _watch(self, loop: asyncio.AbstractEventLoop, thread_id: int) -> None:
        # Counts, not times: a process that was stopped for an hour has not missed a tick.
        seen, missed, try_at = -1, 0, 0.0
        while not self._stop.wait(TICK_S):
            if self._ticks != seen:
                seen, missed = self._ticks, 0
                continue
            missed += 1
            if missed < BLOCKED_TICKS:
                continue
            if missed == BLOCKED_TICKS:
                self._warn(loop, sys._current_frames().get(thread_id))
            if time.monotonic() < try_at or not self._is_due():
                continue
            try:
                asyncio.run(self._renew())
            except Exception as error:
                log.warning("heartbeat.failed", error=str(error) or type(error).__name__)
                try_at = time.monotonic() + min(1.0, self._heartbeat_s / 3)

    def _warn(self, loop: asyncio.AbstractEventLoop, frame: FrameType | None) -> None:
        fields: dict[str, Any] = {
            "line": _line(frame),
            "hint": "Await the call, or declare the handler with def: it then runs in a thread.",
        }
        running = self._blocking_task(loop, frame)
        if running is None:
            log.warning("worker.event_loop_blocked", **fields)
        elif running is not self._warned:
            self._warned, claim = running, running.claim
            log.warning(
                "task.blocks_event_loop",
                type=claim.type,
                task_id=str(claim.id),
                attempt=claim.attempt,
                **fields,
            )

    def _blocking_task(
        self, loop: asyncio.AbstractEventLoop, frame: FrameType | None
    ) -> RunningTask | None:
        """Return the task whose code the event loop runs."""
        while frame is not None:
            if frame.f_code is Executor.run.__code__:
                found: RunningTask | None = frame.f_locals.get("running")
                return found
            frame = frame.f_back
        running = list(self._executor.running.values())
        current = asyncio.current_task(loop)
        if current is None:
            return None
        # An async task that the handler has started; Python 3.11 does not tell whose.
        if not hasattr(current, "get_context"):
            return running[0] if len(running) == 1 else None
        task_id = current.get_context().get(current_task_id)
        return next((each for each in running if each.claim.id == task_id), None)

    def _is_due(self) -> bool:
        if time.monotonic() >= self._renewed_at + self._heartbeat_s:
            return True
        return any(not each.started for each in self._held())

    def _held(self) -> list[RunningTask]:
        """Return the running tasks that have a claim, as far as the worker knows."""
        return [
            each
            for each in list(self._executor.running.values())
            if each.stop_reason is None and not each.context.suspending
        ]

    async def _renew(self) -> None:
        """Start and renew the tasks of the worker; the event loop handles lost claims later."""
        with anyio.fail_after(RENEW_TIMEOUT_S) as scope:
            self._renewing = asyncio.get_running_loop(), scope
            try:
                async with self._db.separate("treadle-watchdog") as db:
                    new = [each for each in self._held() if not each.started]
                    if new:
                        await db.claims.start([(each.claim.id, each.claim.token) for each in new])
                        for each in new:
                            each.started = True
                    tasks = [each for each in self._held() if not each.is_overdue]
                    if tasks:
                        progress = [each.context.unsent_progress for each in tasks]
                        await db.claims.heartbeat(
                            [(each.claim.id, each.claim.token) for each in tasks], progress
                        )
                        for each, stored in zip(tasks, progress, strict=True):
                            each.context.confirm_progress(stored)
                    await db.agents.heartbeat(self._agent)
                self._renewed_at = time.monotonic()
            finally:
                self._renewing = None


def _line(frame: FrameType | None) -> str:
    """Return the innermost line outside of libraries."""
    innermost = frame
    while frame is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame = frame.f_back
    frame = frame or innermost
    if frame is None:
        return "unknown"
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
