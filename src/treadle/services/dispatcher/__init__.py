"""The dispatcher: sends the tasks of queue `push` to agents, and follows each to its end.

The first idle agent, in the order of their names, gets the next task. A submission is written down
before it is sent and is followed under a lease: when this process is gone, another dispatcher goes
on with it, and asks the agent before anything else is done.
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

# While nothing waits, agents are asked this often whether they live.
ASK_EVERY_S = 10.0
# So many looks in a row at an agent that is not idle, and has nothing of ours, are worth a word.
BUSY_LOOKS = 10
# Grace for requests under way when it is told to end.
DRAIN_S = 5.0
CONNECTIONS = 1000


class Dispatcher(Service):
    """Finds idle agents and follows what they were sent."""

    name = "dispatcher"
    grace_s = 2 * DRAIN_S
    channel = "task_ready.push"
    also = ("task_cancelled",)

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._holder = uuid4()
        # By claim; without a follower while the claim is being made.
        self._followed: dict[UUID, SubmissionFollower | None] = {}
        self._down: set[str] = set()
        self._apart: set[str] = set()
        # Since when which agents are not idle while prompts wait; infinite once that was said.
        self._busy: dict[str, float] = {}
        self._asked_at = -ASK_EVERY_S
        self._ticked_at = 0.0
        self._renew_now = anyio.Event()
        # Those that ended while the leases are being renewed.
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
        """Dispatch until stopped; what is being followed then is left to others."""
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
            # Woken by a message: perhaps something was cancelled.
            self._renew_now.set()
        self._ticked_at = began
        for each in await self._db.push.take(self._holder, BATCH, lease_s=self._lease_s):
            log.info("queue.taken_over", queue_id=each.queue_id, agent=each.agent_url)
            self._follow(each, fresh=False, lease_until=began + self._lease_s)
        agents = await self._db.push.targets(rest_s=self._every_s)
        waiting = any(agent.waiting for agent in agents)
        if not waiting:
            self._busy.clear()
            if began - self._asked_at < ASK_EVERY_S:
                return 0
        self._asked_at = began
        idle = await self._idle(agents)
        # Who looks in vain is told when something comes.
        return sum([await self._dispatch(agent) for agent in (idle if waiting else idle[:1])])

    async def next_in(self) -> float | None:
        return self._every_s

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "followed": len(self._followed), "down": sorted(self._down)}

    async def _idle(self, agents: list[PushAgent]) -> list[PushAgent]:
        """The agents that could take a task now; one that did not answer holds up nobody twice."""
        found: dict[str, Health] = {}

        async def ask(agent: PushAgent) -> None:
            found[agent.id] = await self._health(agent)

        async with anyio.create_task_group() as asking:
            for agent in agents:
                if not agent.free or agent.id in self._apart:
                    continue
                if agent.id in self._down:
                    self._apart.add(agent.id)
                    self._group.start_soon(self._ask_apart, agent)
                else:
                    asking.start_soon(ask, agent)
        alive = {name: health for name, health in found.items() if health.wrong is None}
        for name in found.keys() - alive.keys():
            log.warning("agent.unreachable", agent=name, error=found[name].wrong)
            self._down.add(name)
        if alive:
            await self._db.agents.seen(alive)
        self._note_busy({name: health.said for name, health in alive.items() if not health.idle})
        return [agent for agent in agents if agent.id in alive and alive[agent.id].idle]

    def _note_busy(self, words: dict[str, str | None]) -> None:
        """Say once of an agent why it gets nothing, when it has not been idle for a while."""
        now = time.monotonic()
        self._busy = {name: self._busy.get(name, now) for name in words}
        for name, since in self._busy.items():
            if now - since >= BUSY_LOOKS * self._every_s:
                log.info("agent.not_idle", agent=name, said=words[name])
                self._busy[name] = math.inf

    async def _ask_apart(self, agent: PushAgent) -> None:
        try:
            if (await self._health(agent)).wrong is None:
                log.info("agent.reachable", agent=agent.id)
                self._down.discard(agent.id)
                self._asked_at = -ASK_EVERY_S
                self._wake.set()
        finally:
            self._apart.discard(agent.id)

    async def _health(self, agent: PushAgent) -> Health:
        """Whether it could take a task; wrong when it is out of reach or answers nonsense."""
        try:
            return await self._line(agent.url, agent.allow_private).health()
        except Exception as error:
            log.exception("agent.broken", agent=agent.id)
            return Health(wrong=repr(error))

    async def _dispatch(self, agent: PushAgent) -> bool:
        """Claim the next task for an agent and have it sent."""
        token, asked_at = uuid4(), time.monotonic()
        self._followed[token] = None
        try:
            found = await self._db.push.dispatch(
                agent.id, token, self._holder, lease_s=self._lease_s, rest_s=self._every_s
            )
        finally:
            # If it was claimed all the same, the next renewal finds it.
            del self._followed[token]
        if found is None:
            return False
        self._follow(found, fresh=not found.again, lease_until=asked_at + self._lease_s)
        return True

    def _follow(self, dispatch: Dispatch, *, fresh: bool, lease_until: float) -> None:
        follower = SubmissionFollower(
            dispatch,
            self._line(dispatch.agent_url, dispatch.allow_private),
            self._db,
            holder=self._holder,
            times=self._times,
            fresh=fresh,
            lease_until=lease_until,
        )
        former = self._followed.get(dispatch.claim_token)
        if former is not None:
            former.leave()
        self._followed[dispatch.claim_token] = follower
        self._group.start_soon(self._run, dispatch, follower)

    async def _run(self, dispatch: Dispatch, follower: SubmissionFollower) -> None:
        """One submission; whatever goes wrong stays with it."""
        try:
            await follower.run()
        except Exception:
            log.exception("queue.broken", queue_id=dispatch.queue_id)
        finally:
            if self._followed.get(dispatch.claim_token) is follower:
                del self._followed[dispatch.claim_token]
            self._ended.add(dispatch.claim_token)
            self.moved += follower.ended
            self._wake.set()

    async def _keep_leases(self) -> None:
        """Renew the leases of what is followed, and learn what was taken away or cancelled."""
        while not self._stopping:
            try:
                await self._renew()
            except TreadleError as error:
                log.warning("dispatcher.waiting", error=str(error))
            with anyio.move_on_after(self._lease_s / 4):
                await self._renew_now.wait()
            self._renew_now = anyio.Event()

    async def _renew(self) -> None:
        asked_at = time.monotonic()
        self._ended = set()
        before = {token: each for token, each in self._followed.items() if each is not None}
        heard = [token for token, each in before.items() if each.heard]
        for token in heard:
            before[token].heard = False
        held = await self._db.push.renew(self._holder, heard, lease_s=self._lease_s)
        for each in held:
            follower = self._followed.get(each.claim_token)
            if follower is not None:
                follower.lease_until = asked_at + self._lease_s
                if each.verdict != "ok":
                    follower.lose(each.verdict)
            elif each.claim_token not in self._followed.keys() | self._ended:
                # The answer to the claim was lost on its way here.
                self._follow(each, fresh=False, lease_until=asked_at + self._lease_s)
        for token in before.keys() - {each.claim_token for each in held}:
            before[token].leave()
        if heard:
            await self._db.agents.seen(
                {each.agent_id for each in held if each.claim_token in heard}
            )

    async def _leave(self) -> None:
        try:
            await self._db.push.leave(self._holder)
        except TreadleError as error:
            log.warning("dispatcher.waiting", error=str(error))

    def _line(self, url: str, allow_private: bool) -> AgentClient:
        return AgentClient(self._transport, self._policy, url, allow_private)
