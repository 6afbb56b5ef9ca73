"""One submission, from before it is sent until its outcome is known.

A task is sent once in each attempt. If no response comes, the agent is asked whether it has the
task; if it does not, or does not answer for too long, the attempt has failed and the task is queued
again. Once the agent has the task, its state is polled. SQL decides on each finding, and accepts
findings from one follower at a time.
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
# Time between two attempts of a database call.
RETRY_S = 0.5


@dataclass(frozen=True)
class FollowTimes:
    """The time between two polls, and how long an agent may be unreachable."""

    track_s: float
    unsure_s: float
    silent_s: float


class SubmissionFollower:
    """Tracks one submission until it has ended or another dispatcher has taken it over."""

    def __init__(
        self,
        dispatch: Dispatch,
        client: AgentClient,
        db: Database,
        *,
        holder: UUID,
        times: FollowTimes,
        taken_over: bool,
        lease_until: float,
    ) -> None:
        self._dispatch = dispatch
        self._client = client
        self._db = db
        self._holder = holder
        self._times = times
        # Whether the agent may have the task: from an earlier attempt, or from another dispatcher.
        self._ask_first = taken_over or dispatch.again
        # The error of this follower's own request, if no response came.
        self._unanswered: str | None = None
        self._task_id = dispatch.agent_task_id
        # The error when the agent accepted the task without returning a usable id.
        self._missing_id: str | None = None
        self._verdict = dispatch.verdict
        self._wake = anyio.Event()
        self._over = False
        self.lease_until = lease_until
        self.responded = False
        self.ended = False

    def lose(self, verdict: str) -> None:
        """Cancel the task at the agent: its claim is lost."""
        if self._verdict != verdict:
            self._verdict = verdict
            self._wake.set()

    def leave(self) -> None:
        """Stop tracking: another dispatcher has taken over, or this one stops."""
        self._over = True
        self._wake.set()

    async def run(self) -> None:
        """Send the submission or find out about it, then poll until it has ended."""
        while True:
            with suppress(Unavailable):  # asked to leave while the database was unavailable
                await self._step()
            if self._over:
                return
            with anyio.move_on_after(self._times.track_s):
                await self._wake.wait()
            self._wake = anyio.Event()

    async def _step(self) -> None:
        if self._verdict != "ok":
            await self._stop_agent()
        elif self._task_id is not None:
            await self._look()
        elif self._ask_first:
            await self._find()
        else:
            await self._submit()

    async def _submit(self) -> None:
        again, self._ask_first = self._ask_first, True
        # If this process was suspended, another dispatcher may have taken over: send nothing.
        if time.monotonic() >= self.lease_until:
            log.warning("queue.lease_lost", queue_id=self._dispatch.queue_id)
            return
        log.info(
            "queue.dispatch",
            queue_id=self._dispatch.queue_id,
            agent=self._dispatch.agent_url,
            again=again,
        )
        reply = await self._client.submit(self._dispatch)
        if reply.status is None:
            if reply.sent:
                await self._ask_after(reply.error)
            else:
                await self._end("unreachable", reply.error)
        elif 200 <= reply.status < 300:
            if reply.task_id is None:
                self._missing_id = f"{reply.error} without a task_id that can be used"
                await self._ask_after(self._missing_id)
            else:
                await self._accept(reply.task_id, reply)
        elif again and 400 <= reply.status < 500:
            # The agent may have the task and reject it because of that: keep the key.
            await self._end("unsure", reply.error)
        elif reply.status == 409:
            await self._end("busy", "agent busy")
        else:
            await self._end("refused" if 400 <= reply.status < 500 else "error", reply.error)

    async def _ask_after(self, error: str) -> None:
        """Ask the agent whether it has the task that was sent without a usable response."""
        self._unanswered = error
        self._log_silent(error)
        await self._find()

    async def _find(self) -> None:
        """Ask the agent whether it has a submission that may have reached it."""
        reply = await self._client.look(self._dispatch.queue_id)
        if reply.has_it:
            await self._accept(reply.task_id or self._dispatch.queue_id, reply)
            if self._verdict == "ok" and not self._over:
                await self._apply_state(reply)
        elif reply.status is None or not 400 <= reply.status < 500:
            await self._unsure(reply.error)
        elif self._missing_id is not None:
            await self._end("error", self._missing_id)
        elif self._unanswered is not None:
            await self._end("unsure", self._unanswered)
        else:
            # Sent by another dispatcher or in an earlier attempt. The agent does not know the queue
            # id; the idempotency key prevents a second execution.
            await self._submit()

    async def _look(self) -> None:
        assert self._task_id is not None
        reply = await self._client.look(self._task_id)
        if reply.too_large:
            await self._end("failed", "the response is larger than the maximum size of an output")
        elif reply.state is not None:
            await self._apply_state(reply)
        elif reply.status in (404, 410):
            await self._end("lost", "the agent no longer has the task")
        else:
            error = "the response has no state" if reply.status == 200 else reply.error
            await self._unsure(error)

    async def _apply_state(self, reply: Reply) -> None:
        self.responded = True
        state = reply.state
        if state == "completed":
            body = reply.body or {}
            output = encode_safely(body.get("result", body.get("output")))
            try:
                await self._end("completed", output=output)
            except (TooLarge, InvalidArgument) as error:
                await self._end("failed", f"the output cannot be stored: {error}")
        elif state == "failed":
            await self._end("failed", reply.error_message() or "the agent reported a failure")
        elif state == "cancelled":
            await self._end("cancelled", reply.error_message() or "cancelled by the agent")

    async def _unsure(self, error: str) -> None:
        """Record that the outcome is unknown; SQL ends the submission if this lasts too long."""
        self._log_silent(error)
        state = await self._repeat(
            lambda: self._db.push.give_up(
                self._dispatch,
                self._holder,
                error,
                unsure_s=self._times.unsure_s,
                silent_s=self._times.silent_s,
            )
        )
        if state is not None:
            self._log_end("unsure" if self._task_id is None else "silent", error, state)

    def _log_silent(self, error: str) -> None:
        log.warning(
            "queue.agent_silent",
            queue_id=self._dispatch.queue_id,
            agent=self._dispatch.agent_url,
            error=error,
        )

    async def _accept(self, task_id: str, reply: Reply) -> None:
        verdict = await self._repeat(
            lambda: self._db.push.accept(
                self._dispatch, self._holder, task_id, reply.text("session_id")
            )
        )
        if verdict == "taken":
            self.leave()
            return
        self._task_id = task_id
        self.responded = True
        log.info("queue.dispatch_success", queue_id=self._dispatch.queue_id, task_id=task_id)
        if verdict != "ok":
            self.lose(verdict)

    async def _stop_agent(self) -> None:
        """Cancel the task at the agent; the response does not matter."""
        task_id = self._task_id
        if task_id is None and self._ask_first:
            found = await self._client.look(self._dispatch.queue_id)
            task_id = found.task_id or self._dispatch.queue_id
        if task_id is not None:
            reply = await self._client.cancel(task_id)
            log.info(
                "queue.agent_cancelled",
                queue_id=self._dispatch.queue_id,
                task_id=task_id,
                response=reply.error,
            )
        await self._end("superseded")

    async def _end(
        self, outcome: str, error: str | None = None, *, output: bytes | None = None
    ) -> None:
        state = await self._repeat(
            lambda: self._db.push.end(
                self._dispatch, self._holder, outcome, error=error, output=output
            )
        )
        if state is None:
            self.leave()
        else:
            self._log_end(outcome, error, state)

    def _log_end(self, outcome: str, error: str | None, state: str) -> None:
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

    async def _repeat(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat a database call while the database is unavailable."""
        while True:
            try:
                return await call()
            except Unavailable as error:
                log.warning("dispatcher.call_failed", error=str(error))
                if self._over:
                    raise
                await anyio.sleep(RETRY_S)
