"""The context of a handler: its task, its earlier attempts, and the methods for durable work."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

import anyio
import structlog
from pydantic import ValidationError

from treadle.artifacts.store import Store
from treadle.db.database import Database
from treadle.db.pool import Connection
from treadle.errors import IllegalTransition, InvalidArgument, TreadleError
from treadle.json import clean_text, encode_output, encode_safely
from treadle.models import Answer, Claim, DecisionReport, SpendState, Step, problems_of
from treadle.worker.artifacts import Artifacts
from treadle.worker.blocking import BlockingContext
from treadle.worker.journal import Journal
from treadle.worker.outcomes import CancelTask, FailPermanently, InvalidOutput
from treadle.worker.rate_limits import ClosedGates
from treadle.worker.spawn import Child, Spawner, as_call
from treadle.worker.spend import Spend
from treadle.worker.steps import Steps
from treadle.worker.waits import AskOptions, EventOptions, Question, Waits

if TYPE_CHECKING:
    from treadle.worker.registry import Enqueueable

current_task_id: ContextVar[UUID | None] = ContextVar("task_id", default=None)
MAX_ERROR = 300
# Progress and notes must not keep a task from being completed.
STORE_TIMEOUT_S = 2.0
MAX_REPLACED = 5


def describe_attempts(previous: Sequence[Mapping[str, Any]], steps: Iterable[Step]) -> str:
    """Describe each failed attempt in a few lines, and the saved steps in one."""
    lines = [line for past in previous for line in _attempt_lines(past)]
    done = [step.name for step in steps]
    if lines and done:
        lines.append(f"Steps that are done: {', '.join(done)}")
    return "\n".join(lines)


def _attempt_lines(past: Mapping[str, Any]) -> Iterator[str]:
    """Yield the outcome, the messages of validators, the notes of the attempt and its review."""
    yield (
        f"Attempt {past['attempt']} ({past['agent']}, {past['duration_s'] or 0:.0f} s) "
        f"{past['outcome']}: {past['class'] or past['reason']}: {_first_line(past['error'])}"
    )
    for message in past.get("feedback") or ():
        yield f"  rejected: {message}"
    for note in past.get("notes") or ():
        yield f"  note: {note}"
    review = past.get("review") or {}
    if review.get("note"):
        yield f"  review by {review['by']}: {review['note']}"


def _first_line(error: str | None) -> str:
    return (error or "no details").strip().split("\n", 1)[0][:MAX_ERROR]


class _DurableParts:
    """The parts of a context that save state between attempts."""

    __slots__ = ("journal", "spawner", "spend", "steps", "waits")

    def __init__(self, task: Claim, db: Database) -> None:
        self.journal = Journal(task, db)
        self.spend = Spend(self.journal)
        self.steps = Steps(self.journal, self.spend)
        self.waits = Waits(self.journal)
        self.spawner = Spawner(self.journal)


class Context:
    """The running task as its handler sees it."""

    __slots__ = (
        "_cancel_reason", "_closed_gates", "_db", "_durable_parts", "_progress",
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
        self._durable_parts: _DurableParts | None = None
        self._progress: bytes | None = None
        self._cancel_reason: str | None = None

    @property
    def attempt(self) -> int:
        """The number of this attempt, counted from 1."""
        return self.task.attempt

    @property
    def is_last_attempt(self) -> bool:
        """Whether a failure of this attempt moves the task to the dead letters."""
        return self.task.attempt >= self.task.max_attempts

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps that this attempt and earlier ones have saved."""
        return tuple(self._durable.journal.steps.values())

    @property
    def models(self) -> list[str]:
        """The models to use, best first; from the third attempt on, the fallback models."""
        return self.task.models

    @property
    def previous_attempts(self) -> list[dict[str, Any]]:
        """The attempts before this one: failure class, error, feedback, notes and review."""
        return self.task.previous or []

    @property
    def tried(self) -> str:
        """A text for prompts: what the attempts before this one did and why they failed."""
        return describe_attempts(self.previous_attempts, self.steps)

    def report(
        self, report: DecisionReport | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> None:
        """Set the decision report, which is stored when the task completes; the last one counts.

        An invalid report ends the attempt as invalid_output, like a rejected output.
        """
        if report is not None and fields:
            raise InvalidArgument(
                "ctx.report takes a report or fields, not both",
                hint="Pass a DecisionReport, or its fields as keyword arguments.",
                argument="report",
            )
        try:
            checked = DecisionReport.model_validate(fields if report is None else report)
        except ValidationError as error:
            raise InvalidOutput(*problems_of(error)) from None
        self.decision_report = encode_safely(checked.model_dump(mode="json", exclude_none=True))

    async def note(self, text: str) -> None:
        """Save a note for later attempts of this task; it is stored at once."""
        journal = self._durable.journal
        async with journal.busy():
            await journal.call(
                lambda: journal.db.claims.add_note(self.task.id, self.task.token, clean_text(text))
            )

    @property
    def blocking(self) -> BlockingContext:
        """The same methods for sync handlers: `ctx.blocking.step(…)` without await."""
        return BlockingContext(self)

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop; for sync handlers, since async ones are interrupted."""
        return self._cancel_reason is not None

    def check_cancelled(self) -> None:
        """Raise CancelTask if the handler should stop; for sync handlers."""
        if self._cancel_reason is not None:
            raise CancelTask(self._cancel_reason)

    @property
    def log(self) -> structlog.typing.FilteringBoundLogger:
        """A logger that adds the task id, type and attempt to each event."""
        logger: structlog.typing.FilteringBoundLogger = structlog.get_logger("treadle.task").bind(
            task_id=str(self.task.id), type=self.task.type, attempt=self.task.attempt
        )
        return logger

    def progress(self, value: float | None = None, **detail: Any) -> None:
        """Set the progress, which people see within two seconds; the latest is kept."""
        self._progress = encode_safely(detail if value is None else {"value": value, **detail})

    def slow_until(self, key: str | None = None) -> datetime | None:
        """Return until when a gate is closed, as far as this worker knows; None if it is open.

        Without a key, all gates of the task are considered. A loop that makes many calls can use
        this to pause.
        """
        keys = self.task.gates if key is None else [key]
        return None if self._closed_gates is None else self._closed_gates.until(keys)

    async def step(
        self, name: str, fn: Callable[..., Any], /, *args: Any, step_key: Any = ..., **kwargs: Any
    ) -> Any:
        """Call a function once and save its result; later attempts get the result without a call.

        The result is always the saved JSON, so a tuple becomes a list even the first time. Further
        calls of a name in one attempt are steps of their own: name#2, name#3. Steps that run at the
        same time need different names. If an earlier attempt has saved the step for other
        arguments, StepConflict is raised. If `step_key` is given, it is compared instead of the
        arguments; None turns the comparison off. A sync function runs in a thread.
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
        """Record the cost of a call; inside a step it is stored together with the step.

        Each `call_id` is counted once. When the limit of the task or of a budget is exceeded, the
        task waits for a decision or fails, depending on its `on_budget` policy.
        """
        await self._durable.spend.spend(usd, model, input_tokens, output_tokens, call_id)

    async def reserve(self, usd: float | Decimal) -> None:
        """Reserve an amount for an expensive call.

        If no budget has that much left, the task waits for a decision or BudgetExceeded is raised.
        """
        await self._durable.spend.reserve(usd)

    async def budget(self) -> SpendState:
        """Return what the task has cost and what is left; `left_usd` is None without a limit."""
        return await self._durable.spend.state(ask=False)

    async def ask(self, question: str, **options: Unpack[AskOptions]) -> Answer:
        """Ask people a question; the task releases its claim until there is an answer.

        `approvers` is the number of approvals that are needed. `expires` is the time to wait and
        `on_expiry` what happens then; the default is to raise WaitExpired.
        """
        return await self._durable.waits.question(question, options).answer()

    async def ask_later(self, question: str, **options: Unpack[AskOptions]) -> Question:
        """Ask people a question and continue; `await question.answer()` waits for the answer."""
        asked = self._durable.waits.question(question, options)
        await asked.open()
        return asked

    async def wait_for(self, event: str, **options: Unpack[EventOptions]) -> Any:
        """Wait for an event (see `app.emit`) and return its payload.

        The task releases its claim until then. An event that was emitted after the task was
        created and before this call counts.
        """
        return await self._durable.waits.event(event, options)

    async def sleep(self, seconds: float | timedelta, *, name: str | None = None) -> None:
        """Release the claim for a number of seconds; this does not count as an attempt."""
        await self._durable.steps.sleep(seconds, name)

    async def spawn(
        self, task: Enqueueable, /, *, name: str | None = None, **arguments: Any
    ) -> Child:
        """Create a subtask and continue; a later attempt gets the same subtask."""
        [child] = await self._durable.spawner.spawn([as_call(task, arguments)], name)
        return child

    async def spawn_and_wait(
        self,
        calls: Sequence[Enqueueable],
        *,
        name: str | None = None,
        return_exceptions: bool = False,
    ) -> list[Any]:
        """Create subtasks, release the claim until all have ended, return their outputs in order.

        If a subtask is dead-lettered, the task stays blocked until a person decides; if one is
        cancelled, the task is cancelled too. With `return_exceptions` the task continues in both
        cases and gets a TaskFailed in place of the output.
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
        """Open a transaction whose commit also completes the task: its writes happen exactly once.

        If another worker has claimed the task, nothing is written and ClaimLost is raised. Tasks
        with validators cannot use this, since the validators must see the output first.
        """
        self._forbid_validators()
        if self.completed:
            raise IllegalTransition(
                f"task {self.task.id} is already completed", hint="Use one transaction per task."
            )
        async with self._db.claims.completing(
            self.task.id,
            self.task.token,
            lambda: encoded,
            lambda: self.decision_report,
        ) as conn:
            yield conn
            encoded, replaced = encode_output(output)
            if replaced:
                await self.mark_output(replaced)
            await self._store_progress()
        self.completed = True

    @property
    def suspended(self) -> bool:
        """Whether the task has released its claim to wait; for the worker."""
        return self._durable_parts is not None and self._durable_parts.journal.suspended

    @property
    def suspending(self) -> bool:
        """Whether the claim was released or is being released; for the worker."""
        return self._durable_parts is not None and self._durable_parts.journal.suspending

    @property
    def unsent_progress(self) -> bytes | None:
        """The progress that the database has not confirmed; for the worker."""
        return self._progress

    def confirm_progress(self, stored: bytes | None) -> None:
        """Record that this progress is stored, unless there is a newer one; for the worker."""
        if self._progress is stored:
            self._progress = None

    def cancel(self, reason: str) -> None:
        """Ask the handler to stop; for the worker."""
        self._cancel_reason = reason

    async def _store_progress(self) -> None:
        """Store the progress that was reached, which must not fail the task."""
        if self._progress is None:
            return
        try:
            with anyio.move_on_after(STORE_TIMEOUT_S):
                await self._db.claims.heartbeat([(self.task.id, self.task.token)], [self._progress])
        except TreadleError as error:
            self.log.warning("task.progress_lost", error=str(error))

    async def mark_output(self, replaced: Sequence[str]) -> None:
        """Log and note which parts of the output were replaced; for the worker."""
        shown = [clean_text(each)[:MAX_ERROR] for each in replaced[:MAX_REPLACED]]
        self.log.warning("task.output_changed", count=len(replaced), replaced=shown)
        more = f"; {len(replaced) - len(shown)} more" if len(replaced) > len(shown) else ""
        text = f"The output has parts that JSON cannot hold: {'; '.join(shown)}{more}"
        try:
            with anyio.move_on_after(STORE_TIMEOUT_S):
                await self._db.claims.add_note(self.task.id, self.task.token, text)
        except TreadleError as error:
            self.log.warning("task.note_lost", error=str(error))

    def _forbid_validators(self) -> None:
        """Raise if the task has validators: they must check the output before it is completed."""
        if any(each["validator"] != "none" for each in self.task.validation or ()):
            raise FailPermanently(
                f"{self.task.type} has validators, which ctx.transaction would bypass; return the "
                "output instead, or remove the validators",
                "refused",
            )

    @property
    def _durable(self) -> _DurableParts:
        """Created on first use: most tasks are short and do not need it."""
        if self._durable_parts is None:
            self._durable_parts = _DurableParts(self.task, self._db)
        return self._durable_parts
