"""The application object: declare tasks, enqueue them, run them.

app = Treadle()

@app.task(max_attempts=5)
async def summarise(url: str) -> str: ...

await summarise.enqueue(url="https://example.org")
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack, overload
from uuid import UUID

from treadle.artifacts.store import Store, make_store
from treadle.db.calls import LONG, Calls
from treadle.db.database import Database
from treadle.db.pool import Pool, close_pool, is_sync, make_pool, open_pool
from treadle.db.tasks import AnyConnection, AsyncConn, SyncConnection, enqueue_async, enqueue_sync
from treadle.errors import ConfigurationError
from treadle.fields import EnqueueOptions, TypeSettings, make_options
from treadle.json import encode
from treadle.models import Enqueued, Event
from treadle.producer.dag import Dag, DagOptions, OpenDag, dag_document
from treadle.producer.events import TriggerSettings, follow_events
from treadle.producer.handle import Handle, Results
from treadle.producer.schedule import Schedules
from treadle.producer.task import Task
from treadle.services.service import Service
from treadle.settings import Settings, load_settings, new_agent_id
from treadle.worker import context
from treadle.worker.artifacts import ArtifactReader, Reference, open_artifact
from treadle.worker.loop import Worker, WorkerOptions
from treadle.worker.registry import Definition, Handler, Registry
from treadle.worker.validation import OUTPUT_LIMIT, ValidatorCommand, ValidatorFunction


class Artifacts:
    """The files of tasks, for code that is not a handler; reached as `app.artifacts`."""

    def __init__(self, app: Treadle) -> None:
        self._app = app

    async def open(self, artifact: Reference) -> ArtifactReader:
        """The file of an artifact, to be read in parts: `async for chunk in file`."""
        return await open_artifact(self._app.db, self._app.store, artifact)


class WorkerSettings(TypedDict, total=False):
    """What `app.worker()` takes; the rest comes from the settings."""

    agent: str
    queues: Sequence[str]
    slots: int
    prefetch: int
    capabilities: Sequence[str]
    heartbeat_s: float
    claim_ttl_s: float
    drain_s: float
    health_file: Path
    until_empty: bool
    signals: bool


class Treadle:
    """Tasks, and the database they live in."""

    # The longest that a statement may take, for who answers requests; 0 is any time.
    statement_timeout_s = 0.0
    # What its connections are called in pg_stat_activity.
    pool_name = "treadle"
    # For a command that makes few calls, however long they take: somebody looks on.
    one_shot = False

    def __init__(self, url: str | None = None, *, settings: Settings | None = None) -> None:
        self.registry = Registry()
        self.connect_to(url, settings)

    def connect_to(self, url: str | None, settings: Settings | None) -> None:
        """Set all parts up anew for a database; nothing is opened before the first use."""
        self._given_url = url
        self._settings = settings
        self._store: Store | None = None
        self.db = Database(Calls.lazy(self._own_pool))
        self.results = Results(self.db)
        self.artifacts = Artifacts(self)
        self.schedules = Schedules(self.registry, self.db)
        # Declare a schedule: app.schedule("nightly", "30 2 * * *", report.call()).
        self.schedule = self.schedules.add

    @property
    def settings(self) -> Settings:
        if self._settings is None:
            self._settings = load_settings(database_url=self._given_url)
        return self._settings

    @property
    def url(self) -> str:
        """The database; an error that says how to name one when there is none."""
        url = self._given_url or self.settings.database_url
        if not url:
            raise ConfigurationError(
                "no database is configured",
                hint="Set TREADLE_DATABASE_URL=postgresql://…, or try: treadle dev",
            )
        return url

    @property
    def store(self) -> Store:
        """Where the files of tasks are kept; nothing is opened before the first file."""
        if self._store is None:
            self._store = make_store(self.settings)
        return self._store

    def use(self, url: str) -> None:
        """Work on this database instead; to be said before the first connection."""
        self._given_url = url

    def task(
        self, name: str | None = None, *, queue: str = "default", **settings: Unpack[TypeSettings]
    ) -> Callable[[Handler], Task]:
        """Make a function the handler of a task type; its name is the type unless given."""

        def declare(handler: Handler) -> Task:
            definition = Definition(
                handler,
                name=name or str(getattr(handler, "__name__", "task")),
                queue=queue,
                settings={"description": _first_line(handler), **settings},
            )
            self.registry.add(definition)
            return Task(self, definition)

        return declare

    def validator(self, name: str) -> Callable[[ValidatorFunction], ValidatorFunction]:
        """Make a function the validator of this name; `llm_judge` is one that you write.

        It gets `output`, the settings of the task by name, and `ctx` where it has that parameter.
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

        It reads {"output": …, "task": …} from stdin, and has no settings of the database.
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
    ) -> Awaitable[Handle]: ...

    def enqueue(
        self,
        type: str,
        spec: Mapping[str, Any] | None = None,
        *,
        conn: AnyConnection | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> Handle | Awaitable[Handle]:
        """Enqueue a task by the name of its type, without its handler."""
        made = self.enqueue_specs(type, [spec or {}], conn=conn, options=options)
        if isinstance(made, list):
            return made[0]
        return _first(made)

    def enqueue_specs(
        self,
        type: str,
        specs: Sequence[Mapping[str, Any]],
        *,
        conn: AnyConnection | None,
        options: EnqueueOptions,
        define: Mapping[str, Any] | None = None,
    ) -> list[Handle] | Awaitable[list[Handle]]:
        """Enqueue many of one type: at once on a plain connection, else to be awaited."""
        queue, given, keys = make_options(options, len(specs), define)
        call: dict[str, Any] = {
            "specs": [encode(spec) for spec in specs],
            "options": encode(given, name="options"),
            "keys": keys,
        }
        if conn is not None and is_sync(conn):
            return self._handles(enqueue_sync(conn, queue, type, **call))
        return self._enqueue_later(conn, queue, type, call)

    async def _enqueue_later(
        self, conn: Any, queue: str, type: str, call: dict[str, Any]
    ) -> list[Handle]:
        if conn is not None:
            return self._handles(await enqueue_async(conn, queue, type, **call))
        return self._handles(await self.db.tasks.enqueue_batch(queue, type, **call))

    def _handles(self, made: list[Enqueued]) -> list[Handle]:
        return [Handle(self, each.id, created=each.created) for each in made]

    def dag(
        self, name: str, *, conn: AnyConnection | None = None, **options: Unpack[DagOptions]
    ) -> Dag:
        """Build a DAG in a block; with `conn` it is there exactly if the caller commits."""
        return Dag(self, name, options, conn)

    async def open_dag(self, name: str, **options: Unpack[DagOptions]) -> OpenDag:
        """Open a DAG to add tasks over time; the same key opens the same one."""
        document = dag_document(name, options)
        return OpenDag(self, await self.db.dags.open(document.pop("name"), document))

    async def answer(
        self, wait_id: UUID, value: Any, *, by: str | None = None, note: str | None = None
    ) -> str:
        """Answer a question: `answered`, `recorded` when more must agree, or `already`."""
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
        """Tell every task that waits for this event; with a `dedup_key` it happens once."""
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
        """A new task that keeps the steps before this one; `changes` are other arguments for it."""
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
        """Make or change a trigger: when the event `on`, then enqueue `task` or `dag`.

        Values of the event stand in the template as `{"$event": "data.url"}`. The filter is what
        the event must contain. It needs the rights of an operator.
        """
        given: dict[str, Any] = {**settings} if on is None else {"on": on, **settings}
        return await self.db.triggers.define(name, given, by)

    def events(
        self, kinds: Sequence[str] | None = None, *, after: str | None = None, poll_s: float = 1.0
    ) -> AsyncGenerator[Event]:
        """Events as they happen, each once and none left out, for ever.

        From now on, or after the `place` of an event that was read before; "0.0" is the beginning.
        An event comes when all transactions older than its own have ended.
        """
        return follow_events(self.db, self._listen_url, kinds, after=after, poll_s=poll_s)

    @asynccontextmanager
    async def worker(self, **overrides: Unpack[WorkerSettings]) -> AsyncIterator[Worker]:
        """A worker with connections of its own; `async with app.worker() as w: await w.run()`."""
        settings = self.settings
        listen_url = self._listen_url
        options: dict[str, Any] = {
            "agent": settings.agent_id or new_agent_id(),
            "queues": settings.queues,
            "slots": settings.slots,
            "prefetch": settings.prefetch,
            "capabilities": settings.capabilities,
            "poll_s": settings.poll_s,
            "heartbeat_s": settings.heartbeat_s,
            "claim_ttl_s": settings.claim_ttl_s,
            "drain_s": settings.drain_s,
            "listen_url": listen_url,
            **overrides,
        }
        self.registry.validators.limit_s = settings.validator_timeout_s
        # An idle worker looks now and then: a check before each look would double its statements.
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
        """A reaper or promoter; `async with app.service(Reaper) as s: await s.run()`."""
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
        """Give up the connections."""
        self.results = Results(self.db)
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
            # The server of the database should end a slow statement before we stop waiting for it.
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


async def _first(made: Awaitable[list[Handle]]) -> Handle:
    return (await made)[0]


def _first_line(handler: Handler) -> str | None:
    text = (handler.__doc__ or "").strip()
    return text.splitlines()[0] if text else None
