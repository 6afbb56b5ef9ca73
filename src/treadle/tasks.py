"""A declared task: call its handler, or enqueue it."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload
from uuid import UUID

from treadle.errors import InvalidArgument

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.producer import AnyConnection, AsyncConn, SyncConnection
    from treadle.handles import Handle
    from treadle.worker.registry import Definition


class RetryPolicy(TypedDict, total=False):
    """How failed attempts are retried; what is left out comes from the type, then the queue."""

    strategy: Literal["exponential", "fixed", "immediate"]
    initial_delay_s: float
    multiplier: float
    max_delay_s: float
    jitter: bool
    retry_on: list[str] | None
    no_retry_on: list[str]
    max_rate_limits: int
    poison: bool


class TypeSettings(TypedDict, total=False):
    """Settings of a task type."""

    description: str
    priority: int
    max_attempts: int
    timeout_s: float
    ageing_rate: float
    retry: RetryPolicy


class EnqueueOptions(TypedDict, total=False):
    """What can be said of a task besides its spec."""

    queue: str
    key: str
    keys: Sequence[str | None]
    dedupe: bool
    priority: int
    delay: float | timedelta
    run_at: datetime
    deadline_at: datetime
    timeout_s: float
    max_attempts: int
    ageing_rate: float
    retry: RetryPolicy
    capabilities: list[str]
    assigned_agent: str
    hold: bool
    consumer: str
    title: str
    tags: list[str]
    created_by: str
    source: str
    source_job: str
    external_ref: str
    notes: str
    parent_id: UUID
    dag_id: UUID
    project_id: UUID
    max_cost_usd: float


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


def make_options(
    options: EnqueueOptions, count: int, define: Mapping[str, Any] | None
) -> tuple[str, dict[str, Any], list[str | None] | None]:
    """Split options into the queue, what goes to SQL as json, and the keys."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    queue = str(given.pop("queue", "default"))
    keys: list[str | None] | None = None
    if "keys" in given:
        keys = list(given.pop("keys"))
    if "key" in given:
        if count != 1:
            raise InvalidArgument(
                f"one key for {count} tasks", hint="Give keys=[…], one for each.", argument="key"
            )
        keys = [given.pop("key")]
    delay = given.pop("delay", None)
    if delay is not None:
        given["delay_s"] = delay.total_seconds() if isinstance(delay, timedelta) else delay
    for name in ("run_at", "deadline_at"):
        moment = given.get(name)
        if isinstance(moment, datetime) and moment.tzinfo is None:
            raise InvalidArgument(
                f"{name} has no time zone", hint="Use datetime.now(tz=UTC) + …", argument=name
            )
    if define is not None:
        given["define"] = {name: value for name, value in define.items() if value is not None}
    return queue, given, keys


async def _first(made: Awaitable[list[Handle]]) -> Handle:
    return (await made)[0]
