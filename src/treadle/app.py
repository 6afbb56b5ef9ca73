"""The application object: declare tasks, enqueue them, run them.

app = Treadle()

@app.task(max_attempts=5)
async def summarise(url: str) -> str: ...

await summarise.enqueue(url="https://example.org")
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Concatenate, Self, TypeVar, Unpack, overload
from uuid import UUID
from weakref import WeakKeyDictionary

from treadle.artifacts.store import Store, make_store
from treadle.db.calls import LONG, LOST_TRIES, Calls
from treadle.db.database import Database
from treadle.db.pool import Pool, close_pool, make_pool, open_pool
from treadle.db.tasks import AnyConnection, AsyncConn, SyncConnection
from treadle.errors import ConfigurationError, InvalidArgument
from treadle.fields import EnqueueOptions, TypeSettings
from treadle.json import encode
from treadle.masking import excerpt
from treadle.models import Event
from treadle.producer.background import run_in_background, running_loop
from treadle.producer.dag import Dag, DagOptions, OpenDag, dag_document
from treadle.producer.events import TriggerSettings, follow_events
from treadle.producer.handle import Handle, PendingHandle, Results
from treadle.producer.schedule import Schedules
from treadle.producer.task import Anything, P, R, Task, TaskDecorator, enqueue_one
from treadle.services.service import Service
from treadle.settings import (
    Settings,
    load_settings,
    new_agent_id,
    warn_about_unknown_settings,
)
from treadle.worker import context
from treadle.worker.artifacts import ArtifactReader, Reference, open_artifact
from treadle.worker.context import Context
from treadle.worker.loop import Worker, WorkerOptions, WorkerSettings
from treadle.worker.registry import Definition, Handler, Registry, split_inputs
from treadle.worker.validation import OUTPUT_LIMIT, ValidatorCommand, ValidatorFunction

T = TypeVar("T")


class Artifacts:
    """The files of tasks, for code outside handlers; reached as `app.artifacts`."""

    def __init__(self, app: Treadle) -> None:
        self._app = app

    async def open(self, artifact: Reference) -> ArtifactReader:
        """Open the file of an artifact to read in chunks: `async for chunk in file`."""
        return await open_artifact(self._app.db, self._app.store, artifact)


class Treadle:
    """An application: its tasks, and the database that stores them."""

    # The statement timeout of its connections; 0 means no timeout. The server sets it.
    statement_timeout_s = 0.0
    # The application_name of its connections in pg_stat_activity.
    pool_name = "treadle"
    # Commands of the CLI set this: a person waits, so a call may take longer than usual.
    one_shot = False

    def __init__(self, url: str | None = None, *, settings: Settings | None = None) -> None:
        self.registry = Registry()
        self.connect_to(url, settings)

    def connect_to(self, url: str | None, settings: Settings | None) -> None:
        """Use another database and other settings; connections are opened on first use."""
        self._given_url = url
        self._settings = settings
        self._store: Store | None = None
        self.db = Database(Calls.lazy(self._own_pool))
        self._results: WeakKeyDictionary[asyncio.AbstractEventLoop, Results] = WeakKeyDictionary()
        self.artifacts = Artifacts(self)
        self.schedules = Schedules(self.registry, self.db)
        # Declare a schedule: app.schedule("nightly", "30 2 * * *", report.call()).
        self.schedule = self.schedules.add

    @property
    def results(self) -> Results:
        """The poll for the results that the running event loop waits for."""
        loop = asyncio.get_running_loop()
        found = self._results.get(loop)
        if found is None:
            found = self._results[loop] = Results(self.db)
        return found

    def run(self, work: Coroutine[Any, Any, T], *, timeout: float | None = None) -> T:
        """Run a coroutine of this application in sync code: `app.run(app.emit("deployed"))`.

        It runs in a background thread, which keeps its connections. In async code, await the
        coroutine instead.
        """
        if running_loop() is not None:
            work.close()
            raise InvalidArgument(
                "an event loop is running in this thread",
                hint="Await the coroutine: for a result, await handle.result()",
            )
        return run_in_background(work, timeout=timeout, owner=self)

    @property
    def sync_timeout_s(self) -> float:
        """How long a sync call may take: to connect, and to repeat a call that was lost."""
        return self.settings.connect_timeout_s + (LOST_TRIES + 1) * self._call_timeout_s

    @property
    def settings(self) -> Settings:
        if self._settings is None:
            self._settings = load_settings(database_url=self._given_url)
            warn_about_unknown_settings()
        return self._settings

    @property
    def url(self) -> str:
        """The URL of the database; raises ConfigurationError if none is configured."""
        url = self._given_url or self.settings.database_url
        if not url:
            raise ConfigurationError(
                "no database is configured",
                hint="Set TREADLE_DATABASE_URL=postgresql://…, or try: treadle dev",
            )
        return url

    @property
    def store(self) -> Store:
        """The store of artifacts, which is opened on first use."""
        if self._store is None:
            self._store = make_store(self.settings)
        return self._store

    def use(self, url: str) -> None:
        """Use this database instead; call it before the first connection is opened."""
        self._given_url = url

    # The same as in TaskDecorator, for the decorator without parentheses.
    @overload
    def task(
        self, handler: Callable[Concatenate[Anything, P], Awaitable[R]], /
    ) -> Task[..., R]: ...

    @overload
    def task(self, handler: Callable[Concatenate[Anything, P], R], /) -> Task[..., R]: ...

    @overload
    def task(self, handler: Callable[Concatenate[Context, P], Awaitable[R]], /) -> Task[P, R]: ...

    @overload
    def task(self, handler: Callable[P, Awaitable[R]], /) -> Task[P, R]: ...

    @overload
    def task(self, handler: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...

    @overload
    def task(self, handler: Callable[P, R], /) -> Task[P, R]: ...

    @overload
    def task(
        self,
        type: str | None = None,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        **settings: Unpack[TypeSettings],
    ) -> TaskDecorator: ...

    def task(
        self, what: Handler | str | None = None, /, *, queue: str = "default", **settings: Any
    ) -> Any:
        """Declare a function as the handler of a task type, by default of its own name.

        `@app.task`, `@app.task("name")` and `@app.task(max_attempts=5)` all work.
        """
        name = settings.pop("name", None)
        if isinstance(what, str):
            name = what

        def declare(handler: Handler) -> Task:
            definition = Definition(
                handler,
                name=name or str(getattr(handler, "__name__", "task")),
                queue=queue,
                settings={"description": _first_line(handler), **settings},
            )
            self.registry.add(definition)
            return Task(self, definition)

        if what is None or isinstance(what, str):
            return declare
        if callable(what):
            return declare(what)
        raise ConfigurationError(
            f"{excerpt(what)} is neither a handler nor the name of a type",
            hint="Write @app.task, @app.task('name') or @app.task(max_attempts=5).",
        )

    def queue(self, name: str) -> str:
        """Declare a queue, which is created if it is missing; return its name.

        Its settings belong to the operator: treadle queues update.
        """
        self.registry.declared_queues.add(name)
        return name

    def validator(self, name: str) -> Callable[[ValidatorFunction], ValidatorFunction]:
        """Register a function as the validator of this name.

        It is called with `output`, the settings of the task as keyword arguments, and `ctx` if it
        has that parameter.
        """

        def declare(function: ValidatorFunction) -> ValidatorFunction:
            self.registry.validators.add(name, function)
            return function

        return declare

    def command(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        timeout_s: float | None = None,
        output_limit: int = OUTPUT_LIMIT,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Register a program for the validator test_pass; exit code 0 accepts the output.

        It reads {"output": …, "task": …} from stdin. Its environment has no database settings.
        """
        words = () if isinstance(arguments, str) else tuple(arguments)
        where = None if cwd is None else str(cwd)
        command = ValidatorCommand(name, words, timeout_s, output_limit, where, dict(env or {}))
        self.registry.validators.add_command(command)

    @overload
    def enqueue(
        self,
        type: str,
        spec: Mapping[str, Any] | None = None,
        *,
        conn: SyncConnection,
        **options: Unpack[EnqueueOptions],
    ) -> Handle: ...

    @overload
    def enqueue(
        self,
        type: str,
        spec: Mapping[str, Any] | None = None,
        *,
        conn: AsyncConn | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> PendingHandle: ...

    def enqueue(
        self,
        type: str,
        spec: Mapping[str, Any] | None = None,
        *,
        conn: AnyConnection | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> Handle:
        """Enqueue a task by the name of its type, without its handler; see `Task.enqueue`."""
        given, chosen = split_inputs(spec or {}, options)
        return enqueue_one(self, type, given, conn=conn, options=chosen)

    def dag(
        self, name: str, *, conn: AnyConnection | None = None, **options: Unpack[DagOptions]
    ) -> Dag:
        """Build a DAG in a `with` block; with `conn` it is part of the caller's transaction."""
        return Dag(self, name, options, conn)

    async def open_dag(self, name: str, **options: Unpack[DagOptions]) -> OpenDag:
        """Open a DAG to add tasks over time; the same key opens the same DAG."""
        document = dag_document(name, options)
        return OpenDag(self, await self.db.dags.open(document.pop("name"), document))

    async def answer(
        self, wait_id: UUID, value: Any, *, by: str | None = None, note: str | None = None
    ) -> str:
        """Answer a wait.

        Return `answered`, `recorded` if more approvals are needed, or `already`.
        """
        return await self.db.waits.answer(wait_id, encode(value, name="value"), by, note)

    async def emit(
        self,
        event: str,
        payload: Any = ...,
        *,
        key: str = "",
        dedup_key: str | None = None,
        by: str | None = None,
    ) -> int:
        """Emit an event and resume the tasks waiting for it; a `dedup_key` is used only once."""
        text = encode({} if payload is ... else payload, name="payload")
        return await self.db.events.emit(
            event,
            text,
            key=key,
            dedup_key=dedup_key,
            actor=by,
            task_id=context.current_task_id.get(),
        )

    async def fork(
        self, task: UUID | Handle, /, *, from_step: str, by: str | None = None, **changes: Any
    ) -> Handle:
        """Create a task that keeps the steps before `from_step`; `changes` replace arguments."""
        task_id = task.id if isinstance(task, Handle) else task
        made = await self.db.tasks.fork(
            task_id, from_step, {"spec": changes} if changes else {}, by
        )
        return Handle(self, made)

    async def trigger(
        self,
        name: str,
        *,
        on: str | None = None,
        by: str | None = None,
        **settings: Unpack[TriggerSettings],
    ) -> UUID:
        """Create or change a trigger, which enqueues `task` or `dag` when the event `on` happens.

        `{"$event": "data.url"}` in the template is replaced by that value of the event. `filter`
        is what the event must contain. The login needs the role treadle_operator.
        """
        merged: dict[str, Any] = {**settings} if on is None else {"on": on, **settings}
        trigger_id, _ = await self.db.triggers.define(name, merged, by)
        return trigger_id

    def events(
        self, kinds: Sequence[str] | None = None, *, after: str | None = None, poll_s: float = 1.0
    ) -> AsyncGenerator[Event]:
        """Yield events as they happen, each exactly once.

        Start now, or after the `place` of an event that was read before; "0.0" is the beginning.
        An event is yielded once all transactions older than its own have ended.
        """
        return follow_events(self.db, self._listen_url, kinds, after=after, poll_s=poll_s)

    @asynccontextmanager
    async def worker(self, **overrides: Unpack[WorkerSettings]) -> AsyncIterator[Worker]:
        """Open a worker with its own connections.

        `async with app.worker() as worker: await worker.run()`
        """
        settings = self.settings
        listen_url = self._listen_url
        options: dict[str, Any] = {
            "agent": settings.agent_id or new_agent_id(),
            "queues": settings.queues,
            "slots": settings.slots,
            "prefetch": settings.prefetch,
            "capabilities": settings.capabilities,
            "models": settings.models,
            "budget_usd": settings.budget_usd,
            "poll_s": settings.poll_s,
            "heartbeat_s": settings.heartbeat_s,
            "claim_ttl_s": settings.claim_ttl_s,
            "drain_s": settings.drain_s,
            "listen_url": listen_url,
            **overrides,
        }
        if options["budget_usd"] is not None and not (settings.agent_id or "agent" in overrides):
            raise ConfigurationError(
                "a worker with a budget needs an id that stays the same",
                hint="Set it too: --agent NAME or TREADLE_AGENT_ID=NAME",
            )
        self.registry.validators.limit_s = settings.validator_timeout_s
        # A check of the connection before each poll would double the statements of idle workers.
        most = min(options["slots"], settings.transaction_connections)
        async with (
            self._pool("treadle-worker", check_after_s=4 * settings.poll_s) as pool,
            self._pool(
                "treadle-transactions", size=most, smallest=0, patience="always"
            ) as transactions,
        ):
            db = Database(Calls(pool))
            await db.calls.check_schema()
            await self.schedules.offer(db)
            yield Worker(
                self.registry,
                db,
                WorkerOptions(
                    **options, connections=2 * settings.pool_size + most + (listen_url is not None)
                ),
                handlers=await self.db.for_handlers(transactions),
                store=self.store,
            )

    async def run_worker(self, **overrides: Unpack[WorkerSettings]) -> None:
        """Run a worker until it is drained."""
        async with self.worker(**overrides) as worker:
            await worker.run()

    @asynccontextmanager
    async def service(
        self, kind: type[Service], *, health_file: Path | None = None, signals: bool = False
    ) -> AsyncIterator[Service]:
        """Open a service: `async with app.service(Reaper) as reaper: await reaper.run()`."""
        settings = self.settings
        async with self._pool(f"treadle-{kind.name}") as pool:
            db = Database(Calls(pool))
            await db.calls.check_schema()
            service = kind(
                db,
                longest_s=settings.service_s,
                listen_url=self._listen_url,
                health_file=health_file,
                signals=signals,
            )
            service.configure(settings)
            yield service

    async def close(self) -> None:
        """Close the connections."""
        self._results.clear()
        await self.db.calls.close()

    async def __aenter__(self) -> Self:
        await self.db.calls.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @asynccontextmanager
    async def _pool(self, name: str, **options: Any) -> AsyncIterator[Pool]:
        pool = await open_pool(self._make_pool(name, **options))
        try:
            yield pool
        finally:
            await close_pool(pool)

    def _own_pool(self) -> Pool:
        self.db.calls.statement_limit_s = self.settings.handler_statement_timeout_s
        return self._make_pool(self.pool_name)

    def _make_pool(self, name: str, **options: Any) -> Pool:
        settings = self.settings
        given = {"size": settings.pool_size, "call_timeout_s": self._call_timeout_s, **options}
        return make_pool(
            self.url,
            prepare=settings.prepare,
            connect_timeout_s=settings.connect_timeout_s,
            # PostgreSQL should cancel a slow statement before the call times out.
            statement_timeout_s=min(self.statement_timeout_s, 0.9 * self._call_timeout_s),
            name=name,
            **given,
        )

    @property
    def _listen_url(self) -> str | None:
        settings = self.settings
        return (settings.listen_url or self.url) if settings.notify else None

    @property
    def _call_timeout_s(self) -> float:
        return self.settings.call_timeout_s * (LONG if self.one_shot else 1)


def _first_line(handler: Handler) -> str | None:
    text = (handler.__doc__ or "").strip()
    return text.splitlines()[0] if text else None
