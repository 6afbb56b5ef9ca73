"""The handle of an enqueued task: read its state, wait for its result, cancel it.

One poll per process serves all waiters: the first waiter polls for all of them, and another one
takes over when its own task has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

import anyio

from treadle.db.database import Database
from treadle.errors import ResultTimeout, TaskFailed, TaskNotFound, Unavailable
from treadle.fields import Tier
from treadle.models import TaskResult
from treadle.worker.references import TaskReference

if TYPE_CHECKING:
    from treadle.app import Treadle

FIRST_S, LONGEST_S = 0.01, 0.5


class Handle(TaskReference):
    """An enqueued task."""

    __slots__ = ("_app", "created", "id")

    id: UUID

    def __init__(self, app: Treadle, task_id: UUID, *, created: bool = True) -> None:
        self._app = app
        self.id = task_id
        self.created = created

    def __repr__(self) -> str:
        return f"<Handle {self.id}>"

    async def result(self, timeout: float | None = None) -> Any:
        """Wait for the task and return its output; raise TaskFailed or ResultTimeout."""
        # Report a wrong URL or schema now: the wait below continues while there is no database.
        await self._app.db.calls.open()
        try:
            with anyio.fail_after(timeout):
                ended = await self._app.results.wait(self.id)
        except TimeoutError:
            raise ResultTimeout(
                f"task {self.id} has not ended within {timeout:g} s",
                hint="It is still active. Wait longer, or see: treadle tasks show",
                task_id=str(self.id),
            ) from None
        if ended.status == "completed":
            return ended.output
        if ended.status == "unknown":
            raise TaskNotFound(
                f"there is no task {self.id}",
                hint="The transaction that enqueued it may have been rolled back.",
                task_id=str(self.id),
            )
        raise TaskFailed(
            f"task {self.id} ended as {ended.status}: {ended.failure_reason or 'no reason given'}",
            hint=f"See its history: treadle tasks show {self.id}",
            task_id=str(self.id),
            status=ended.status,
            failure_class=ended.failure_class,
        )

    async def status(self) -> str:
        """Return the current state of the task."""
        row = await self._app.db.tasks.get(self.id)
        return str(row["status"])

    async def cancel(self, reason: str | None = None) -> bool:
        """Cancel the task; return False if it had already ended."""
        verdicts = await self._app.db.tasks.cancel([self.id], reason)
        return verdicts[self.id] == "cancelled"

    async def set_priority(
        self,
        priority: int | None = None,
        *,
        tier: Tier | None = None,
        urgency: int | None = None,
        reason: str | None = None,
    ) -> bool:
        """Change the priority of a waiting task; return False once an agent has it or it ended."""
        [done] = await self._app.db.tasks.set_priority(
            [self.id], priority=priority, tier=tier, urgency=urgency, reason=reason
        )
        return done.verdict in ("prioritised", "already")


class _Waiter:
    __slots__ = ("ended", "event", "id")

    def __init__(self, task_id: UUID) -> None:
        self.id = task_id
        self.event = anyio.Event()
        self.ended: TaskResult | None = None


class Results:
    """Polls the results of all awaited tasks of a process."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._waiters: set[_Waiter] = set()
        self._leader: _Waiter | None = None

    async def wait(self, task_id: UUID) -> TaskResult:
        """Wait until a task has ended; the caller sets the timeout."""
        waiter = _Waiter(task_id)
        self._waiters.add(waiter)
        try:
            while waiter.ended is None:
                if self._leader is None:
                    with self._leading(waiter):
                        await self._poll_for(waiter)
                else:
                    await waiter.event.wait()
                    waiter.event = anyio.Event()
            return waiter.ended
        finally:
            self._waiters.discard(waiter)

    @contextmanager
    def _leading(self, waiter: _Waiter) -> Iterator[None]:
        self._leader = waiter
        try:
            yield
        finally:
            self._leader = None
            successor = next((other for other in self._waiters if other.ended is None), None)
            if successor is not None:
                successor.event.set()

    async def _poll_for(self, leader: _Waiter) -> None:
        pause = FIRST_S
        while leader.ended is None:
            try:
                found = await self._db.tasks.read_results(
                    list({waiter.id for waiter in self._waiters})
                )
            except Unavailable:
                found = []
            by_id = {ended.id: ended for ended in found}
            for waiter in self._waiters:
                if waiter.id in by_id and waiter.ended is None:
                    waiter.ended = by_id[waiter.id]
                    waiter.event.set()
            if leader.ended is None:
                await anyio.sleep(pause)
                pause = min(pause * 1.5, LONGEST_S)
