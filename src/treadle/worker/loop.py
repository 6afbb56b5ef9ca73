"""The worker: claims in batches as slots free up, runs handlers, drains on a signal.

It holds no transaction while a handler runs, and comes back by itself when PostgreSQL does.
"""

import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import anyio.lowlevel
import structlog
from anyio.abc import TaskStatus

from treadle.artifacts.store import Store
from treadle.db.database import Database
from treadle.db.listener import Listener
from treadle.errors import ConfigurationError, TreadleError, Unavailable, UnknownAgent
from treadle.health import keep_health_file
from treadle.models import AgentProfile
from treadle.shutdown import exit_within
from treadle.worker.buffer import ClaimBuffer
from treadle.worker.completer import Completer
from treadle.worker.executor import Executor
from treadle.worker.lease import LeaseKeeper
from treadle.worker.rate_limits import CHANNEL as SLOWDOWN
from treadle.worker.rate_limits import ClosedGates
from treadle.worker.registry import Registry

log = structlog.get_logger(__name__)
# After an empty look: a few quick ones, for a producer that committed in between, then the poll.
QUICK_LOOKS_S = (0.0, 0.05, 0.2, 1.0)
# A look asks producers to notify for 30 seconds: who relies on that has to look again by then.
MARK_S = 20.0
# Once it drains: the longest wait for an answer to a claim, for handlers that were told to stop,
# for answers to arrive although the grace is over, and for signing off.
ASK_S = 2.0
STOP_S = 3.0
ANSWER_S = 3.0
SIGN_OFF_S = 1.0


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker runs."""

    agent: str
    queues: Sequence[str]
    slots: int = 10
    prefetch: int | None = None
    capabilities: Sequence[str] = ()
    poll_s: float = 5.0
    heartbeat_s: float = 30.0
    claim_ttl_s: float = 60.0
    drain_s: float = 30.0
    listen_url: str | None = None
    health_file: Path | None = None
    until_empty: bool = False
    signals: bool = False
    # The most connections that it may open; for people who plan max_connections.
    connections: int | None = None


class Worker:
    """Runs the handlers of a registry on the tasks of some queues."""

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
                "this application has no tasks", hint="Add one: @app.task() above a function."
            )
        self._registry = registry
        self._db = db
        self._options = options
        self._buffer = ClaimBuffer(options.slots, options.prefetch)
        self._completer = Completer(db)
        self._closed_gates = ClosedGates()
        self._executor = Executor(
            registry,
            # Transactions of handlers must not take the connections that leases depend on.
            handlers or db,
            self._completer,
            agent=options.agent,
            slots=options.slots,
            closed_gates=self._closed_gates,
            store=store,
        )
        self._keeper = LeaseKeeper(
            db,
            self._executor,
            agent=options.agent,
            heartbeat_s=options.heartbeat_s,
            claim_ttl_s=options.claim_ttl_s,
            register=self._register,
            on_status=self._on_status,
        )
        self._keeper.on_tick = self._give_back_stale
        self._wake = anyio.Event()
        self._draining = anyio.Event()
        self._slots_left = options.slots
        self._all_done = anyio.Event()
        # Who asks for tasks, while it does.
        self._asking: anyio.CancelScope | None = None
        self._drained_at = 0.0

    def drain(self) -> None:
        """Stop claiming, finish what runs within the grace, give back the rest, stop."""
        if not self._draining.is_set():
            self._drained_at = time.monotonic()
        self._draining.set()
        if self._asking is not None:
            # What a call under way claims is ours: it gets a moment to tell, and no more.
            self._asking.deadline = anyio.current_time() + ASK_S
        self._wake.set()
        self._buffer.nudge()

    async def run(self) -> None:
        """Work until drained."""
        options = self._options
        await self._db.types.declare(
            self._registry.declaration(), [*self._registry.queues(), *options.queues]
        )
        await self._register()
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
            if options.listen_url is not None:
                channels = [f"task_ready.{queue}" for queue in options.queues]
                listener = Listener(
                    options.listen_url,
                    [*channels, "task_cancelled", SLOWDOWN],
                    self._heard,
                    # Wakes nobody: there is less to do than before.
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
        ended = {"completed": self._completer.completed, "failed": self._completer.failed}
        log.info("worker.stopped", agent=options.agent, **ended)

    async def _claim_loop(self) -> None:
        looks = 0
        while not self._draining.is_set():
            want = self._buffer.wanted()
            if want == 0:
                await self._buffer.room()
                continue
            # Before the look: an answer on its way meanwhile may make a task ready again.
            was_empty = self._is_empty()
            claimed = await self._claim(want, idle=looks > 0)
            if claimed:
                looks = 0
                # The slots start what there is before the next question takes its time.
                await anyio.lowlevel.checkpoint()
                continue
            if looks > 0 and self._options.until_empty and was_empty:
                break
            await self._sleep(looks)
            looks += 1

    async def _claim(self, want: int, *, idle: bool) -> int:
        """Claim; an answer lost on the way is asked for again with the same token."""
        token, asked_at = uuid4(), time.monotonic()
        delay = 0.05
        while not self._draining.is_set():
            received = time.monotonic()
            if received - asked_at > self._options.claim_ttl_s:
                # What it may have claimed has run out; a task must not get its old token again.
                token, asked_at = uuid4(), received
            try:
                with anyio.CancelScope() as self._asking:
                    claims = await self._db.claims.take(
                        self._options.agent,
                        self._options.queues,
                        types=self._registry.names(),
                        limit=want,
                        token=token,
                        idle=idle,
                    )
                if self._asking.cancelled_caught:
                    log.warning("claim.cut_off", after_s=ASK_S)
                    break
            except (Unavailable, UnknownAgent) as error:
                log.warning("claim.waiting", error=str(error))
                if isinstance(error, UnknownAgent):
                    self._keeper.wake(beat=True)  # it registers again
                with anyio.move_on_after(random.uniform(delay / 2, delay)):
                    await self._draining.wait()
                delay = min(delay * 2, 5.0)
                continue
            if claims:
                self._buffer.put(claims, want, received)
                self._keeper.wake()
            return len(claims)
        return 0

    async def _sleep(self, looks: int) -> None:
        """Wait for a notification, at most as long as this look allows."""
        options = self._options
        if looks < len(QUICK_LOOKS_S):
            pause = min(QUICK_LOOKS_S[looks], options.poll_s)
        else:
            longest = options.poll_s if options.listen_url is None else min(options.poll_s, MARK_S)
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
        """Drain: what has not started goes back at once, what runs gets its grace."""
        for claim in self._buffer.close():
            self._completer.release(claim)
        until = self._drained_at + self._options.drain_s
        with anyio.move_on_after(max(0.0, until - time.monotonic())):
            await self._all_done.wait()
        for running in list(self._executor.running.values()):
            running.stop("drain")
        with anyio.move_on_after(STOP_S):
            await self._all_done.wait()
        with anyio.move_on_after(max(ANSWER_S, until - time.monotonic())) as sending:
            await self._completer.drained()
        if sending.cancelled_caught:
            log.error("worker.answers_lost", answers=self._completer.waiting)
        try:
            with anyio.move_on_after(SIGN_OFF_S):
                await self._db.agents.set_status(self._options.agent, "offline")
        except TreadleError as error:
            log.warning("agent.not_signed_off", error=str(error))

    async def _on_signals(self, *, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
            task_status.started()
            async for number in received:
                if not self._draining.is_set():
                    log.info("worker.draining", signal=signal.Signals(number).name)
                    exit_within(self._options.drain_s + STOP_S + ANSWER_S + SIGN_OFF_S)
                    self.drain()
                    continue
                log.info("worker.cancelling", signal=signal.Signals(number).name)
                for running in list(self._executor.running.values()):
                    running.stop("drain")

    async def _register(self) -> None:
        options = self._options
        await self._db.agents.register(
            AgentProfile(
                id=options.agent,
                capabilities=list(options.capabilities),
                queues=list(options.queues),
                task_types=self._registry.names(),
                heartbeat_s=options.heartbeat_s,
                claim_ttl_s=options.claim_ttl_s,
                meta={"slots": options.slots, "connections": options.connections},
            )
        )

    def _on_status(self, status: str) -> None:
        if status != "active" and not self._draining.is_set():
            log.info("worker.draining", because=f"agent is {status}")
            self.drain()

    def _heard(self, channel: str | None) -> None:
        if channel == "task_cancelled":
            self._keeper.wake(beat=True)
        else:
            self._wake.set()

    def _give_back_stale(self) -> None:
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
