"""The handle of an enqueued task: read its state, wait for its result, cancel it.

One poll per process serves all waiters: the first waiter polls for all of them, and another one
takes over when its own task has ended.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic
from uuid import UUID

import anyio
from typing_extensions import TypeVar

from treadle.db.database import Database
from treadle.errors import InvalidArgument, ResultTimeout, TaskFailed, TaskNotFound, Unavailable
from treadle.fields import Tier
from treadle.models import TaskResult
from treadle.producer.background import running_loop
from treadle.worker.references import TaskReference

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.worker.registry import Definition

FIRST_S, LONGEST_S = 0.01, 0.5


R_co = TypeVar("R_co", covariant=True, default=Any)


class Handle(TaskReference, Generic[R_co]):
    """An enqueued task; `R_co` is what its handler returns."""

    __slots__ = ("_app", "_definition", "created", "id")

    id: UUID

    def __init__(
        self,
        app: Treadle,
        task_id: UUID,
        *,
        created: bool = True,
        definition: Definition | None = None,
    ) -> None:
        self._app = app
        self._definition = definition
        self.id = task_id
        self.created = created

    def __repr__(self) -> str:
        return f"<Handle {self.id}>"

    def wait(self, timeout: float | None = None) -> R_co:
        """Wait for the result in sync code; see `result`."""
        return self._app.run(self.result(timeout))

    async def result(self, timeout: float | None = None) -> R_co:
        """Wait for the task and return its output; raise TaskFailed or ResultTimeout.

        The output is JSON. If the handler is known here and returns a model, a dataclass or
        another type that is not JSON, the output is converted to it.
        """
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
            output: R_co = (
                ended.output if self._definition is None else self._definition.output(ended.output)
            )
            return output
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


T_co = TypeVar("T_co", covariant=True)


class _Pending(Coroutine[Any, Any, T_co]):
    """A call that can be awaited; in sync code it is done at once.

    It is a coroutine, so that `asyncio.run`, `gather` and task groups accept it.
    """

    __slots__ = ()

    _work: Coroutine[Any, Any, T_co] | None
    _steps: Generator[Any, Any, T_co] | None

    def _start(self, app: Treadle, work: Coroutine[Any, Any, T_co], *, elsewhere: bool) -> None:
        """Take the work; without a running event loop do it now, if it may run `elsewhere`."""
        self._work = work
        self._steps = None
        if elsewhere and running_loop() is None:
            self._work = None
            self._finish(app.run(work, timeout=app.sync_timeout_s))

    @abstractmethod
    def _finish(self, result: Any) -> None:
        """Take the result over."""

    @abstractmethod
    def _result(self) -> T_co:
        """Return the result."""

    def __await__(self) -> Generator[Any, Any, T_co]:
        if self._work is not None:
            work, self._work = self._work, None
            self._finish((yield from work.__await__()))
        return self._result()

    def send(self, value: Any) -> Any:
        if self._steps is None:
            self._steps = self.__await__()
        return self._steps.send(value)

    def throw(self, *error: Any) -> Any:
        if self._steps is None:
            self._steps = self.__await__()
        return self._steps.throw(*error)

    def close(self) -> None:
        if self._steps is not None:
            self._steps.close()
        if self._work is not None:
            self._work.close()


class PendingHandle(Handle[R_co], _Pending[Handle[R_co]]):
    """What `enqueue` returns: await it in async code, use it as a handle in sync code."""

    __slots__ = ("_steps", "_work")

    def __init__(
        self, app: Treadle, work: Coroutine[Any, Any, list[Handle[R_co]]], *, elsewhere: bool
    ) -> None:
        self._app = app
        self._definition = None
        self._start(app, _first(work), elsewhere=elsewhere)

    def __repr__(self) -> str:
        return "<Handle, not awaited>" if self._work is not None else super().__repr__()

    def __getattr__(self, name: str) -> Any:
        if name in ("id", "created"):
            raise InvalidArgument(
                "the task does not exist yet", hint="Await it: handle = await task.enqueue(…)"
            )
        raise AttributeError(name)

    def _finish(self, result: Handle[R_co]) -> None:
        self.id, self.created, self._definition = result.id, result.created, result._definition

    def _result(self) -> Handle[R_co]:
        return Handle(self._app, self.id, created=self.created, definition=self._definition)


class PendingHandles(list[Handle[R_co]], _Pending[list[Handle[R_co]]]):
    """What `enqueue_many` returns: await it in async code, use it as a list in sync code."""

    __slots__ = ("_steps", "_work")

    def __init__(
        self, app: Treadle, work: Coroutine[Any, Any, list[Handle[R_co]]], *, elsewhere: bool
    ) -> None:
        super().__init__()
        self._start(app, work, elsewhere=elsewhere)

    def _finish(self, result: list[Handle[R_co]]) -> None:
        self.extend(result)

    def _result(self) -> list[Handle[R_co]]:
        return list(self)


async def _first(work: Coroutine[Any, Any, list[Handle[R_co]]]) -> Handle[R_co]:
    return (await work)[0]


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
