"""What a handler is given: its task, its past, and ways to talk back."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

import structlog
from pydantic import ValidationError

from treadle.artifacts.store import Store
from treadle.db.connection import Connection
from treadle.db.database import Database
from treadle.errors import IllegalTransition, InvalidArgument
from treadle.json import clean_text, encode_safely
from treadle.models import Answer, Claim, SpendState, Step
from treadle.reports import DecisionReport, problems_of
from treadle.worker.artifacts import Artifacts
from treadle.worker.blocking import BlockingContext
from treadle.worker.journal import Journal
from treadle.worker.outcomes import CancelTask, FailForGood, InvalidOutput
from treadle.worker.rate_limits import ClosedGates
from treadle.worker.spawn import Child, Spawner, as_call
from treadle.worker.spend import Spend
from treadle.worker.steps import Steps
from treadle.worker.waits import AskOptions, EventOptions, Question, Waits

if TYPE_CHECKING:
    from treadle.worker.registry import Enqueueable

current_task_id: ContextVar[UUID | None] = ContextVar("task_id", default=None)
MAX_ERROR = 300


class Telling:
    """The part of a context that is about models, earlier attempts, notes and the report."""

    __slots__ = ()

    task: Claim

    if TYPE_CHECKING:

        @property
        def steps(self) -> tuple[Step, ...]: ...

        @property
        def _journal(self) -> Journal: ...

        def _keep_report(self, report: bytes) -> None: ...

    @property
    def models(self) -> list[str]:
        """The models to use now, the best first: from the third attempt on the fallback ones."""
        return self.task.models

    @property
    def previous_attempts(self) -> list[dict[str, Any]]:
        """What the attempts before this one came to: class, error, feedback, notes, review."""
        return self.task.previous or []

    @property
    def tried(self) -> str:
        """What the attempts before this one tried and why they failed, to go into a prompt."""
        return describe_attempts(self.previous_attempts, self.steps)

    def report(
        self, report: DecisionReport | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> None:
        """Say what was decided and why; stored when the task is completed, the last one wins.

        A report that is not in shape ends the attempt as invalid_output, like a refused output.
        """
        if report is not None and fields:
            raise InvalidArgument(
                "a report and fields of one", hint="Give one of them.", argument="report"
            )
        try:
            made = DecisionReport.model_validate(fields if report is None else report)
        except ValidationError as error:
            raise InvalidOutput(*problems_of(error)) from None
        self._keep_report(encode_safely(made.model_dump(mode="json", exclude_none=True)))

    async def note(self, text: str) -> None:
        """Leave a note for later attempts of this task; it is kept at once and outlives a crash."""
        journal = self._journal
        async with journal.busy():
            await journal.call(
                lambda: journal.db.claims.add_note(self.task.id, self.task.token, clean_text(text))
            )

    def forbid_unchecked(self) -> None:
        """Refuse to complete a task in a transaction when its output has to be checked first."""
        if any(each["validator"] != "none" for each in self.task.validation or ()):
            raise FailForGood(
                f"{self.task.type} has validators: ctx.transaction would complete it before they "
                "have seen its output; return the output, or leave the validators out",
                "refused",
            )


def describe_attempts(previous: Sequence[Mapping[str, Any]], steps: Iterable[Step]) -> str:
    """Some lines for each attempt that failed, and one with the steps that need no repeat."""
    lines = [line for past in previous for line in _attempt(past)]
    done = [step.name for step in steps]
    if lines and done:
        lines.append(f"Done and kept: {', '.join(done)}")
    return "\n".join(lines)


def _attempt(past: Mapping[str, Any]) -> Iterator[str]:
    """What came of it, what validators and the attempt itself had to say, what a person said."""
    yield (
        f"Attempt {past['attempt']} ({past['agent']}, {past['duration_s'] or 0:.0f} s) "
        f"{past['outcome']}: {past['class'] or past['reason']}: {_first_line(past['error'])}"
    )
    for message in past.get("feedback") or ():
        yield f"  refused because: {message}"
    for note in past.get("notes") or ():
        yield f"  note: {note}"
    review = past.get("review") or {}
    if review.get("note"):
        yield f"  {review['by']} says: {review['note']}"


def _first_line(error: str | None) -> str:
    return (error or "no details").strip().split("\n", 1)[0][:MAX_ERROR]


class _Durable:
    """What only a task that outlives its attempts needs."""

    __slots__ = ("journal", "money", "spawner", "steps", "waits")

    def __init__(self, task: Claim, db: Database) -> None:
        self.journal = Journal(task, db)
        self.money = Spend(self.journal)
        self.steps = Steps(self.journal, self.money)
        self.waits = Waits(self.journal)
        self.spawner = Spawner(self.journal)


class Context(Telling):
    """The running task as its handler sees it."""

    __slots__ = (
        "_cancel_reason", "_closed_gates", "_db", "_made", "_progress",
        "_store", "agent", "completed", "decision_report", "started", "task",
    )  # fmt: skip

    def __init__(
        self,
        task: Claim,
        db: Database,
        agent: str,
        closed_gates: ClosedGates | None = None,
        store: Store | None = None,
    ) -> None:
        self.task = task
        current_task_id.set(task.id)
        self.agent = agent
        self.completed = False
        self.decision_report: bytes | None = None
        self.started = time.monotonic()
        self._db = db
        self._closed_gates = closed_gates
        self._store = store
        self._made: _Durable | None = None
        self._progress: bytes | None = None
        self._cancel_reason: str | None = None

    @property
    def attempt(self) -> int:
        """Which attempt this is, counted from 1."""
        return self.task.attempt

    @property
    def is_last_attempt(self) -> bool:
        """Whether a failure now goes to the dead letters."""
        return self.task.attempt >= self.task.max_attempts

    @property
    def steps(self) -> tuple[Step, ...]:
        """What the task has done so far, in this attempt and in those before."""
        return tuple(self._durable.journal.steps.values())

    @property
    def blocking(self) -> BlockingContext:
        """The same methods for plain functions: `ctx.blocking.step(…)` without await."""
        return BlockingContext(self)

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop: a plain function asks, an async one is interrupted."""
        return self._cancel_reason is not None

    def check_cancelled(self) -> None:
        """Raise when the handler should stop; for plain functions in a thread."""
        if self._cancel_reason is not None:
            raise CancelTask(self._cancel_reason)

    @property
    def log(self) -> structlog.typing.FilteringBoundLogger:
        """A logger that knows the task."""
        logger: structlog.typing.FilteringBoundLogger = structlog.get_logger("treadle.task").bind(
            task_id=str(self.task.id), type=self.task.type, attempt=self.task.attempt
        )
        return logger

    def progress(self, value: float | None = None, **detail: Any) -> None:
        """Say how far it is; sent with the next heartbeat, the latest wins."""
        shown = {**detail} if value is None else {"value": value, **detail}
        self._progress = encode_safely(shown)

    def slow_until(self, key: str | None = None) -> datetime | None:
        """Until when a gate is closed, as far as this worker has heard; None when it is open.

        Without a key all gates of the task count: a loop of many calls may pause by itself.
        """
        keys = self.task.gates if key is None else [key]
        return None if self._closed_gates is None else self._closed_gates.until(keys)

    async def step(
        self, name: str, fn: Callable[..., Any], /, *args: Any, step_key: Any = ..., **kwargs: Any
    ) -> Any:
        """Call a function once and keep its result: a later attempt gets it without the call.

        The result is what the database kept, as JSON gives it back: a tuple is a list, also the
        first time. The same name with other arguments is a StepConflict; `step_key` is compared
        instead of the arguments, and with None nothing is. A plain function runs in a thread.
        """
        return await self._durable.steps.step(name, fn, args, kwargs, step_key)

    async def spend(
        self,
        usd: float | Decimal = 0,
        *,
        model: str | None = None,
        input_tokens: int = 0,
        output_tokens: int = 0,
        call_id: str | None = None,
    ) -> None:
        """Count what a call has cost; in a step it is settled when the step is saved.

        A call is counted once by its id. When that passes what the task or a budget may cost, the
        task waits until somebody has decided, or gives up, by its policy.
        """
        await self._durable.money.spend(usd, model, input_tokens, output_tokens, call_id)

    async def reserve(self, usd: float | Decimal) -> None:
        """Before an expensive call: make sure that so much is there for it.

        Where it is not, the task waits until somebody has decided, or BudgetExceeded is raised.
        """
        await self._durable.money.reserve(usd)

    async def budget(self) -> SpendState:
        """What the task has cost, and what is left for it: `left_usd` is None without a limit."""
        return await self._durable.money.state(ask=False)

    async def ask(self, question: str, **options: Unpack[AskOptions]) -> Answer:
        """Ask people; the task gives up its claim until there is an answer.

        With `approvers` so many must approve; `expires` and `on_expiry` say how long to wait and
        what then. WaitExpired is raised when nobody answered in time.
        """
        return await self._durable.waits.question(question, options).answer()

    async def ask_later(self, question: str, **options: Unpack[AskOptions]) -> Question:
        """Ask people and carry on; `await question.answer()` waits for the answer."""
        asked = self._durable.waits.question(question, options)
        await asked.open()
        return asked

    async def wait_for(self, event: str, **options: Unpack[EventOptions]) -> Any:
        """The payload of an event, see `app.emit`; the task gives up its claim until it comes.

        An event that came after the task was made and before this call is not missed.
        """
        return await self._durable.waits.event(event, options)

    async def sleep(self, seconds: float | timedelta, *, name: str | None = None) -> None:
        """Give up the claim for a while; nothing is held meanwhile, and no attempt is burnt."""
        await self._durable.steps.sleep(seconds, name)

    async def spawn(
        self, task: Enqueueable, /, *, name: str | None = None, **arguments: Any
    ) -> Child:
        """Create a subtask and carry on; a later attempt finds the same one."""
        [child] = await self._durable.spawner.spawn([as_call(task, arguments)], name)
        return child

    async def spawn_and_wait(
        self,
        calls: Sequence[Enqueueable],
        *,
        name: str | None = None,
        return_exceptions: bool = False,
    ) -> list[Any]:
        """Create subtasks and give up the claim until all have ended; their outputs, in order.

        One that gives up holds the task back until a person decides, and one that is cancelled
        takes it along. With `return_exceptions` the task goes on after both, and a TaskFailed
        stands for the output.
        """
        spawner = self._durable.spawner
        children = await spawner.spawn([as_call(call, {}) for call in calls], name)
        return await spawner.results([child.id for child in children], exceptions=return_exceptions)

    @property
    def artifact(self) -> Artifacts:
        """The files of the task: `await ctx.artifact.put("report.pdf", data)`, and `get`."""
        return Artifacts(self._durable.journal, self._store)

    @asynccontextmanager
    async def transaction(self, output: Any = None) -> AsyncIterator[Connection]:
        """A transaction whose commit also completes the task: its writes happen exactly once.

        If the claim was superseded, nothing is written and ClaimLost is raised. A task that has
        validators cannot be completed so: they have to see the output first.
        """
        self.forbid_unchecked()
        if self.completed:
            raise IllegalTransition(
                f"task {self.task.id} is completed already", hint="Use one transaction per task."
            )
        async with self._db.claims.completing(
            self.task.id,
            self.task.token,
            lambda: encode_safely(output),
            lambda: self.decision_report,
        ) as conn:
            yield conn
        self.completed = True

    @property
    def suspended(self) -> bool:
        """Whether the task has given up its claim to wait; for the worker."""
        return self._made is not None and self._made.journal.suspended

    @property
    def suspending(self) -> bool:
        """Whether it has, or is about to: its claim is not looked after; for the worker."""
        return self._made is not None and self._made.journal.suspending

    def take_progress(self) -> bytes | None:
        """The progress not sent yet, once; for the heartbeat."""
        progress, self._progress = self._progress, None
        return progress

    def keep_progress(self, unsent: bytes | None) -> None:
        """Progress that did not arrive: send it again, unless there is newer."""
        if self._progress is None:
            self._progress = unsent

    def cancel(self, reason: str) -> None:
        """Tell the handler to stop; for the worker."""
        self._cancel_reason = reason

    def _keep_report(self, report: bytes) -> None:
        self.decision_report = report

    @property
    def _journal(self) -> Journal:
        return self._durable.journal

    @property
    def _durable(self) -> _Durable:
        """Made on first use: most tasks are short and need none of it."""
        if self._made is None:
            self._made = _Durable(self.task, self._db)
        return self._made
