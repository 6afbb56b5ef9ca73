"""The client of the harness protocol, for agents.

client = HarnessClient("http://localhost:8420", "http://localhost:9000")
while task := client.next_task():
    with client.keep_alive(task.task_id):
        decision = think_for_a_while(task.payload)
    client.complete_task(task.task_id, decision)

Every request except the nudge is safe to repeat, so it is retried when the response is lost. A
claim lasts five minutes by default; send a heartbeat every 30 seconds.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import datetime
from typing import Any, Self
from uuid import uuid4

from treadle.client.errors import ClaimLost, ClientError, Unavailable, Unreachable
from treadle.client.http import PATIENCE_S, TIMEOUT_S, AsyncTransport, Transport, checked_url

log = logging.getLogger(__name__)
JOIN_S = 2.0
HEARTBEAT_S = 30.0
NUDGE_S = 5.0
ERROR_CHARS = 20_000


@dataclass(frozen=True)
class TaskMessage:
    """A task that this agent has claimed."""

    task_id: str
    payload: dict[str, Any]
    agent_url: str
    # How often an earlier claim expired or failed; above 0, the work may have been started.
    retry_count: int
    max_retries: int
    created_at: datetime
    # The claim expires then, unless a heartbeat is sent.
    claim_until: datetime
    # Proves the claim, for `adopt`; do not log it.
    claim_token: str = field(repr=False)

    @classmethod
    def read(cls, found: Mapping[str, Any], claim_token: str) -> Self:
        """Read the task in a response of the server; unknown fields are ignored."""
        return cls(
            task_id=str(found["task_id"]),
            payload=dict(found["payload"]),
            agent_url=str(found["agent_url"]),
            retry_count=int(found["retry_count"]),
            max_retries=int(found["max_retries"]),
            created_at=datetime.fromisoformat(found["created_at"]),
            claim_until=datetime.fromisoformat(found["claim_until"]),
            claim_token=claim_token,
        )


@dataclass(frozen=True)
class DecisionMessage:
    """The decision of an agent: the actions for the harness, and a summary."""

    actions: list[dict[str, Any]] = field(default_factory=list)
    summary: str = ""


class _Base:
    """The parts that both kinds of heartbeats share."""

    def __init__(self, every_s: float) -> None:
        if every_s <= 0:
            raise ValueError("every_s must be greater than 0")
        self._every_s = every_s
        self._error: ClaimLost | None = None

    @property
    def lost(self) -> bool:
        """Whether the claim was lost, so that a decision would be rejected."""
        return self._error is not None

    def check(self) -> None:
        """Raise ClaimLost if the claim was lost; call it between the steps of long work."""
        if self._error is not None:
            raise self._error


class Heartbeat(_Base):
    """Sends heartbeats from a thread."""

    def __init__(self, beat: Callable[[], bool], every_s: float) -> None:
        super().__init__(every_s)
        self._beat = beat
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="treadle-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        # A thread that waits for a response ends later; it is a daemon thread.
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
                log.warning("heartbeat failed: %s", error)


class AsyncHeartbeat(_Base):
    """Sends heartbeats from a task of the event loop."""

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
                log.warning("heartbeat failed: %s", error)


class _Claims:
    """The claim tokens of the tasks that this client holds."""

    def __init__(self, agent_url: str) -> None:
        self.agent_url = checked_url(agent_url)
        self._tokens: dict[str, str] = {}
        # Tokens of claims without a response: the server may have made them, so they are reused.
        self._unanswered: list[str] = []
        self._ending: set[str] = set()

    def next_body(self) -> dict[str, str]:
        """Return the body of a request for the next task."""
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
        """Return whether this client holds the task and is not ending it now."""
        return self.holds(task_id) and str(task_id) not in self._ending

    def forget(self, task_id: str) -> None:
        self._tokens.pop(str(task_id), None)

    @contextmanager
    def ending(self, task_id: str) -> Iterator[None]:
        """Wrap a request that ends a task: once it has a response, the claim is over."""
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
    """Claims the tasks of one agent and submits its decisions; threads may share it."""

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
        """Claim the oldest task of this agent; return None if there is none."""
        try:
            return self._ask(self._claims.next_body())
        except ClaimLost:
            # A response was lost and its claim has expired, so the token cannot be used again.
            return self._ask(self._claims.fresh())

    def _ask(self, asked: dict[str, str]) -> TaskMessage | None:
        try:
            found = self._post("/harness/next", asked)
        except (Unreachable, Unavailable):
            self._claims.unanswered(asked)
            raise
        return self._claims.taken(asked, found)

    def adopt(self, task: TaskMessage) -> None:
        """Continue a task that another client, perhaps in another process, has claimed."""
        self._claims.adopt(task)

    def heartbeat(self, task_id: str) -> None:
        """Renew the claim; call it at least every 30 seconds during long work."""
        self._post(f"/harness/tasks/{task_id}/heartbeat", self._claims.body(task_id))

    def complete_task(self, task_id: str, decision: object) -> None:
        """Store the decision and nudge the harness; on ClaimLost, drop the decision."""
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
            # The decision is stored, and the harness polls every few seconds.
            log.debug("nudge failed: %s", error)

    def fail_task(self, task_id: str, error: str, *, retry: bool = True) -> None:
        """Fail the task: it is pending again, or failed after its last retry."""
        body = self._claims.body(task_id, error=error_text(error), retry=retry)
        with self._claims.ending(task_id):
            self._post(f"/harness/tasks/{task_id}/fail", body)

    @contextmanager
    def keep_alive(self, task_id: str, every_s: float = HEARTBEAT_S) -> Iterator[Heartbeat]:
        """Send heartbeats from a thread while the block runs; check `alive.lost` to stop."""
        alive = Heartbeat(lambda: self._beat(task_id), every_s)
        alive.start()
        try:
            yield alive
        finally:
            alive.stop()

    def close(self) -> None:
        """Close the connections; claims that are still held expire."""
        self._sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _beat(self, task_id: str) -> bool:
        """Send a heartbeat; return False once this client has ended the task."""
        if self._claims.needs_beats(task_id):
            try:
                self.heartbeat(task_id)
            except ClaimLost:
                # Not an error if this client is ending the task.
                if self._claims.needs_beats(task_id):
                    raise
        return self._claims.holds(task_id)

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._sender.request("POST", path, json=body, again=True)


class AsyncHarnessClient:
    """The async version of `HarnessClient`."""

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
        """Claim the oldest task of this agent; return None if there is none."""
        try:
            return await self._ask(self._claims.next_body())
        except ClaimLost:
            # A response was lost and its claim has expired, so the token cannot be used again.
            return await self._ask(self._claims.fresh())

    async def _ask(self, asked: dict[str, str]) -> TaskMessage | None:
        try:
            found = await self._post("/harness/next", asked)
        except BaseException as error:
            # Also if this call is cancelled: the server may have made the claim.
            if not isinstance(error, ClientError) or isinstance(error, Unreachable | Unavailable):
                self._claims.unanswered(asked)
            raise
        return self._claims.taken(asked, found)

    def adopt(self, task: TaskMessage) -> None:
        """Continue a task that another client, perhaps in another process, has claimed."""
        self._claims.adopt(task)

    async def heartbeat(self, task_id: str) -> None:
        """Renew the claim; call it at least every 30 seconds during long work."""
        await self._post(f"/harness/tasks/{task_id}/heartbeat", self._claims.body(task_id))

    async def complete_task(self, task_id: str, decision: object) -> None:
        """Store the decision and nudge the harness; on ClaimLost, drop the decision."""
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
            # The decision is stored, and the harness polls every few seconds.
            log.debug("nudge failed: %s", error)

    async def fail_task(self, task_id: str, error: str, *, retry: bool = True) -> None:
        """Fail the task: it is pending again, or failed after its last retry."""
        body = self._claims.body(task_id, error=error_text(error), retry=retry)
        with self._claims.ending(task_id):
            await self._post(f"/harness/tasks/{task_id}/fail", body)

    @asynccontextmanager
    async def keep_alive(
        self, task_id: str, every_s: float = HEARTBEAT_S
    ) -> AsyncIterator[AsyncHeartbeat]:
        """Send heartbeats while the block runs; check `alive.lost` to stop."""
        alive = AsyncHeartbeat(lambda: self._beat(task_id), every_s)
        alive.start()
        try:
            yield alive
        finally:
            await alive.stop()

    async def close(self) -> None:
        """Close the connections; claims that are still held expire."""
        await self._sender.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _beat(self, task_id: str) -> bool:
        """Send a heartbeat; return False once this client has ended the task."""
        if self._claims.needs_beats(task_id):
            try:
                await self.heartbeat(task_id)
            except ClaimLost:
                # Not an error if this client is ending the task.
                if self._claims.needs_beats(task_id):
                    raise
        return self._claims.holds(task_id)

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        return await self._sender.request("POST", path, json=body, again=True)


def decision_body(decision: object) -> dict[str, Any]:
    """Return a decision as JSON; it is a mapping, a dataclass or a pydantic model."""
    if hasattr(decision, "model_dump"):
        decision = decision.model_dump(mode="json")
    elif is_dataclass(decision) and not isinstance(decision, type):
        decision = asdict(decision)
    if not isinstance(decision, Mapping):
        raise TypeError(
            f"the decision must be a DecisionMessage or a dict, not {type(decision).__name__}"
        )
    return dict(decision)


def error_text(error: object) -> str:
    """Return an error as text that the server accepts; the middle of a long text is removed."""
    text = str(error).replace("\0", "\u2400").encode("utf-8", "replace").decode("utf-8")
    half = ERROR_CHARS // 2 - 2
    return text if len(text) <= ERROR_CHARS else f"{text[:half]}\n…\n{text[-half:]}"
