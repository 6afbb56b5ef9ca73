"""Declared tasks: call the handler, or enqueue the task."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

from treadle.db.pool import is_sync
from treadle.db.tasks import AnyConnection, AsyncConn, SyncConnection, enqueue_async, enqueue_sync
from treadle.errors import InvalidArgument
from treadle.fields import EnqueueOptions
from treadle.json import encode
from treadle.producer.handle import Handle
from treadle.worker.registry import Call, define_queue, make_options

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.models import Enqueued
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
        """Return the task with other options: priority, delay, key and so on."""
        return Task(self._app, self.definition, options={**self._options, **options})

    def call(self, /, **arguments: Any) -> Call:
        """Return a call of the task with arguments, to spawn or to add to a DAG."""
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
        """Enqueue the task with these arguments; on a sync connection, this does not await."""
        self.definition.arguments(arguments)
        return enqueue_one(
            self._app,
            self.name,
            arguments,
            conn=conn,
            options={"queue": self.definition.queue, **self._options},
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
    ) -> list[Handle]: ...

    @overload
    def enqueue_many(
        self,
        /,
        arguments: Sequence[Mapping[str, Any]],
        *,
        keys: Sequence[str | None] | None = None,
        conn: AsyncConn | None = None,
    ) -> Awaitable[list[Handle]]: ...

    def enqueue_many(
        self,
        /,
        arguments: Sequence[Mapping[str, Any]],
        *,
        keys: Sequence[str | None] | None = None,
        conn: AnyConnection | None = None,
    ) -> list[Handle] | Awaitable[list[Handle]]:
        """Enqueue one task for each set of arguments, in one statement; `keys` has one for each."""
        for each in arguments:
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


def enqueue_one(
    app: Treadle,
    type: str,
    spec: Mapping[str, Any],
    *,
    conn: AnyConnection | None,
    options: EnqueueOptions,
    definition: Definition | None = None,
) -> Handle | Awaitable[Handle]:
    """Enqueue one task; return a handle on a sync connection, else an awaitable."""
    made = enqueue_specs(app, type, [spec], conn=conn, options=options, definition=definition)
    return made[0] if isinstance(made, list) else _first(made)


async def _first(made: Awaitable[list[Handle]]) -> Handle:
    return (await made)[0]


def enqueue_specs(
    app: Treadle,
    type: str,
    specs: Sequence[Mapping[str, Any]],
    *,
    keys: Sequence[str | None] | None = None,
    conn: AnyConnection | None,
    options: EnqueueOptions,
    definition: Definition | None = None,
) -> list[Handle] | Awaitable[list[Handle]]:
    """Enqueue tasks of one type; return handles on a sync connection, else an awaitable."""
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
        return _handles(app, enqueue_sync(conn, queue, type, **call))
    return _enqueue_later(app, conn, queue, type, call)


async def _enqueue_later(
    app: Treadle, conn: Any, queue: str, type: str, call: dict[str, Any]
) -> list[Handle]:
    if conn is not None:
        return _handles(app, await enqueue_async(conn, queue, type, **call))
    return _handles(app, await app.db.tasks.enqueue_batch(queue, type, **call))


def _handles(app: Treadle, made: list[Enqueued]) -> list[Handle]:
    return [Handle(app, each.id, created=each.created) for each in made]
