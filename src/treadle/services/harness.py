"""The harness: calls a callback with the decisions of agents, nudges agents, requeues stale tasks.

A decision is written to the action log before the callback is called. If the process dies
meanwhile, the action is marked as interrupted: an operator checks whether it took effect and
decides what to do. A callback that is safe to repeat is called again instead.

A nudge tells an agent that tasks are waiting for it. It is sent once, and the response does not
matter: an agent that is down finds its tasks when it is back. A slow agent delays neither the
harness nor other agents.
"""

import inspect
import math
import time
import traceback
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from treadle.db.database import Database
from treadle.db.harness import Action, HarnessTask, Nudge
from treadle.errors import ConfigurationError, TreadleError
from treadle.json import clean_text
from treadle.masking import excerpt
from treadle.services.outbound import AddressRefused, OutboundPolicy, request, transport
from treadle.services.service import BATCH, Service, log
from treadle.settings import Settings

AGENTS = 20
# Called with a task and the decision of its agent; may be async.
Callback = Callable[[HarnessTask, dict[str, Any]], Any]

LEASE_S = 60.0
# Time to record the outcome of an action after the harness was stopped.
RECORD_S = 3.0
NUDGES = 100


def redeliver(callback: Callback) -> Callback:
    """Mark a callback as safe to repeat: it is called again if its harness stops meanwhile."""
    callback.redeliver = True  # type: ignore[attr-defined]
    return callback


def policy_of(settings: Settings) -> OutboundPolicy:
    """Return the policy for nudges: the addresses that the dispatcher may use as well."""
    timeout_s = settings.harness_nudge_timeout_s
    return replace(OutboundPolicy.for_agents(settings), process="harness", timeout_s=timeout_s)


class Nudger:
    """Sends nudges to several agents concurrently, and to each agent one at a time."""

    def __init__(self, db: Database, policy: OutboundPolicy, transport: Any) -> None:
        self._db = db
        self._policy = policy
        self._transport = transport
        self._slots = anyio.Semaphore(AGENTS)
        self.busy: set[str] = set()

    async def send(self, agent_url: str, nudges: list[Nudge]) -> None:
        """Nudge an agent about its tasks; stop at the first nudge that fails."""
        try:
            async with self._slots:
                problem = None
                for nudge in nudges:
                    problem = await self._post(nudge)
                    if problem is not None:
                        break
                    log.info("harness.nudged", agent_url=agent_url, task_id=str(nudge.task_id))
                if problem is not None:
                    log.warning("harness.nudge_failed", agent_url=agent_url, error=problem)
                await self._db.harness.note_nudge(agent_url, problem)
        except TreadleError as error:
            log.warning("harness.call_failed", error=str(error))
        finally:
            self.busy.discard(agent_url)

    async def _post(self, nudge: Nudge) -> str | None:
        """Send one nudge and return the error, if any."""
        import httpx2

        try:
            with anyio.fail_after(self._policy.timeout_s):
                response = await request(
                    self._transport,
                    "POST",
                    httpx2.URL(f"{nudge.agent_url}/task"),
                    policy=self._policy,
                    allowed=nudge.allow_private,
                    headers={"content-type": "application/json"},
                    body=b'{"task_id": "%s"}' % str(nudge.task_id).encode(),
                )
            with anyio.move_on_after(1, shield=True):
                await response.aclose()
        except TimeoutError:
            return f"no response within {self._policy.timeout_s:g} s"
        except (httpx2.HTTPError, httpx2.InvalidURL, AddressRefused, OSError, ValueError) as error:
            return clean_text(str(error).strip() or type(error).__name__, 500)
        return None if response.is_success else f"answered {response.status_code}"


