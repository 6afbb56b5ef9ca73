"""The harness: hands the decisions of agents to a callback, nudges agents, requeues what is stale.

A decision is in the action log before the callback gets it. A process that dies meanwhile leaves an
action that is interrupted: an operator checks whether it took effect and decides what to do.

A nudge tells an agent that tasks wait for it. It is sent once and its answer decides nothing: an
agent that is down finds its tasks when it comes back. Agents that are slow or gone hold up neither
the harness nor each other.
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
# How long recording the end of an action may take once the harness has to end.
RECORD_S = 3.0
NUDGES = 100


def policy_of(settings: Settings) -> OutboundPolicy:
    """Where nudges may go: as where the dispatcher may."""
    timeout_s = settings.harness_nudge_timeout_s
    return replace(OutboundPolicy.for_agents(settings), who="harness", timeout_s=timeout_s)


class Nudger:
    """Sends nudges to some agents at once, to each one after the other."""

    def __init__(self, db: Database, policy: OutboundPolicy, transport: Any) -> None:
        self._db = db
        self._policy = policy
        self._transport = transport
        self._slots = anyio.Semaphore(AGENTS)
        self.busy: set[str] = set()

    async def send(self, agent_url: str, nudges: list[Nudge]) -> None:
        """Nudge an agent about its tasks; after one that failed the others are pointless."""
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
            log.warning("harness.waiting", error=str(error))
        finally:
            self.busy.discard(agent_url)

    async def _post(self, nudge: Nudge) -> str | None:
        """What went wrong, if anything."""
        import httpx2

        try:
            with anyio.fail_after(self._policy.timeout_s):
                answer = await request(
                    self._transport,
                    "POST",
                    httpx2.URL(f"{nudge.agent_url}/task"),
                    policy=self._policy,
                    allowed=nudge.allow_private,
                    headers={"content-type": "application/json"},
                    body=b'{"task_id": "%s"}' % str(nudge.task_id).encode(),
                )
            with anyio.move_on_after(1, shield=True):
                await answer.aclose()
        except TimeoutError:
            return f"no answer within {self._policy.timeout_s:g} s"
        except (httpx2.HTTPError, httpx2.InvalidURL, AddressRefused, OSError, ValueError) as error:
            return clean_text(str(error).strip() or type(error).__name__, 500)
        return None if answer.is_success else f"answered {answer.status_code}"


@asynccontextmanager
async def open_nudger(db: Database, policy: OutboundPolicy) -> AsyncIterator[Nudger]:
    """A nudger with its connections."""
    async with transport(AGENTS, keep=AGENTS // 2) as made:
        yield Nudger(db, policy, made)


class Harness(Service):
    """Drains results, nudges agents and requeues, each on its own beat and when it is nudged."""

    name = "harness"
    channel = "treadle_harness"
    callback: Callback | None = None

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
        """What the command line says, over the settings."""
        self._longest_s = drain_s or self._longest_s
        self._requeue_s = requeue_s or self._requeue_s

    async def run(self) -> None:
        """Run until stopped; callbacks under way are waited for a while."""
        if self.callback is None:
            raise ConfigurationError("the harness has no callback")
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
        for task_id in await self._db.harness.interrupt_actions():
            log.error(
                "harness.interrupted",
                task_id=str(task_id),
                hint=f"Look whether it took effect, then: treadle harness again {task_id}",
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
        # Until it is answered the same token: what was handed out is handed out again.
        actions = await self._db.harness.take_actions(self._token, free, LEASE_S)
        self._token = uuid4()
        for action in actions:
            self._held[action.task_id] = action.token
            self._group.start_soon(self._act, action)
        return len(actions)

    async def _act(self, action: Action) -> None:
        """Hand one decision to the callback and record what came of it; nothing gets out."""
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
            # A callback may raise it by itself, too.
            if anyio.current_effective_deadline() == -math.inf:
                error = "the harness was told to end before the callback did"
                raise
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
                log.error("harness.not_recorded", task_id=str(task_id), outcome=outcome)
            self._held.pop(task_id, None)
            self._wake.set()

    async def _call(self, action: Action) -> None:
        assert self.callback is not None
        if not isinstance(action.decision, dict):
            raise TypeError(f"a decision is an object, not {excerpt(action.decision)}")
        given = (action.task, action.decision)
        if is_async(self.callback):
            await self.callback(*given)
            return
        made = await to_thread.run_sync(
            self.callback, *given, abandon_on_cancel=True, limiter=self._threads
        )
        if inspect.isawaitable(made):
            await made

    async def _finish(self, action: Action, outcome: str, error: str | None) -> None:
        """Write down how it ended, and do not give up on it while this process lives."""
        task_id, delay = str(action.task_id), 0.1
        while True:
            try:
                status = await self._db.harness.finish_action(
                    action, outcome, error=error, tries=self._tries
                )
                break
            except TreadleError as problem:
                log.warning("harness.waiting", task_id=task_id, error=str(problem))
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
        """Say that the actions under way are; who is stopped for long is taken for gone."""
        while True:
            await anyio.sleep(LEASE_S / 4)
            if not (held := dict(self._held)):
                continue
            try:
                kept = await self._db.harness.renew_actions(list(held.items()), LEASE_S)
            except TreadleError as error:
                log.warning("harness.waiting", error=str(error))
                continue
            for task_id in held.keys() - kept & self._held.keys():
                log.warning("harness.lease_lost", task_id=str(task_id))

    async def _nudge(self) -> None:
        nudges = await self._db.harness.take_nudges(NUDGES, sorted(self._nudger.busy))
        agents: dict[str, list[Nudge]] = defaultdict(list)
        for nudge in nudges:
            agents[nudge.agent_url].append(nudge)
        for agent_url, theirs in agents.items():
            self._nudger.busy.add(agent_url)
            self._group.start_soon(self._tell, agent_url, theirs)

    async def _tell(self, agent_url: str, nudges: list[Nudge]) -> None:
        await self._nudger.send(agent_url, nudges)
        # What came for this agent meanwhile was left out.
        self._wake.set()

    async def _requeue(self) -> int:
        """Requeue one batch; how many it looked at."""
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
    """Whether to call it on the event loop; all others are called in threads."""
    return inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(
        getattr(callback, "__call__", None)  # noqa: B004
    )


def _text(error: BaseException) -> str:
    """What was raised, then where: the first line is shown in lists."""
    said = f"{type(error).__name__}: {error}".strip().replace("\n", " ")
    return clean_text(f"{said}\n{''.join(traceback.format_exception(error))}")
