"""Handles on DAGs: ask how far one is, wait for its end, fill it, start it, cancel it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

import anyio

from treadle.errors import ResultTimeout, Unavailable
from treadle.handles import Handle
from treadle.models import DagState
from treadle.nodes import After, DagTask, Input, id_of, task_json

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.options import EnqueueOptions
    from treadle.tasks import Task
    from treadle.worker.call import Call

ENDED = frozenset({"completed", "cancelled"})
FIRST_S, LONGEST_S = 0.01, 0.5


class DagHandle:
    """One DAG, as its producer sees it."""

    def __init__(self, app: Treadle, dag_id: UUID, *, created: bool = True) -> None:
        self._app = app
        self.id = dag_id
        self.created = created

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    async def state(self) -> DagState:
        """How far it is now."""
        return await (await self._app.gateway()).read_dag(self.id)

    async def wait(self, timeout: float | None = None) -> DagState:
        """Wait until it has ended, and say how; one that failed still waits for a person."""
        status: str | None = None
        pause = FIRST_S
        try:
            with anyio.fail_after(timeout):
                while (status := await self._status_or(status)) not in ENDED:
                    await anyio.sleep(pause)
                    pause = min(pause * 1.5, LONGEST_S)
                return await self.state()
        except TimeoutError:
            known = f"; it is {status}" if status else ""
            raise ResultTimeout(
                f"DAG {self.id} has not ended within {timeout:g} s{known}",
                hint=f"See what it waits for: treadle dag show {self.id}",
                dag_id=str(self.id),
                status=status,
            ) from None

    async def cancel(self, reason: str | None = None) -> int:
        """Cancel what has not ended; returns how many tasks that were."""
        return await (await self._app.gateway()).cancel_dag(self.id, reason)

    async def retry(self, note: str | None = None) -> int:
        """Run what gave up or was cancelled again; returns how many tasks that were."""
        return await (await self._app.gateway()).retry_dag(self.id, note)

    async def _status_or(self, before: str | None) -> str | None:
        try:
            return await (await self._app.gateway()).dag_status(self.id)
        except Unavailable:
            return before


class OpenDag(DagHandle):
    """A DAG that is filled bit by bit; nothing of it runs before it is started."""

    async def add(
        self,
        task: Task | Call | str,
        /,
        *,
        name: str | None = None,
        after: After | Iterable[After] = (),
        inputs: Mapping[str, Input] | None = None,
        options: EnqueueOptions | None = None,
        **arguments: Any,
    ) -> DagTask:
        """Add a task. With a name it can be repeated: the second time is the first task."""
        described = task_json(
            task, arguments, registry=self._app.registry, named=id_of,
            name=name, after=after, inputs=inputs, options=options,
        )  # fmt: skip
        [made] = await (await self._app.gateway()).add_tasks(self.id, [described])
        handle = DagTask(self._app, made.id, created=made.created)
        handle.name = name
        return handle

    async def depend(self, task: Handle, on: Handle, *, optional: bool = False) -> bool:
        """Make a task wait for another; False when it did so before."""
        gateway = await self._app.gateway()
        return await gateway.add_dependency(task.id, on.id, optional=optional)

    async def start(self) -> int:
        """Let its tasks run."""
        return await (await self._app.gateway()).start_dag(self.id)
