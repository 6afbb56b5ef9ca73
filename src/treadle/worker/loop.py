"""The worker: claims tasks in batches as slots become free, runs handlers, drains on a signal.

It holds no transaction while a handler runs, and continues when PostgreSQL is reachable again.
"""

import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict
from uuid import uuid4

import anyio
import anyio.lowlevel
import structlog
from anyio.abc import TaskStatus

from treadle.artifacts.store import Store
from treadle.db.database import Database
from treadle.db.listener import Listener
from treadle.errors import ConfigurationError, TreadleError, Unavailable, UnknownAgent
from treadle.models import AgentProfile
from treadle.process import exit_within, keep_health_file
from treadle.settings import CLAIM_TTL_S, HEARTBEAT_S
from treadle.worker.buffer import ClaimBuffer
from treadle.worker.completer import Completer
from treadle.worker.executor import Executor
from treadle.worker.lease import LeaseKeeper
from treadle.worker.rate_limits import CHANNEL as SLOWDOWN
from treadle.worker.rate_limits import ClosedGates
from treadle.worker.registry import Registry
from treadle.worker.watchdog import Watchdog

log = structlog.get_logger(__name__)
# Pauses after the first empty polls: a producer may have committed in between.
QUICK_POLLS_S = (0.0, 0.05, 0.2, 1.0)
# Producers notify for 30 seconds after a poll, so a worker that relies on it polls again earlier.
NOTIFY_S = 20.0
# Timeouts while draining: for a claim in progress, for handlers that were cancelled, for results
# that are still to be sent after the grace period, and for going offline.
CLAIM_S = 2.0
STOP_S = 3.0
RESULTS_S = 3.0
OFFLINE_S = 1.0
# When to look for the services that every installation needs, and how often to look again.
ALONE_AFTER_S = 30.0
ALONE_AGAIN_S = 600.0


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The options of a worker; see the settings of the same names."""

    agent: str
    queues: Sequence[str]
    slots: int = 10
    prefetch: int | None = None
    capabilities: Sequence[str] = ()
    models: Sequence[str] = ()
    budget_usd: float | None = None
    poll_s: float = 5.0
    heartbeat_s: float = HEARTBEAT_S
    claim_ttl_s: float = CLAIM_TTL_S
    drain_s: float = 30.0
    listen_url: str | None = None
    health_file: Path | None = None
    until_empty: bool = False
    signals: bool = False
    # The maximum number of connections that it opens, shown to help with max_connections.
    connections: int | None = None


class WorkerSettings(TypedDict, total=False):
    """The options of `app.worker()`, which override the settings."""

    agent: str
    queues: Sequence[str]
    slots: int
    prefetch: int
    capabilities: Sequence[str]
    models: Sequence[str]
    budget_usd: float
    heartbeat_s: float
    claim_ttl_s: float
    drain_s: float
    health_file: Path
    until_empty: bool
    signals: bool


class Worker:
    """Runs the handlers of a registry for the tasks of some queues."""

    def __init__(
        self,
        registry: Registry,
        db: Database,
        options: WorkerOptions,
        *,
        handlers: Database | None = None,
        store: Store | None = None,
    ) -> None:
        if not registry.names():
            raise ConfigurationError(
                "this application has no tasks", hint="Decorate a function with @app.task."
            )
        self._registry = registry
        self._db = db
        self._options = options
        self._buffer = ClaimBuffer(options.slots, options.prefetch)
        self._completer = Completer(db)
        self._closed_gates = ClosedGates()
        self._executor = Executor(
            registry,
            # Transactions of handlers must not use up the connections that leases depend on.
            handlers or db,
            self._completer,
            agent=options.agent,
            slots=options.slots,
            closed_gates=self._closed_gates,
            store=store,
        )
        self._watchdog = Watchdog(
            db, self._executor, agent=options.agent, heartbeat_s=options.heartbeat_s
        )
        self._keeper = LeaseKeeper(
            db,
            self._executor,
            agent=options.agent,
            heartbeat_s=options.heartbeat_s,
            claim_ttl_s=options.claim_ttl_s,
            register=self._register,
            on_status=self._on_status,
            on_renewed=self._watchdog.loop_renewed,
        )
        self._keeper.on_tick = self._release_stale
        self._wake = anyio.Event()
        self._draining = anyio.Event()
        self._slots_left = options.slots
        self._all_done = anyio.Event()
        # The scope of a claim in progress.
        self._claiming: anyio.CancelScope | None = None
        self._drained_at = 0.0

    def drain(self) -> None:
        """Stop claiming, let handlers finish within the grace period, release the rest, stop."""
        if not self._draining.is_set():
            self._drained_at = time.monotonic()
        self._draining.set()
        if self._claiming is not None:
            # Tasks that this call has claimed must be released, so give it time to return them.
            self._claiming.deadline = anyio.current_time() + CLAIM_S
        self._wake.set()
        self._buffer.wake()

    async def run(self) -> None:
        """Run until drained."""
        options = self._options
        await self._db.types.declare(
            self._registry.declaration(),
            self._registry.declared_queues,
            uses=[*self._registry.queues(), *options.queues],
        )
        await self._register()
        with self._watchdog.watching():
            await self._run_helpers()
        counts = {"completed": self._completer.completed, "failed": self._completer.failed}
        log.info("worker.stopped", agent=options.agent, **counts)

    async def _run_helpers(self) -> None:
        options = self._options
        async with anyio.create_task_group() as helpers:
            if options.signals:
                await helpers.start(self._on_signals)
            log.info(
                "worker.started",
                agent=options.agent,
                queues=list(options.queues),
                slots=options.slots,
            )
            helpers.start_soon(self._completer.run)
            helpers.start_soon(self._keeper.run)
            helpers.start_soon(self._watchdog.tick)
            helpers.start_soon(self._warn_if_alone)
            if options.listen_url is not None:
                channels = [f"task_ready.{queue}" for queue in options.queues]
                listener = Listener(
                    options.listen_url,
                    [*channels, "treadle_cancelled", SLOWDOWN],
                    self._on_notify,
                    # A closed gate does not wake the worker: there is less to claim than before.
                    on_payload=lambda _, payload: self._closed_gates.record(payload),
                )
                helpers.start_soon(listener.run)
            if options.health_file is not None:
                helpers.start_soon(
                    keep_health_file,
                    options.health_file,
                    self._facts,
                    self._db,
                    options.heartbeat_s,
                )
            for _ in range(options.slots):
                helpers.start_soon(self._slot)
            await self._claim_loop()
            await self._finish()
            helpers.cancel_scope.cancel()

    async def _claim_loop(self) -> None:
        empty_polls = 0
        while not self._draining.is_set():
            want = self._buffer.wanted()
            if want == 0:
                await self._buffer.room()
                continue
            # Read before the poll: a result that is sent meanwhile may make a task ready again.
            was_empty = self._is_empty()
            claimed = await self._claim(want, idle=empty_polls > 0)
            if claimed:
                empty_polls = 0
                # Let the slots start these tasks before the next call.
                await anyio.lowlevel.checkpoint()
                continue
            if empty_polls > 0 and self._options.until_empty and was_empty:
                break
            await self._sleep(empty_polls)
            empty_polls += 1

    async def _claim(self, want: int, *, idle: bool) -> int:
        """Claim tasks; if the response is lost, repeat the call with the same token."""
        token, first_sent = uuid4(), time.monotonic()
        delay = 0.05
        while not self._draining.is_set():
            sent = time.monotonic()
            if sent - first_sent > self._options.claim_ttl_s:
                # Claims made with this token have expired; it must not be used for them again.
                token, first_sent = uuid4(), sent
            try:
                with anyio.CancelScope() as self._claiming:
                    claims = await self._db.claims.take(
                        self._options.agent,
                        self._options.queues,
                        types=self._registry.names(),
                        limit=want,
                        token=token,
                        idle=idle,
                    )
                if self._claiming.cancelled_caught:
                    log.warning("claim.timed_out", after_s=CLAIM_S)
                    break
            except (Unavailable, UnknownAgent) as error:
                log.warning("claim.failed", error=str(error))
                if isinstance(error, UnknownAgent):
                    self._keeper.wake(beat=True)  # registers the agent again
                with anyio.move_on_after(random.uniform(delay / 2, delay)):
                    await self._draining.wait()
                delay = min(delay * 2, 5.0)
                continue
            if claims:
                self._buffer.put(claims, want, sent)
                self._keeper.wake()
            return len(claims)
        return 0

    async def _sleep(self, empty_polls: int) -> None:
        """Wait for a notification, for at most the pause after so many empty polls."""
        options = self._options
        if empty_polls < len(QUICK_POLLS_S):
            pause = min(QUICK_POLLS_S[empty_polls], options.poll_s)
        else:
            listens = options.listen_url is not None
            longest = min(options.poll_s, NOTIFY_S) if listens else options.poll_s
            pause = longest * random.uniform(0.8, 1.0)
        if options.until_empty:
            pause = min(pause, 0.02)
        if pause == 0:
            return
        with anyio.move_on_after(pause):
            await self._wake.wait()
        self._wake = anyio.Event()
        if self._draining.is_set():
            self._wake.set()

    async def _slot(self) -> None:
        while (claim := await self._buffer.get()) is not None:
            await self._executor.run(claim)
        self._slots_left -= 1
        if self._slots_left == 0:
            self._all_done.set()

    async def _finish(self) -> None:
        """Drain: release tasks that have not started, and wait for handlers in the grace period."""
        for claim in self._buffer.close():
            self._completer.release(claim)
        until = self._drained_at + self._options.drain_s
        with anyio.move_on_after(max(0.0, until - time.monotonic())):
            await self._all_done.wait()
        for running in list(self._executor.running.values()):
            running.stop("drain")
        with anyio.move_on_after(STOP_S):
            await self._all_done.wait()
        with anyio.move_on_after(max(RESULTS_S, until - time.monotonic())) as sending:
            await self._completer.drained()
        if sending.cancelled_caught:
            log.error("worker.results_lost", results=self._completer.waiting)
        try:
            with anyio.move_on_after(OFFLINE_S):
                await self._db.agents.set_status(self._options.agent, "offline")
        except TreadleError as error:
            log.warning("agent.offline_failed", error=str(error))

    async def _on_signals(self, *, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
            task_status.started()
            async for number in received:
                if not self._draining.is_set():
                    log.info("worker.draining", signal=signal.Signals(number).name)
                    exit_within(self._options.drain_s + STOP_S + RESULTS_S + OFFLINE_S)
                    self.drain()
                    continue
                log.info("worker.cancelling", signal=signal.Signals(number).name)
                for running in list(self._executor.running.values()):
                    running.stop("drain")

    async def _warn_if_alone(self) -> None:
        """Warn when no reaper or no promoter is connected to the database."""
        await anyio.sleep(ALONE_AFTER_S)
        while True:
            try:
                missing = {"reaper", "promoter"} - await self._db.agents.running_services()
            except TreadleError:
                missing = set()
            if missing:
                log.warning(
                    "worker.services_missing",
                    missing=sorted(missing),
                    hint="Without them retries, delayed tasks and tasks of crashed workers wait. "
                    "Start the missing services, or start the worker with --with-services.",
                )
            await anyio.sleep(ALONE_AGAIN_S)

    async def _register(self) -> None:
        options = self._options
        await self._db.agents.register(
            AgentProfile(
                id=options.agent,
                capabilities=list(options.capabilities),
                models=list(options.models),
                max_concurrent_tasks=options.slots,
                claims_ahead=True,
                budget_usd=options.budget_usd,
                queues=list(options.queues),
                task_types=self._registry.names(),
                heartbeat_s=options.heartbeat_s,
                claim_ttl_s=options.claim_ttl_s,
                meta={"slots": options.slots, "connections": options.connections},
            )
        )

    def _on_status(self, status: str) -> None:
        if status != "active" and not self._draining.is_set():
            log.info("worker.draining", agent_status=status)
            self.drain()

    def _on_notify(self, channel: str | None) -> None:
        if channel == "treadle_cancelled":
            self._keeper.wake(beat=True)
        else:
            self._wake.set()

    def _release_stale(self) -> None:
        for claim in self._buffer.take_stale(self._options.claim_ttl_s / 2):
            self._completer.release(claim)

    def _is_empty(self) -> bool:
        return not (self._executor.running or len(self._buffer) or self._completer.waiting)

    def _facts(self) -> dict[str, Any]:
        return {
            "status": "draining" if self._draining.is_set() else "ok",
            "agent": self._options.agent,
            "running": len(self._executor.running),
            "waiting": len(self._buffer),
            "completed": self._completer.completed,
            "failed": self._completer.failed,
        }
