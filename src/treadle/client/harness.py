"""The agent's side of the harness protocol.

client = HarnessClient("http://localhost:8420", "http://localhost:9000")
while task := client.next_task():
    with client.keep_alive(task.task_id):
        decision = think_for_a_while(task.payload)
    client.complete_task(task.task_id, decision)

Every request but the nudge may be repeated without a second effect, so a lost answer is asked for
again. A claim lasts five minutes unless the harness says otherwise: heartbeat every 30 seconds.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Self
from uuid import uuid4

from treadle.client.errors import ClaimLost, ClientError, Unavailable, Unreachable
from treadle.client.http import PATIENCE_S, TIMEOUT_S, AsyncTransport, Transport, checked_url
from treadle.client.models import TaskMessage, decision_body, error_text

log = logging.getLogger(__name__)
JOIN_S = 2.0
HEARTBEAT_S = 30.0
NUDGE_S = 5.0


class _Base:
    """What both kinds tell the work beside them."""

    def __init__(self, every_s: float) -> None:
        if every_s <= 0:
            raise ValueError("heartbeats are some time apart")
        self._every_s = every_s
        self._error: ClaimLost | None = None

    @property
    def lost(self) -> bool:
        """Whether another claim has the task now: what is done about it is done in vain."""
        return self._error is not None

    def check(self) -> None:
        """Raise ClaimLost when the claim was lost; for the steps of long work."""
        if self._error is not None:
            raise self._error


class Heartbeat(_Base):
    """Heartbeats from a thread."""

    def __init__(self, beat: Callable[[], bool], every_s: float) -> None:
        super().__init__(every_s)
        self._beat = beat
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="treadle-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        # One that waits for an answer ends by itself, and keeps no program alive.
        self._thread.join(JOIN_S)

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            try:
                if not self._beat():
                    return
            except ClaimLost as error:
                self._error = error
                return
            except ClientError as error:
                log.warning("no heartbeat: %s", error)


class AsyncHeartbeat(_Base):
    """Heartbeats from a task of the event loop."""

    def __init__(self, beat: Callable[[], Awaitable[bool]], every_s: float) -> None:
        super().__init__(every_s)
        self._beat = beat
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            try:
                if not await self._beat():
                    return
            except ClaimLost as error:
                self._error = error
                return
            except ClientError as error:
                log.warning("no heartbeat: %s", error)


class _Claims:
    """The tokens of the tasks that this client holds; a token is the proof of a claim."""

    def __init__(self, agent_url: str) -> None:
        self.agent_url = checked_url(agent_url)
        self._tokens: dict[str, str] = {}
        # Of claims that were not answered: they may have been made, and are asked for again.
        self._unanswered: list[str] = []
        self._ending: set[str] = set()

    def asking(self) -> dict[str, str]:
        """The body of a question for the next task."""
        try:
            return self.fresh(self._unanswered.pop())
        except IndexError:
            return self.fresh()

    def fresh(self, token: str | None = None) -> dict[str, str]:
        return {"agent_url": self.agent_url, "claim_token": token or str(uuid4())}

    def unanswered(self, asked: dict[str, str]) -> None:
        self._unanswered.append(asked["claim_token"])

    def taken(self, asked: dict[str, str], found: Any) -> TaskMessage | None:
        if found is None:
            return None
        task = TaskMessage.read(found, asked["claim_token"])
        self.adopt(task)
        return task

    def adopt(self, task: TaskMessage) -> None:
        self._tokens[task.task_id] = task.claim_token

    def body(self, task_id: str, **more: Any) -> dict[str, Any]:
        token = self._tokens.get(str(task_id))
        if token is None:
            raise ClaimLost(
                f"this client did not claim task {task_id}:"
                " use the client that did, or adopt() the task"
            )
        return {"claim_token": token, **more}

    def holds(self, task_id: str) -> bool:
        return str(task_id) in self._tokens

    def needs_beats(self, task_id: str) -> bool:
        """Whether it is held, and this client is not ending it at the moment."""
        return self.holds(task_id) and str(task_id) not in self._ending

    def forget(self, task_id: str) -> None:
        self._tokens.pop(str(task_id), None)

    @contextmanager
    def ending(self, task_id: str) -> Iterator[None]:
        """Around a request that ends a task: once it is answered, the claim is over."""
        self._ending.add(str(task_id))
        try:
            yield
            self.forget(task_id)
        except ClaimLost:
            self.forget(task_id)
            raise
        finally:
            self._ending.discard(str(task_id))


class HarnessClient:
    """Fetches the tasks of one agent and brings its decisions back; threads may share it."""

    def __init__(
        self,
        harness_url: str,
        agent_url: str,
        token: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._claims = _Claims(agent_url)
        self._sender = Transport(harness_url, token, timeout_s=timeout_s, patience_s=patience_s)

    @property
    def agent_url(self) -> str:
        return self._claims.agent_url

    def next_task(self) -> TaskMessage | None:
        """Claim the oldest task of this agent; None when there is none."""
        try:
            return self._ask(self._claims.asking())
        except ClaimLost:
            # An answer was lost, and what it gave was taken back since: that token is used up.
            return self._ask(self._claims.fresh())

    def _ask(self, asked: dict[str, str]) -> TaskMessage | None:
        try:
            found = self._post("/harness/next", asked)
        except (Unreachable, Unavailable):
            self._claims.unanswered(asked)
            raise
        return self._claims.taken(asked, found)

    def adopt(self, task: TaskMessage) -> None:
        """Go on with a task that another client has claimed, perhaps in another process."""
        self._claims.adopt(task)

    def heartbeat(self, task_id: str) -> None:
        """Begin the claim timeout anew; call it at least every 30 seconds during long work."""
        self._post(f"/harness/tasks/{task_id}/heartbeat", self._claims.body(task_id))

    def complete_task(self, task_id: str, decision: object) -> None:
        """Store the decision and nudge the harness; ClaimLost means: drop the decision."""
        body = self._claims.body(task_id, decision=decision_body(decision))
        with self._claims.ending(task_id):
            self._post(f"/harness/tasks/{task_id}/complete", body)
        try:
            self._sender.request(
                *("POST", "/harness/result"),
                json={"task_id": str(task_id)},
                again=False,
                timeout_s=NUDGE_S,
            )
        except ClientError as error:
            # The decision is stored: the harness looks by itself every few seconds.
            log.debug("the harness was not nudged: %s", error)

    def fail_task(self, task_id: str, error: str, *, retry: bool = True) -> None:
        """Give the task back: it is pending again, or failed after its last retry."""
        body = self._claims.body(task_id, error=error_text(error), retry=retry)
        with self._claims.ending(task_id):
            self._post(f"/harness/tasks/{task_id}/fail", body)

    @contextmanager
    def keep_alive(self, task_id: str, every_s: float = HEARTBEAT_S) -> Iterator[Heartbeat]:
        """Heartbeats from a thread while the block runs; `alive.lost` says when to stop."""
        alive = Heartbeat(lambda: self._beat(task_id), every_s)
        alive.start()
        try:
            yield alive
        finally:
            alive.stop()

    def close(self) -> None:
        """Give the connections back; claims run out by themselves."""
        self._sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _beat(self, task_id: str) -> bool:
        """Whether to go on: a task that this client has ended needs no more heartbeats."""
        if self._claims.needs_beats(task_id):
            try:
                self.heartbeat(task_id)
            except ClaimLost:
                # Unless it is being ended here.
                if self._claims.needs_beats(task_id):
                    raise
        return self._claims.holds(task_id)

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._sender.request("POST", path, json=body, again=True)


class AsyncHarnessClient:
    """The same for programs with an event loop."""

    def __init__(
        self,
        harness_url: str,
        agent_url: str,
        token: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._claims = _Claims(agent_url)
        self._sender = AsyncTransport(
            harness_url, token, timeout_s=timeout_s, patience_s=patience_s
        )

    @property
    def agent_url(self) -> str:
        return self._claims.agent_url

    async def next_task(self) -> TaskMessage | None:
        """Claim the oldest task of this agent; None when there is none."""
        try:
            return await self._ask(self._claims.asking())
        except ClaimLost:
            # An answer was lost, and what it gave was taken back since: that token is used up.
            return await self._ask(self._claims.fresh())

    async def _ask(self, asked: dict[str, str]) -> TaskMessage | None:
        try:
            found = await self._post("/harness/next", asked)
        except BaseException as error:
            # Also when it is cancelled: the claim may have been made.
            if not isinstance(error, ClientError) or isinstance(error, Unreachable | Unavailable):
                self._claims.unanswered(asked)
            raise
        return self._claims.taken(asked, found)

    def adopt(self, task: TaskMessage) -> None:
        """Go on with a task that another client has claimed, perhaps in another process."""
        self._claims.adopt(task)

    async def heartbeat(self, task_id: str) -> None:
        """Begin the claim timeout anew; call it at least every 30 seconds during long work."""
        await self._post(f"/harness/tasks/{task_id}/heartbeat", self._claims.body(task_id))

    async def complete_task(self, task_id: str, decision: object) -> None:
        """Store the decision and nudge the harness; ClaimLost means: drop the decision."""
        body = self._claims.body(task_id, decision=decision_body(decision))
        with self._claims.ending(task_id):
            await self._post(f"/harness/tasks/{task_id}/complete", body)
        try:
            await self._sender.request(
                *("POST", "/harness/result"),
                json={"task_id": str(task_id)},
                again=False,
                timeout_s=NUDGE_S,
            )
        except ClientError as error:
            # The decision is stored: the harness looks by itself every few seconds.
            log.debug("the harness was not nudged: %s", error)

    async def fail_task(self, task_id: str, error: str, *, retry: bool = True) -> None:
        """Give the task back: it is pending again, or failed after its last retry."""
        body = self._claims.body(task_id, error=error_text(error), retry=retry)
        with self._claims.ending(task_id):
            await self._post(f"/harness/tasks/{task_id}/fail", body)

    @asynccontextmanager
    async def keep_alive(
        self, task_id: str, every_s: float = HEARTBEAT_S
    ) -> AsyncIterator[AsyncHeartbeat]:
        """Heartbeats beside the block while it runs; `alive.lost` says when to stop."""
        alive = AsyncHeartbeat(lambda: self._beat(task_id), every_s)
        alive.start()
        try:
            yield alive
        finally:
            await alive.stop()

    async def close(self) -> None:
        """Give the connections back; claims run out by themselves."""
        await self._sender.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _beat(self, task_id: str) -> bool:
        """Whether to go on: a task that this client has ended needs no more heartbeats."""
        if self._claims.needs_beats(task_id):
            try:
                await self.heartbeat(task_id)
            except ClaimLost:
                # Unless it is being ended here.
                if self._claims.needs_beats(task_id):
                    raise
        return self._claims.holds(task_id)

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        return await self._sender.request("POST", path, json=body, again=True)
