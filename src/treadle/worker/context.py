"""What a handler is given: its task, its past, and ways to talk back."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog

from treadle.db.gateway import Gateway
from treadle.db.pool import Connection
from treadle.errors import IllegalTransition
from treadle.jsontext import encode_safely
from treadle.models import Claim
from treadle.outcomes import CancelTask


class Context:
    """The running task as its handler sees it."""

    __slots__ = ("_cancel_reason", "_gateway", "_progress", "agent", "completed", "started", "task")

    def __init__(self, task: Claim, gateway: Gateway, agent: str) -> None:
        self.task = task
        self.agent = agent
        self.completed = False
        self.started = time.monotonic()
        self._gateway = gateway
        self._progress: bytes | None = None
        self._cancel_reason: str | None = None

    @property
    def attempt(self) -> int:
        """Which attempt this is, counted from 1."""
        return self.task.attempt

    @property
    def is_last_attempt(self) -> bool:
        """Whether a failure now goes to the dead letters."""
        return self.task.attempt >= self.task.max_attempts

    @property
    def previous_attempts(self) -> list[dict[str, Any]]:
        """What the attempts before this one came to: class, reason, error, agent, times."""
        return self.task.previous or []

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop: a plain function asks, an async one is interrupted."""
        return self._cancel_reason is not None

    def check_cancelled(self) -> None:
        """Raise when the handler should stop; for plain functions in a thread."""
        if self._cancel_reason is not None:
            raise CancelTask(self._cancel_reason)

    @property
    def log(self) -> structlog.typing.FilteringBoundLogger:
        """A logger that knows the task."""
        logger: structlog.typing.FilteringBoundLogger = structlog.get_logger("treadle.task").bind(
            task_id=str(self.task.id), type=self.task.type, attempt=self.task.attempt
        )
        return logger

    def progress(self, value: float | None = None, **detail: Any) -> None:
        """Say how far it is; sent with the next heartbeat, the latest wins."""
        shown = {**detail} if value is None else {"value": value, **detail}
        self._progress = encode_safely(shown)

    @asynccontextmanager
    async def transaction(self, output: Any = None) -> AsyncIterator[Connection]:
        """A transaction whose commit also completes the task: its writes happen exactly once.

        If the claim was superseded, nothing is written and ClaimLost is raised.
        """
        if self.completed:
            raise IllegalTransition(
                f"task {self.task.id} is completed already", hint="Use one transaction per task."
            )
        async with self._gateway.completing(
            self.task.id, self.task.token, lambda: encode_safely(output)
        ) as conn:
            yield conn
        self.completed = True

    def take_progress(self) -> bytes | None:
        """The progress not sent yet, once; for the heartbeat."""
        progress, self._progress = self._progress, None
        return progress

    def keep_progress(self, unsent: bytes | None) -> None:
        """Progress that did not arrive: send it again, unless there is newer."""
        if self._progress is None:
            self._progress = unsent

    def cancel(self, reason: str) -> None:
        """Tell the handler to stop; for the worker."""
        self._cancel_reason = reason
