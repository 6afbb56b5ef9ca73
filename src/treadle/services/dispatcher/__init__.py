"""The dispatcher: sends the tasks of queue `push` to agents and tracks each until it ends.

The first idle agent, in the order of their names, gets the next task. A submission is recorded
before it is sent and is tracked under a lease. If this process ends, another dispatcher takes over
and first asks the agent about the submission.
"""

import math
import time
from typing import Any
from uuid import UUID, uuid4

import anyio
from anyio.abc import TaskGroup

from treadle.db.push import Dispatch, PushAgent
from treadle.errors import TreadleError
from treadle.services.dispatcher.agent import AgentClient, Health
from treadle.services.dispatcher.follower import FollowTimes, SubmissionFollower
from treadle.services.outbound import OutboundPolicy, transport
from treadle.services.service import BATCH, Service, log
from treadle.settings import Settings

# Time between two health checks of agents while no task waits.
CHECK_EVERY_S = 10.0
# An agent that has no task from here and is busy for so many polls is logged.
BUSY_POLLS = 10
# Time for requests in progress to finish after a stop.
DRAIN_S = 5.0
CONNECTIONS = 1000


class Dispatcher(Service):
    """Sends tasks to idle agents and tracks the submissions."""

    name = "dispatcher"
    grace_s = 2 * DRAIN_S
    channel = "task_ready.push"
    more_channels = ("treadle_cancelled",)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._holder = uuid4()
        # By claim token; None while the task is being claimed.
        self._followed: dict[UUID, SubmissionFollower | None] = {}
        self._down: set[str] = set()
        # Agents that are down and are being checked in the background.
        self._checking: set[str] = set()
        # Since when agents are busy while prompts wait; infinite once this was logged.
        self._busy: dict[str, float] = {}
        self._checked_at = -CHECK_EVERY_S
        self._ticked_at = 0.0
        self._renew_now = anyio.Event()
        # Submissions that ended while the leases are being renewed.
        self._ended: set[UUID] = set()

    def configure(self, settings: Settings) -> None:
        super().configure(settings)
        self._policy = OutboundPolicy.for_agents(settings)
        self._every_s = settings.dispatch_every_s
        self._lease_s = settings.dispatch_lease_s
        self._times = FollowTimes(
            track_s=settings.track_every_s,
            unsure_s=settings.dispatch_unsure_s or 2 * settings.queue_dispatch_timeout_s,
            silent_s=settings.dispatch_silent_s,
        )

    async def run(self) -> None:
        """Dispatch until stopped, then release the tracked submissions to other dispatchers."""
        self._group: TaskGroup
        async with transport(CONNECTIONS, keep=0) as self._transport:
            async with anyio.create_task_group() as self._group:
                self._group.start_soon(self._keep_leases)
                await super().run()
                self._renew_now.set()
                for follower in self._followed.values():
                    if follower is not None:
                        follower.leave()
                self._group.cancel_scope.deadline = anyio.current_time() + self.left_of(DRAIN_S)
            with anyio.move_on_after(2, shield=True):
                await self._leave()

    async def tick(self) -> int:
        began = time.monotonic()
        if began - self._ticked_at < self._every_s * 0.9:
            # Woken by a notification: a task may have been cancelled.
            self._renew_now.set()
        self._ticked_at = began
        for each in await self._db.push.take(self._holder, BATCH, lease_s=self._lease_s):
            log.info("queue.taken_over", queue_id=each.queue_id, agent=each.agent_url)
            self._follow(each, taken_over=True, lease_until=began + self._lease_s)
        agents = await self._db.push.targets(rest_s=self._every_s)
        waiting = any(agent.waiting for agent in agents)
        if not waiting:
            self._busy.clear()
            if began - self._checked_at < CHECK_EVERY_S:
                return 0
        self._checked_at = began
        idle = await self._idle(agents)
        # Try one agent even if no task waits: an empty claim asks for a notification.
        return sum([await self._dispatch(agent) for agent in (idle if waiting else idle[:1])])

    async def next_in(self) -> float | None:
        return self._every_s

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "followed": len(self._followed), "down": sorted(self._down)}

    async def _idle(self, agents: list[PushAgent]) -> list[PushAgent]:
        """Return the idle agents; agents that did not respond are checked in the background."""
        found: dict[str, Health] = {}

        async def ask(agent: PushAgent) -> None:
            found[agent.id] = await self._health(agent)

        async with anyio.create_task_group() as asking:
            for agent in agents:
                if not agent.free or agent.id in self._checking:
                    continue
                if agent.id in self._down:
                    self._checking.add(agent.id)
                    self._group.start_soon(self._check_down, agent)
                else:
                    asking.start_soon(ask, agent)
        alive = {name: health for name, health in found.items() if health.error is None}
        for name in found.keys() - alive.keys():
            log.warning("agent.unreachable", agent=name, error=found[name].error)
            self._down.add(name)
        if alive:
            await self._db.agents.seen(alive)
        self._note_busy({name: health.said for name, health in alive.items() if not health.idle})
        return [agent for agent in agents if agent.id in alive and alive[agent.id].idle]

    def _note_busy(self, words: dict[str, str | None]) -> None:
        """Log once why an agent gets no task if it has been busy for a while."""
        now = time.monotonic()
        self._busy = {name: self._busy.get(name, now) for name in words}
        for name, since in self._busy.items():
            if now - since >= BUSY_POLLS * self._every_s:
                log.info("agent.not_idle", agent=name, said=words[name])
                self._busy[name] = math.inf

    async def _check_down(self, agent: PushAgent) -> None:
        try:
            if (await self._health(agent)).error is None:
                log.info("agent.reachable", agent=agent.id)
                self._down.discard(agent.id)
                self._checked_at = -CHECK_EVERY_S
                self._wake.set()
        finally:
            self._checking.discard(agent.id)

    async def _health(self, agent: PushAgent) -> Health:
        """Check whether an agent is idle."""
        try:
            return await self._client(agent.url, agent.allow_private).health()
        except Exception as error:
            log.exception("agent.check_crashed", agent=agent.id)
            return Health(error=repr(error))

    async def _dispatch(self, agent: PushAgent) -> bool:
        """Claim the next task for an agent and start sending it."""
        token, sent_at = uuid4(), time.monotonic()
        self._followed[token] = None
        try:
            found = await self._db.push.dispatch(
                agent.id, token, self._holder, lease_s=self._lease_s, rest_s=self._every_s
            )
        finally:
            # If the call failed but the task was claimed, the next renewal finds it.
            del self._followed[token]
        if found is None:
            return False
        self._follow(found, taken_over=False, lease_until=sent_at + self._lease_s)
        return True

    def _follow(self, dispatch: Dispatch, *, taken_over: bool, lease_until: float) -> None:
        follower = SubmissionFollower(
            dispatch,
            self._client(dispatch.agent_url, dispatch.allow_private),
            self._db,
            holder=self._holder,
            times=self._times,
            taken_over=taken_over,
            lease_until=lease_until,
        )
        former = self._followed.get(dispatch.claim_token)
        if former is not None:
            former.leave()
        self._followed[dispatch.claim_token] = follower
        self._group.start_soon(self._run, dispatch, follower)

    async def _run(self, dispatch: Dispatch, follower: SubmissionFollower) -> None:
        """Track one submission; an error in it does not affect the others."""
        try:
            await follower.run()
        except Exception:
            log.exception("queue.follower_crashed", queue_id=dispatch.queue_id)
        finally:
            if self._followed.get(dispatch.claim_token) is follower:
                del self._followed[dispatch.claim_token]
            self._ended.add(dispatch.claim_token)
            self.moved += follower.ended
            self._wake.set()

    async def _keep_leases(self) -> None:
        """Renew the leases of tracked submissions, and learn which were lost or cancelled."""
        while not self._stopping:
            try:
                await self._renew()
            except TreadleError as error:
                log.warning("dispatcher.renewal_failed", error=str(error))
            with anyio.move_on_after(self._lease_s / 4):
                await self._renew_now.wait()
            self._renew_now = anyio.Event()

    async def _renew(self) -> None:
        sent_at = time.monotonic()
        self._ended = set()
        before = {token: each for token, each in self._followed.items() if each is not None}
        responded = [token for token, each in before.items() if each.responded]
        for token in responded:
            before[token].responded = False
        held = await self._db.push.renew(self._holder, responded, lease_s=self._lease_s)
        for each in held:
            follower = self._followed.get(each.claim_token)
            if follower is not None:
                follower.lease_until = sent_at + self._lease_s
                if each.verdict != "ok":
                    follower.lose(each.verdict)
            elif each.claim_token not in self._followed.keys() | self._ended:
                # The response to the claim was lost.
                self._follow(each, taken_over=True, lease_until=sent_at + self._lease_s)
        for token in before.keys() - {each.claim_token for each in held}:
            before[token].leave()
        if responded:
            await self._db.agents.seen(
                {each.agent_id for each in held if each.claim_token in responded}
            )

    async def _leave(self) -> None:
        try:
            await self._db.push.leave(self._holder)
        except TreadleError as error:
            log.warning("dispatcher.release_failed", error=str(error))

    def _client(self, url: str, allow_private: bool) -> AgentClient:
        return AgentClient(self._transport, self._policy, url, allow_private)
