"""A declared task: call its handler, or enqueue it."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

from treadle.fields import EnqueueOptions
from treadle.worker.registry import Call

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.tasks import AnyConnection, AsyncConn, SyncConnection
    from treadle.producer.handle import Handle
    from treadle.worker.registry import Definition


class Task:
    """A handler that can be enqueued; calling it runs the function itself."""

    def __init__(
        self,
        app: Treadle,
        definition: Definition,
        *,
        options: EnqueueOptions | None = None,
    ) -> None:
        self._app = app
        self._options: EnqueueOptions = options or {}
        self.definition = definition
        self.name = definition.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.definition.handler(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    def using(self, **options: Unpack[EnqueueOptions]) -> Task:
        """The same task with options for the enqueue: priority, delay, key and so on."""
        return Task(self._app, self.definition, options={**self._options, **options})

    def call(self, /, **arguments: Any) -> Call:
        """The task with arguments, to be spawned or added to a DAG."""
        return Call(self.definition, arguments, self._options)

    @overload
    def enqueue(self, /, *, conn: SyncConnection, **arguments: Any) -> Handle: ...

    @overload
    def enqueue(
        self, /, *, conn: AsyncConn | None = None, **arguments: Any
    ) -> Awaitable[Handle]: ...

    def enqueue(
        self, /, *, conn: AnyConnection | None = None, **arguments: Any
    ) -> Handle | Awaitable[Handle]:
        """Enqueue with these arguments; with a plain connection it is done when this returns."""
        made = self._send([arguments], conn)
        if isinstance(made, list):
            return made[0]
        return _first(made)

    @overload
    def enqueue_many(
        self, /, arguments: Sequence[Mapping[str, Any]], *, conn: SyncConnection
    ) -> list[Handle]: ...

    @overload
    def enqueue_many(
        self, /, arguments: Sequence[Mapping[str, Any]], *, conn: AsyncConn | None = None
    ) -> Awaitable[list[Handle]]: ...

    def enqueue_many(
        self, /, arguments: Sequence[Mapping[str, Any]], *, conn: AnyConnection | None = None
    ) -> list[Handle] | Awaitable[list[Handle]]:
        """Enqueue one task for each set of arguments, in one statement."""
        return self._send(arguments, conn)

    def _send(
        self, arguments: Sequence[Mapping[str, Any]], conn: AnyConnection | None
    ) -> list[Handle] | Awaitable[list[Handle]]:
        for each in arguments:
            self.definition.arguments(each)
        return self._app.enqueue_specs(
            self.name,
            arguments,
            conn=conn,
            options={"queue": self.definition.queue, **self._options},
            define=self.definition.settings,
        )


async def _first(made: Awaitable[list[Handle]]) -> Handle:
    return (await made)[0]
