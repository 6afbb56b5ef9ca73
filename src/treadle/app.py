"""The application object: declare tasks, enqueue them, run them.

app = Treadle()

@app.task(max_attempts=5)
async def summarise(url: str) -> str: ...

await summarise.enqueue(url="https://example.org")
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack, cast
from uuid import UUID

import anyio
import structlog

from treadle.artifacts.store import Store, make_store
from treadle.db.calls import LONG
from treadle.db.database import Gateway, Reader
from treadle.db.dead_letters import Decided, Decision, LetterCount
from treadle.db.errors import translate_errors
from treadle.db.install import migrate
from treadle.db.pool import Pool, make_pool
from treadle.errors import ConfigurationError, InvalidArgument
from treadle.fields import TypeSettings
from treadle.json import encode
from treadle.producer.dag import DagMaker
from treadle.producer.enqueue import Producing
from treadle.producer.events import Reactions
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

log = structlog.get_logger(__name__)
# How long a pool may take to close; what is left then is cut off.
CLOSE_S = 1.0


class Decisions:
    """The part of an application that answers what tasks wait for, and reviews what gave up."""

    async def answer(
        self, wait_id: UUID, value: Any, *, by: str | None = None, note: str | None = None
    ) -> str:
        """Answer a question: `answered`, `recorded` when more must agree, or `already`."""
        gateway = await _gateway(self)
        return await gateway.answer_wait(wait_id, encode(value, name="value"), by, note)

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
        gateway = await _gateway(self)
        text = encode({} if payload is ... else payload, name="payload")
        return await gateway.emit_event(
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
        gateway = await _gateway(self)
        made = await gateway.fork_task(task_id, from_step, {"spec": changes} if changes else {}, by)
        return Handle(cast("Treadle", self), made)

    async def resolve(
        self,
        tasks: Sequence[UUID | str | Handle],
        resolution: str = "retry",
        *,
        changes: Mapping[str, Any] | None = None,
        delay: float | None = None,
        to: str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> dict[UUID, Decided]:
        """Decide about dead letters: retry, cancel, modify_and_retry or escalate.

        `changes` are for modify_and_retry, `delay` in seconds is before a retry, and `to` is who
        is asked when it is escalated. What cannot be done says so and does not stop the others.
        The keys of the answer are UUIDs, also of ids that were given as text.
        """
        ids = [each.id if isinstance(each, Handle) else _id(each) for each in tasks]
        gateway = await _gateway(self)
        return await gateway.resolve_dead_letters(
            ids, Decision(resolution, changes or {}, by, note, delay, to)
        )

    async def resolve_where(
        self,
        filters: Mapping[str, Any],
        resolution: str = "retry",
        *,
        changes: Mapping[str, Any] | None = None,
        delay: float | None = None,
        to: str | None = None,
        by: str | None = None,
        note: str | None = None,
        dry_run: bool = False,
    ) -> list[LetterCount]:
        """Decide about all dead letters that a filter finds, or with `dry_run` count them."""
        gateway = await _gateway(self)
        return await gateway.resolve_dead_where(
            filters, Decision(resolution, changes or {}, by, note, delay, to), dry_run=dry_run
        )


def _id(given: UUID | str) -> UUID:
    try:
        return given if isinstance(given, UUID) else UUID(given)
    except (ValueError, AttributeError, TypeError):
        raise InvalidArgument(
            f"{given!r} is no id of a task", hint="List them: treadle dead list", argument="tasks"
        ) from None


async def _gateway(app: Decisions) -> Gateway:
    return await cast("Treadle", app).gateway()


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


class Treadle(Producing, DagMaker, Decisions, Reactions, Schedules):
    """Tasks, and the database they live in."""

    # The longest that a statement may take, for who answers requests; 0 is any time.
    statement_timeout_s = 0.0
    # What its connections are called in pg_stat_activity.
    pool_name = "treadle"
    # For a command that makes few calls, however long they take: somebody looks on.
    one_shot = False

    def __init__(self, url: str | None = None, *, settings: Settings | None = None) -> None:
        self.registry = Registry()
        self.schedules = {}
        self._given_url = url
        self._settings = settings
        self._stack: AsyncExitStack | None = None
        self._gateway: Gateway | None = None
        self._results: Results | None = None
        self._store: Store | None = None
        self._opening = anyio.Lock()
        self._checked = False

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

    async def gateway(self) -> Gateway:
        """The SQL interface, opened on first use."""
        if self._checked and self._gateway is not None:
            return self._gateway
        async with self._opening:
            if self._gateway is None:
                stack = AsyncExitStack()
                pool = await stack.enter_async_context(self._pool(self.pool_name))
                self._gateway = Gateway(pool)
                self._gateway.statement_limit_s = self.settings.handler_statement_timeout_s
                self._stack = stack
            if not self._checked:
                await _check_schema(self._gateway)
                self._checked = True
        return self._gateway

    async def results(self) -> Results:
        if self._results is None:
            self._results = Results(await self.gateway())
        return self._results

    async def reader(self) -> Reader:
        return Reader(await self.gateway())

    async def open_artifact(self, artifact: Reference) -> ArtifactReader:
        """The file of an artifact, to be read in parts: `async for chunk in file`."""
        return await open_artifact(await self.gateway(), self.store, artifact)

    @asynccontextmanager
    async def worker(self, **overrides: Unpack[WorkerSettings]) -> AsyncIterator[Worker]:
        """A worker with connections of its own; `async with app.worker() as w: await w.run()`."""
        settings = self.settings
        listen_url = (settings.listen_url or self.url) if settings.notify else None
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
            gateway = Gateway(pool)
            await _check_schema(gateway)
            await self.offer_schedules(gateway)
            yield Worker(
                self.registry,
                gateway,
                WorkerOptions(
                    **options, connections=2 * settings.pool_size + most + (listen_url is not None)
                ),
                handlers=(await self.gateway()).for_handlers(transactions),
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
            gateway = Gateway(pool)
            await _check_schema(gateway)
            service = kind(
                gateway,
                longest_s=settings.service_s,
                listen_url=(settings.listen_url or self.url) if settings.notify else None,
                health_file=health_file,
                signals=signals,
            )
            service.configure(settings)
            yield service

    async def close(self) -> None:
        """Give up the connections."""
        stack, self._stack, self._gateway, self._results = self._stack, None, None, None
        self._checked = False
        if stack is not None:
            await stack.aclose()

    async def __aenter__(self) -> Self:
        await self.gateway()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @asynccontextmanager
    async def _pool(self, name: str, **options: Any) -> AsyncIterator[Pool]:
        settings = self.settings
        given = {"size": settings.pool_size, "call_timeout_s": self._call_timeout_s, **options}
        pool = make_pool(
            self.url,
            prepare=settings.prepare,
            connect_timeout_s=settings.connect_timeout_s,
            # The server of the database should end a slow statement before we stop waiting for it.
            statement_timeout_s=min(self.statement_timeout_s, 0.9 * self._call_timeout_s),
            name=name,
            **given,
        )
        try:
            with translate_errors():
                await pool.open(wait=True, timeout=settings.connect_timeout_s)
            yield pool
        finally:
            with anyio.move_on_after(CLOSE_S + 1, shield=True):
                await pool.close(timeout=CLOSE_S)

    @property
    def _call_timeout_s(self) -> float:
        return self.settings.call_timeout_s * (LONG if self.one_shot else 1)


async def _check_schema(gateway: Gateway) -> None:
    problem = migrate.schema_problem(*await gateway.schema_version())
    if problem is None:
        return
    if problem.detail.get("part") != "code":
        raise problem
    # Functions keep their signatures: old and new workers run side by side during an upgrade.
    log.warning("schema.other_functions", problem=str(problem), hint=problem.hint)


def _first_line(handler: Handler) -> str | None:
    text = (handler.__doc__ or "").strip()
    return text.splitlines()[0] if text else None
