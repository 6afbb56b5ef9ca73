"""A handle on an enqueued task: ask for its state, wait for its result, cancel it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import anyio

from treadle.errors import ResultTimeout, TaskFailed, TaskNotFound

if TYPE_CHECKING:
    from treadle.app import Treadle


class Handle:
    """One task, as its producer sees it."""

    __slots__ = ("_app", "created", "id")

    def __init__(self, app: Treadle, task_id: UUID, *, created: bool = True) -> None:
        self._app = app
        self.id = task_id
        self.created = created

    def __repr__(self) -> str:
        return f"<Handle {self.id}>"

    async def result(self, timeout: float | None = None) -> Any:
        """The output, once the task is completed; raises TaskFailed or ResultTimeout otherwise."""
        results = await self._app.results()
        try:
            with anyio.fail_after(timeout):
                ended = await results.wait(self.id)
        except TimeoutError:
            raise ResultTimeout(
                f"task {self.id} has not ended within {timeout:g} s",
                hint="It goes on. Wait longer, or see: treadle tasks show",
                task_id=str(self.id),
            ) from None
        if ended.status == "completed":
            return ended.output
        if ended.status == "unknown":
            raise TaskNotFound(
                f"there is no task {self.id}",
                hint="Was the transaction that enqueued it rolled back?",
                task_id=str(self.id),
            )
        raise TaskFailed(
            f"task {self.id} was {ended.status}: {ended.failure_reason or 'no reason given'}",
            hint=f"See its history: treadle tasks show {self.id}",
            task_id=str(self.id),
            status=ended.status,
            failure_class=ended.failure_class,
        )

    async def status(self) -> str:
        """The state of the task now."""
        row = await (await self._app.reader()).task(self.id)
        return str(row["status"])

    async def cancel(self, reason: str | None = None) -> bool:
        """Cancel the task; False when it had ended before."""
        verdicts = await (await self._app.gateway()).cancel_tasks([self.id], reason)
        return verdicts[self.id] == "cancelled"
