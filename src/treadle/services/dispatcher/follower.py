"""One submission, from before it is sent until its end is known.

As long as it is not known whether the agent has it, only this agent is asked: by our id, then by
the same request again under the same key. Once the agent has it, it is looked at from time to time.
What is found out is told to SQL, which decides, and which listens to one follower at a time.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

import anyio
import structlog

from treadle.db.database import Database
from treadle.db.push import Dispatch
from treadle.errors import InvalidArgument, TooLarge, Unavailable
from treadle.json import encode_safely
from treadle.services.dispatcher.agent import AgentClient, Reply

T = TypeVar("T")
log = structlog.get_logger(__name__)
# Between two tries to tell the database.
TELL_AGAIN_S = 0.5


@dataclass(frozen=True)
class FollowTimes:
    """How often is looked, and for how long an agent may be out of reach."""

    track_s: float
    unsure_s: float
    silent_s: float


class SubmissionFollower:
    """Follows one submission; stops when it has ended or somebody else has taken it over."""

    def __init__(
        self,
        dispatch: Dispatch,
        line: AgentClient,
        db: Database,
        *,
        holder: UUID,
        times: FollowTimes,
        fresh: bool,
        lease_until: float,
    ) -> None:
        self._dispatch = dispatch
        self._line = line
        self._db = db
        self._holder = holder
        self._times = times
        # Not a byte of it was sent.
        self._fresh = fresh
        self._task_id = dispatch.agent_task_id
        # What is wrong with an answer that took it and did not say under which id.
        self._nameless: str | None = None
        self._verdict = dispatch.verdict
        self._wake = anyio.Event()
        self._over = False
        self.lease_until = lease_until
        self.heard = False
        self.ended = False

    def lose(self, verdict: str) -> None:
        """Its claim is gone: the agent is told to stop."""
        if self._verdict != verdict:
            self._verdict = verdict
            self._wake.set()

    def leave(self) -> None:
        """Somebody else follows it, or nobody here has the time to."""
        self._over = True
        self._wake.set()

    async def run(self) -> None:
        """Send it or find out about it, then look until it has ended."""
        while True:
            with suppress(Unavailable):  # told to leave while the database was away
                await self._step()
            if self._over:
                return
            with anyio.move_on_after(self._times.track_s):
                await self._wake.wait()
            self._wake = anyio.Event()

    async def _step(self) -> None:
        if self._verdict != "ok":
            await self._stop_agent()
        elif self._fresh:
            await self._submit()
        elif self._task_id is None:
            await self._find()
        else:
            await self._look()

    async def _submit(self) -> None:
        first, self._fresh = self._fresh, False
        # A process that was stopped for long may have been replaced: then it sends nothing.
        if time.monotonic() >= self.lease_until:
            log.warning("queue.lease_lost", queue_id=self._dispatch.queue_id)
            return
        log.info(
            "queue.dispatch",
            queue_id=self._dispatch.queue_id,
            agent=self._dispatch.agent_url,
            again=not first,
        )
        reply = await self._line.submit(self._dispatch)
        if reply.status is None:
            if first and not reply.sent:
                await self._end("unreachable", reply.error)
            else:
                await self._unsure(reply.error, at_once=first)
        elif 200 <= reply.status < 300:
            if reply.task_id is None:
                # One that remembers no keys would only execute it again.
                self._nameless = f"{reply.error} without a task_id that can be used"
                await self._unsure(self._nameless, at_once=first)
            else:
                await self._accept(reply.task_id, reply)
        elif not first:
            # It may be this very prompt that keeps it from taking it.
            await self._unsure(reply.error)
        elif reply.status == 409:
            await self._end("busy", "agent busy")
        else:
            await self._end("refused" if 400 <= reply.status < 500 else "error", reply.error)

    async def _find(self) -> None:
        """Ask the agent whether it has a submission that may have reached it."""
        reply = await self._line.look(self._dispatch.queue_id)
        if reply.has_it:
            await self._accept(reply.task_id or self._dispatch.queue_id, reply)
            if self._verdict == "ok" and not self._over:
                await self._judge(reply)
        elif reply.status is not None and 400 <= reply.status < 500 and self._nameless:
            await self._end("error", self._nameless)
        elif reply.status is not None and 400 <= reply.status < 500:
            # It does not know our id. One that remembers keys does not execute it twice.
            await self._submit()
        else:
            await self._unsure(reply.error)

    async def _look(self) -> None:
        assert self._task_id is not None
        reply = await self._line.look(self._task_id)
        if reply.too_large:
            await self._end("failed", "its answer is larger than an output may be")
        elif reply.state is not None:
            await self._judge(reply)
        elif reply.status in (404, 410):
            await self._end("lost", "the agent does not have the task any more")
        else:
            said = "says nothing about the task" if reply.status == 200 else reply.error
            await self._unsure(said)

    async def _judge(self, reply: Reply) -> None:
        self.heard = True
        state = reply.state
        if state == "completed":
            body = reply.body or {}
            output = encode_safely(body.get("result", body.get("output")))
            try:
                await self._end("completed", output=output)
            except (TooLarge, InvalidArgument) as error:
                await self._end("failed", f"its output cannot be stored: {error}")
        elif state == "failed":
            await self._end("failed", reply.complaint() or "the agent says that it failed")
        elif state == "cancelled":
            await self._end("cancelled", reply.complaint() or "cancelled by the agent")

    async def _unsure(self, error: str, *, at_once: bool = False) -> None:
        """No answer; the task is given up when that has lasted too long."""
        log.warning(
            "queue.agent_silent",
            queue_id=self._dispatch.queue_id,
            agent=self._dispatch.agent_url,
            error=error,
        )
        state = await self._told(
            lambda: self._db.push.give_up(
                self._dispatch,
                self._holder,
                error,
                unsure_s=self._times.unsure_s,
                silent_s=self._times.silent_s,
            )
        )
        if state is not None:
            self._tell("unsure" if self._task_id is None else "silent", error, state)
        elif at_once:
            self._wake.set()

    async def _accept(self, task_id: str, reply: Reply) -> None:
        verdict = await self._told(
            lambda: self._db.push.accept(
                self._dispatch, self._holder, task_id, reply.text("session_id")
            )
        )
        if verdict == "taken":
            self.leave()
            return
        self._task_id = task_id
        self.heard = True
        log.info("queue.dispatch_success", queue_id=self._dispatch.queue_id, task_id=task_id)
        if verdict != "ok":
            self.lose(verdict)

    async def _stop_agent(self) -> None:
        """Tell the agent that nobody waits for the result; whether it listens or not."""
        task_id = self._task_id
        if task_id is None and not self._fresh:
            found = await self._line.look(self._dispatch.queue_id)
            task_id = found.task_id or self._dispatch.queue_id
        if task_id is not None:
            reply = await self._line.cancel(task_id)
            log.info(
                "queue.agent_told_to_stop",
                queue_id=self._dispatch.queue_id,
                task_id=task_id,
                answer=reply.error,
            )
        await self._end("superseded")

    async def _end(
        self, outcome: str, error: str | None = None, *, output: bytes | None = None
    ) -> None:
        state = await self._told(
            lambda: self._db.push.end(
                self._dispatch, self._holder, outcome, error=error, output=output
            )
        )
        if state is None:
            self.leave()
        else:
            self._tell(outcome, error, state)

    def _tell(self, outcome: str, error: str | None, state: str) -> None:
        """The end, in the log."""
        self._over = self.ended = True
        facts: dict[str, object] = {"queue_id": self._dispatch.queue_id, "outcome": outcome}
        if self._task_id is not None:
            facts["task_id"] = self._task_id
        if outcome in ("completed", "failed", "cancelled", "superseded"):
            log.info("queue.task_completed", **facts, state=state, error=error)
            return
        if state == "dead_lettered":
            facts["final"] = True
        log.warning(
            "queue.task_lost" if outcome in ("lost", "silent") else "queue.dispatch_failed",
            **facts,
            agent=self._dispatch.agent_url,
            error=error,
            attempt=f"{self._dispatch.attempt}/{self._dispatch.max_attempts}",
        )

    async def _told(self, call: Callable[[], Awaitable[T]]) -> T:
        """Tell the database; when it is away, again, for what was found out is worth it."""
        while True:
            try:
                return await call()
            except Unavailable as error:
                log.warning("dispatcher.waiting", error=str(error))
                if self._over:
                    raise
                await anyio.sleep(TELL_AGAIN_S)
