"""Declared tasks: call the handler, or enqueue the task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Protocol, Unpack, overload

from typing_extensions import ParamSpec, TypeVar

from treadle.db.pool import is_sync
from treadle.db.tasks import AnyConnection, AsyncConn, SyncConnection, enqueue_async, enqueue_sync
from treadle.errors import InvalidArgument
from treadle.fields import EnqueueOptions
from treadle.json import encode
from treadle.producer.handle import Handle, PendingHandle, PendingHandles
from treadle.worker.registry import Call, define_queue, make_options

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.models import Enqueued
    from treadle.worker.context import Context
    from treadle.worker.registry import Definition


P = ParamSpec("P", default=...)
R_co = TypeVar("R_co", covariant=True, default=Any)
R = TypeVar("R")


class Task(Generic[P, R_co]):
    """A handler that can be enqueued; calling it runs the function itself.

    `P` are the parameters of the handler without its `ctx`, and `R_co` is what it returns.
    """

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

    def using(self, **options: Unpack[EnqueueOptions]) -> Task[P, R_co]:
        """Return the task with other options: priority, delay, key and so on."""
        return Task(self._app, self.definition, options={**self._options, **options})

    def call(self, /, **arguments: Any) -> Call:
        """Return a call of the task with arguments, to spawn or to add to a DAG."""
        return Call(self.definition, arguments, self._options)

    @overload
    def enqueue(  # type: ignore[overload-overlap]
        self, /, *, conn: SyncConnection, **arguments: Any
    ) -> Handle[R_co]: ...

    @overload
    def enqueue(self, /, *, conn: AsyncConn | None, **arguments: Any) -> PendingHandle[R_co]: ...

    @overload
    def enqueue(self, /, *args: P.args, **arguments: P.kwargs) -> PendingHandle[R_co]: ...

    def enqueue(self, /, *args: Any, **arguments: Any) -> Any:
        """Enqueue the task with these arguments.

        Await it in async code. Without a running event loop, and on a sync connection of your own,
        the task is enqueued when this returns. The output of another task can be an argument:
        `report.enqueue(facts=handle.output)`.
        """
        conn: AnyConnection | None = arguments.pop("conn", None)
        if args:
            arguments = self.definition.named(args, arguments)
        given, options = self.definition.split(
            arguments, {"queue": self.definition.queue, **self._options}
        )
        return enqueue_one(
            self._app,
            self.name,
            given,
            conn=conn,
            options=options,
            definition=self.definition,
        )

    @overload
    def enqueue_many(
        self,
        /,
        arguments: Sequence[Mapping[str, Any]],
        *,
        keys: Sequence[str | None] | None = None,
        conn: SyncConnection,
    ) -> list[Handle[R_co]]: ...

    @overload
    def enqueue_many(
        self,
        /,
        arguments: Sequence[Mapping[str, Any]],
        *,
        keys: Sequence[str | None] | None = None,
        conn: AsyncConn | None = None,
    ) -> PendingHandles[R_co]: ...

    def enqueue_many(
        self,
        /,
        arguments: Sequence[Mapping[str, Any]],
        *,
        keys: Sequence[str | None] | None = None,
        conn: AnyConnection | None = None,
    ) -> Any:
        """Enqueue one task for each set of arguments, in one statement; `keys` has one for each."""
        inputs = self._options.get("inputs", {})
        for each in arguments:
            if inputs:
                self.definition.check(each, inputs)
            else:
                self.definition.arguments(each)
        return enqueue_specs(
            self._app,
            self.name,
            arguments,
            keys=keys,
            conn=conn,
            options={"queue": self.definition.queue, **self._options},
            definition=self.definition,
        )


class Anything:
    """No handler names this class, so a parameter that accepts it accepts everything."""


class TaskDecorator(Protocol):
    """What `app.task(...)` returns: it makes a task of a handler.

    A `ctx` must be the first parameter, so that type checkers know that it is not an argument. If
    the first parameter accepts everything, it may be either, and arguments are not checked.
    """

    @overload
    def __call__(
        self, handler: Callable[Concatenate[Anything, P], Awaitable[R]], /
    ) -> Task[..., R]: ...

    @overload
    def __call__(self, handler: Callable[Concatenate[Anything, P], R], /) -> Task[..., R]: ...

    @overload
    def __call__(
        self, handler: Callable[Concatenate[Context, P], Awaitable[R]], /
    ) -> Task[P, R]: ...

    @overload
    def __call__(self, handler: Callable[P, Awaitable[R]], /) -> Task[P, R]: ...

    @overload
    def __call__(self, handler: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...

    @overload
    def __call__(self, handler: Callable[P, R], /) -> Task[P, R]: ...


def enqueue_one(
    app: Treadle,
    type: str,
    spec: Mapping[str, Any],
    *,
    conn: AnyConnection | None,
    options: EnqueueOptions,
    definition: Definition | None = None,
) -> Handle:
    """Enqueue one task; without a sync connection, the handle is pending in async code."""
    made = _enqueue(app, type, [spec], conn=conn, options=options, definition=definition)
    return made[0] if isinstance(made, list) else PendingHandle(app, made, elsewhere=conn is None)


def enqueue_specs(
    app: Treadle,
    type: str,
    specs: Sequence[Mapping[str, Any]],
    *,
    keys: Sequence[str | None] | None = None,
    conn: AnyConnection | None,
    options: EnqueueOptions,
    definition: Definition | None = None,
) -> list[Handle]:
    """Enqueue tasks of one type; without a sync connection, the list is pending in async code."""
    made = _enqueue(app, type, specs, keys=keys, conn=conn, options=options, definition=definition)
    return made if isinstance(made, list) else PendingHandles(app, made, elsewhere=conn is None)


def _enqueue(
    app: Treadle,
    type: str,
    specs: Sequence[Mapping[str, Any]],
    *,
    keys: Sequence[str | None] | None = None,
    conn: AnyConnection | None,
    options: EnqueueOptions,
    definition: Definition | None = None,
) -> list[Handle] | Coroutine[Any, Any, list[Handle]]:
    """Enqueue tasks of one type now on a sync connection, else return the work."""
    queue, given, key = make_options(options)
    if definition is not None:
        given["define"] = definition.define(queue)
    elif define := define_queue(queue, app.registry.declared_queues):
        given["define"] = define
    if key is not None:
        if keys is not None or len(specs) != 1:
            raise InvalidArgument(
                f"one key for {len(specs)} tasks",
                hint="Pass one key for each task: enqueue_many(…, keys=[…])",
                argument="key",
            )
        keys = [key]
    call: dict[str, Any] = {
        "specs": [encode(spec) for spec in specs],
        "options": encode(given, name="options"),
        "keys": keys,
    }
    if conn is not None and is_sync(conn):
        return _handles(app, enqueue_sync(conn, queue, type, **call), definition)
    return _enqueue_later(app, conn, queue, type, call, definition)


async def _enqueue_later(
    app: Treadle,
    conn: Any,
    queue: str,
    type: str,
    call: dict[str, Any],
    definition: Definition | None,
) -> list[Handle]:
    if conn is not None:
        return _handles(app, await enqueue_async(conn, queue, type, **call), definition)
    return _handles(app, await app.db.tasks.enqueue_batch(queue, type, **call), definition)


def _handles(app: Treadle, made: list[Enqueued], definition: Definition | None) -> list[Handle]:
    return [Handle(app, each.id, created=each.created, definition=definition) for each in made]
