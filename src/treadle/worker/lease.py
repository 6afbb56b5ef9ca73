"""Keep the leases of running tasks: mark them as started, send heartbeats, stop lost claims.

One batched call serves all tasks of the worker. A short task needs none of this: it goes from
claimed to completed without a separate start.
"""

import time
from collections.abc import Awaitable, Callable, Iterable
from uuid import UUID

import anyio
import structlog

from treadle.db.database import Database
from treadle.errors import TreadleError, UnknownAgent
from treadle.worker.executor import Executor, RunningTask

log = structlog.get_logger(__name__)
START_AFTER_S = 0.5
# Progress is sent without waiting for the next heartbeat, at most this often.
PROGRESS_S = 1.0


class LeaseKeeper:
    """Starts and renews the leases of running tasks."""

    def __init__(
        self,
        db: Database,
        executor: Executor,
        *,
        agent: str,
        heartbeat_s: float,
        claim_ttl_s: float,
        register: Callable[[], Awaitable[None]],
        on_status: Callable[[str], None],
        on_renewed: Callable[[], None],
    ) -> None:
        self._db = db
        self._executor = executor
        self._agent = agent
        self._heartbeat_s = heartbeat_s
        # A claim may wait half its TTL for a slot; it must be started well within the other half.
        self._start_after_s = min(START_AFTER_S, heartbeat_s, claim_ttl_s / 8)
        self._register = register
        self._on_status = on_status
        self._on_renewed = on_renewed
        self._wake = anyio.Event()
        self._beat_now = False
        self.on_tick: Callable[[], None] = lambda: None

    def wake(self, *, beat: bool = False) -> None:
        """Check the running tasks now; with `beat`, send a heartbeat as well."""
        self._beat_now = self._beat_now or beat
        self._wake.set()

    async def run(self) -> None:
        """Keep the leases until cancelled."""
        next_beat = time.monotonic() + self._heartbeat_s
        next_progress = 0.0
        while True:
            pause = next_beat - time.monotonic()
            if self._executor.running:
                pause = min(pause, self._start_after_s)
            with anyio.move_on_after(max(0.0, pause)):
                self._wake = anyio.Event()
                await self._wake.wait()
            self.on_tick()
            try:
                await self._mark_started()
                if self._beat_now or time.monotonic() >= next_beat:
                    self._beat_now = False
                    await self._beat()
                    next_beat = time.monotonic() + self._heartbeat_s
                elif time.monotonic() >= next_progress and await self._send_progress():
                    next_progress = time.monotonic() + PROGRESS_S
            except TreadleError as error:
                log.warning("heartbeat.failed", error=str(error))
                await anyio.sleep(min(1.0, self._heartbeat_s / 3))

    async def _mark_started(self) -> None:
        limit = time.monotonic() - self._start_after_s
        due = self._latest(
            running
            for running in self._executor.running.values()
            if not running.started and running.context.started <= limit
        )
        if not due:
            return
        verdicts = await self._db.claims.start(
            [(running.claim.id, running.claim.token) for running in due]
        )
        for running in due:
            running.started = True
            self._apply_verdict(running, verdicts.get(running.claim.id, "lost"))

    async def _beat(self) -> None:
        started = self._latest(
            running for running in self._executor.running.values() if running.started
        )
        if started:
            await self._renew(started)
        self._on_renewed()
        try:
            self._on_status(await self._db.agents.heartbeat(self._agent))
        except UnknownAgent:
            log.warning("agent.unknown", agent=self._agent)
            await self._register()

    async def _send_progress(self) -> bool:
        """Send new progress; return whether there was any."""
        told = self._latest(
            running
            for running in self._executor.running.values()
            if running.context.unsent_progress is not None
        )
        if told:
            await self._renew(told)
        return bool(told)

    async def _renew(self, tasks: list[RunningTask]) -> None:
        """Send one heartbeat with the progress of these tasks."""
        progress = [running.context.unsent_progress for running in tasks]
        verdicts = await self._db.claims.heartbeat(
            [(running.claim.id, running.claim.token) for running in tasks], progress
        )
        for running, stored in zip(tasks, progress, strict=True):
            running.context.confirm_progress(stored)
            self._apply_verdict(running, verdicts.get(running.claim.id, "lost"))

    def _latest(self, found: Iterable[RunningTask]) -> list[RunningTask]:
        """Return one claim per task; stop an older claim of the same task by this worker."""
        by_task: dict[UUID, RunningTask] = {}
        for running in list(found):
            older = by_task.get(running.claim.id)
            by_task[running.claim.id] = running
            if older is not None:
                self._apply_verdict(older, "lost")
        return list(by_task.values())

    def _apply_verdict(self, running: RunningTask, verdict: str) -> None:
        """Stop the handler of a claim that was lost, unless the task has released it to wait."""
        claim = running.claim
        if running.context.suspending:
            return
        if verdict != "ok" and (claim.id, claim.token) in self._executor.running:
            log.warning("task.claim_lost", task_id=str(claim.id), verdict=verdict)
            running.stop(verdict)