@asynccontextmanager
async def open_nudger(db: Database, policy: OutboundPolicy) -> AsyncIterator[Nudger]:
    """Open a nudger with its connections."""
    async with transport(AGENTS, keep=AGENTS // 2) as connections:
        yield Nudger(db, policy, connections)


class Harness(Service):
    """Processes results, nudges agents and requeues tasks, at intervals and on notifications."""

    name = "harness"
    channel = "treadle_harness"
    callback: Callback | None = None
    # Whether the callback is called again if a harness stopped meanwhile; see `redeliver`.
    redeliver = False

    def configure(self, settings: Settings) -> None:
        super().configure(settings)
        self._longest_s = settings.harness_drain_s
        self._requeue_s = settings.harness_requeue_s
        self._slots = settings.harness_slots
        self._tries = settings.harness_tries
        self._drain_s = settings.drain_s
        self.grace_s = self._drain_s + RECORD_S
        self._requeue_at = 0.0
        self._token = uuid4()
        self._held: dict[UUID, UUID] = {}
        self._threads = anyio.CapacityLimiter(self._slots)
        self._finishing: set[anyio.CancelScope] = set()
        self._over = False

    def set_times(self, drain_s: float | None, requeue_s: float | None) -> None:
        """Override the settings with the values of the command line."""
        self._longest_s = drain_s or self._longest_s
        self._requeue_s = requeue_s or self._requeue_s

    async def run(self) -> None:
        """Run until stopped, then wait for callbacks in progress for at most the grace period."""
        if self.callback is None:
            raise ConfigurationError("the harness has no callback", hint="Set Harness.callback.")
        policy = policy_of(self._settings)
        async with (
            open_nudger(self._db, policy) as self._nudger,
            anyio.create_task_group() as self._group,
        ):
            self._group.start_soon(self._renew)
            await super().run()
            with anyio.move_on_after(self.left_of(self._drain_s)):
                while self._held:
                    await self._wake.wait()
                    self._wake = anyio.Event()
            self._over = True
            for scope in self._finishing:
                scope.deadline = anyio.current_time() + RECORD_S
            self._group.cancel_scope.cancel()

    _group: TaskGroup
    _nudger: Nudger

    async def tick(self) -> int:
        requeued = 0
        if time.monotonic() >= self._requeue_at:
            requeued = await self._requeue()
            if requeued < BATCH:
                self._requeue_at = time.monotonic() + self._requeue_s
        for task_id, status in (await self._db.harness.interrupt_actions(self._tries)).items():
            if status == "waiting":
                log.warning("harness.redelivered", task_id=str(task_id))
                continue
            log.error(
                "harness.interrupted",
                task_id=str(task_id),
                hint=f"Check whether it took effect, then: treadle harness retry {task_id}",
            )
        await self._nudge()
        return max(requeued, await self._drain())

    async def next_in(self) -> float | None:
        if len(self._held) >= self._slots:
            return None
        due = await self._db.harness.next_action_in()
        requeue = max(0.0, self._requeue_at - time.monotonic())
        return requeue if due is None else min(max(due, 0.05), requeue)

    async def _drain(self) -> int:
        free = self._slots - len(self._held)
        if free <= 0:
            return 0
        # The token stays the same until a call succeeds: a repeat returns the same actions.
        again = self.redeliver or getattr(self.callback, "redeliver", False)
        actions = await self._db.harness.take_actions(self._token, free, LEASE_S, redeliver=again)
        self._token = uuid4()
        for action in actions:
            self._held[action.task_id] = action.token
            self._group.start_soon(self._act, action)
        return len(actions)

    async def _act(self, action: Action) -> None:
        """Call the callback with one decision and record the outcome; raise nothing."""
        task_id = action.task_id
        error: str | None = None
        outcome = "interrupted"
        try:
            log.info("harness.executing", task_id=str(task_id), tries=action.task.tries)
            await self._call(action)
            outcome = "done"
        except (Exception, SystemExit) as problem:
            outcome, error = "failed", _text(problem)
        except anyio.get_cancelled_exc_class() as problem:
            if anyio.current_effective_deadline() == -math.inf:
                error = "the harness was stopped before the callback ended"
                raise
            # The callback was not cancelled: it raised a cancellation error of its own.
            outcome, error = "failed", _text(problem)
        finally:
            with anyio.CancelScope(shield=True) as scope:
                if self._over:
                    scope.deadline = anyio.current_time() + RECORD_S
                self._finishing.add(scope)
                try:
                    await self._finish(action, outcome, error)
                finally:
                    self._finishing.discard(scope)
            if scope.cancelled_caught:
                log.error("harness.record_failed", task_id=str(task_id), outcome=outcome)
            self._held.pop(task_id, None)
            self._wake.set()

    async def _call(self, action: Action) -> None:
        assert self.callback is not None
        if not isinstance(action.decision, dict):
            raise TypeError(f"the decision must be an object, not {excerpt(action.decision)}")
        arguments = (action.task, action.decision)
        if is_async(self.callback):
            await self.callback(*arguments)
            return
        result = await to_thread.run_sync(
            self.callback, *arguments, abandon_on_cancel=True, limiter=self._threads
        )
        if inspect.isawaitable(result):
            await result

    async def _finish(self, action: Action, outcome: str, error: str | None) -> None:
        """Record the outcome; retry until it succeeds or the harness stops."""
        task_id, delay = str(action.task_id), 0.1
        while True:
            try:
                status = await self._db.harness.finish_action(
                    action, outcome, error=error, tries=self._tries
                )
                break
            except TreadleError as problem:
                log.warning("harness.call_failed", task_id=task_id, error=str(problem))
                if self._stopping and delay > 2:
                    return
            await anyio.sleep(delay)
            delay = min(delay * 2, 5.0)
        first = None if error is None else error.split("\n", 1)[0]
        if status == "done":
            self.moved += 1
            log.info("harness.done", task_id=task_id)
        else:
            log.error("harness.action_" + status, task_id=task_id, error=first)

    async def _renew(self) -> None:
        """Renew the leases of actions in progress."""
        while True:
            await anyio.sleep(LEASE_S / 4)
            if not (held := dict(self._held)):
                continue
            try:
                kept = await self._db.harness.renew_actions(list(held.items()), LEASE_S)
            except TreadleError as error:
                log.warning("harness.renewal_failed", error=str(error))
                continue
            for task_id in held.keys() - kept & self._held.keys():
                log.warning("harness.lease_lost", task_id=str(task_id))

    async def _nudge(self) -> None:
        nudges = await self._db.harness.take_nudges(NUDGES, sorted(self._nudger.busy))
        agents: dict[str, list[Nudge]] = defaultdict(list)
        for nudge in nudges:
            agents[nudge.agent_url].append(nudge)
        for agent_url, nudges_of_agent in agents.items():
            self._nudger.busy.add(agent_url)
            self._group.start_soon(self._send_nudges, agent_url, nudges_of_agent)

    async def _send_nudges(self, agent_url: str, nudges: list[Nudge]) -> None:
        await self._nudger.send(agent_url, nudges)
        # Nudges for a busy agent are not taken, so look for them now.
        self._wake.set()

    async def _requeue(self) -> int:
        """Requeue one batch of stale tasks; return the number of rows it looked at."""
        found = await self._db.harness.requeue(BATCH, self.skip())
        for each in found:
            if each.problem is not None:
                self.skip_row(each.task_id, each.problem)
                continue
            event = "harness.failed" if each.status == "dead_lettered" else "harness.requeued"
            log.warning(
                event, task_id=str(each.task_id), agent_url=each.agent_url, reason=each.reason
            )
        return len(found)


def is_async(callback: Callback) -> bool:
    """Return whether the callback runs on the event loop; others run in threads."""
    return inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(
        getattr(callback, "__call__", None)  # noqa: B004
    )


def _text(error: BaseException) -> str:
    """Return a summary line, which lists show, and the traceback."""
    summary = f"{type(error).__name__}: {error}".strip().replace("\n", " ")
    return clean_text(f"{summary}\n{''.join(traceback.format_exception(error))}")
