"""The saved state of a task during one attempt, the names in it, and suspension.

Saved steps come with the claim and need no round trip. A task releases its claim only when no
other operation of it is in progress: a step that runs next to a question is finished and saved
first, and questions asked concurrently are all open before the task waits for them together.
"""

import hashlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar
from uuid import UUID

import anyio
import structlog

from treadle.db.database import Database
from treadle.errors import ClaimLost, IllegalTransition, InvalidArgument, Unavailable
from treadle.json import clean_text
from treadle.models import Claim, Step
from treadle.worker.outcomes import Suspended

log = structlog.get_logger(__name__)
T = TypeVar("T")
# A task releases its claim after so many iterations of the event loop without an operation: code
# that has just received a result may start the next step.
IDLE_TURNS = 3
MAX_BYTES = 200
KINDS = ("ask", "event", "spawn", "sleep")


@dataclass(eq=False, slots=True)
class CurrentStep:
    """The step that the running code belongs to, and the costs recorded in it."""

    journal: "Journal"
    name: str
    outer: "CurrentStep | None"
    calls: list[dict[str, Any]] = field(default_factory=list)
    over: bool = False


# Threads and async tasks that a step starts inherit it.
current_step: ContextVar[CurrentStep | None] = ContextVar("current_step", default=None)


@dataclass(frozen=True, slots=True)
class SuspendReason:
    """What a suspended task waits for: answers, subtasks or a time."""

    waits: Sequence[UUID] = ()
    children: Sequence[UUID] = ()
    optional: bool = False
    until: datetime | None = None


class Journal:
    """The saved state of a task as one attempt sees it."""

    def __init__(self, claim: Claim, db: Database) -> None:
        self.claim = claim
        self.db = db
        self.steps = {step["name"]: _to_step(step) for step in claim.steps or ()}
        self.suspended = False
        self._lost: ClaimLost | None = None
        self._names: set[str] = set()
        self._busy = 0
        self._idle = anyio.Event()
        self._reasons: list[SuspendReason] = []
        self._suspend_lock = anyio.Lock()
        # Set when the call that releases the claim has ended.
        self._releasing: anyio.Event | None = None

    @property
    def suspending(self) -> bool:
        """Whether the claim was released or is being released."""
        return self.suspended or self._releasing is not None

    def name(self, kind: str, text: str) -> str:
        """Return a unique name for a wait, a spawn or a sleep."""
        name = unique_name(kind, text, self._names)
        self._names.add(name)
        return name

    def add(self, name: str, kind: str, output: Any, **more: Any) -> Step:
        """Add a step that the database has saved."""
        step = Step(name, kind, len(self.steps) + 1, output, datetime.now(UTC), **more)
        return self.steps.setdefault(name, step)

    def current(self) -> CurrentStep | None:
        """Return the step of this task that the caller runs in, if any."""
        found = current_step.get()
        return found if found is not None and found.journal is self and not found.over else None

    def forbid_in_step(self, action: str) -> None:
        """Raise inside a step: a later attempt does not call the step and would skip the action."""
        current = self.current()
        if current is not None:
            raise IllegalTransition(
                f"step {current.name} cannot {action}",
                hint="Do it in the handler, before or after the step.",
                task_id=str(self.claim.id),
            )

    def check(self) -> None:
        """Raise if the task no longer holds its claim."""
        if self.suspended:
            raise self._suspended()
        if self._lost is not None:
            raise ClaimLost(str(self._lost), hint=self._lost.hint, **self._lost.detail)

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """Mark an operation as in progress: the task does not release its claim meanwhile."""
        while self._releasing is not None:
            await self._releasing.wait()
        self.check()
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            if self._busy == 0:
                self._idle.set()

    async def call(self, send: Callable[[], Awaitable[T]]) -> T:
        """Repeat a call while the database is unavailable; the call must be safe to repeat."""
        delay = 0.05
        while True:
            try:
                return await send()
            except ClaimLost as error:
                self._lost = error
                raise
            except Unavailable as error:
                log.warning("task.call_failed", task_id=str(self.claim.id), error=str(error))
                await anyio.sleep(random.uniform(delay / 2, delay))
                delay = min(delay * 2, 5.0)

    async def suspend(self, reason: SuspendReason) -> NoReturn:
        """Release the claim once no operation is in progress, and end the handler."""
        self._reasons.append(reason)
        try:
            async with self._suspend_lock:
                await self._wait_until_idle()
                if not self.suspended:
                    await self._release_claim()
        finally:
            self._reasons.remove(reason)
        raise self._suspended()

    def _suspended(self) -> Suspended:
        return Suspended(f"task {self.claim.id} has released its claim to wait")

    async def _wait_until_idle(self) -> None:
        turns = 0
        while turns < IDLE_TURNS:
            if self._busy:
                self._idle = anyio.Event()
                await self._idle.wait()
                turns = 0
            else:
                await anyio.lowlevel.checkpoint()
                turns += 1

    async def _release_claim(self) -> None:
        self.check()
        claim = self.claim
        waits, children, optional, run_at = _combine(self._reasons)
        self._releasing = anyio.Event()
        try:
            status = await self.call(
                lambda: self.db.steps.suspend(
                    claim.id,
                    claim.token,
                    children=children,
                    waits=waits,
                    run_at=run_at,
                    optional=optional,
                )
            )
            self.suspended = True
            log.info("task.suspended", task_id=str(claim.id), type=claim.type, status=status)
        finally:
            self._releasing.set()
            self._releasing = None


def _combine(
    reasons: Sequence[SuspendReason],
) -> tuple[list[UUID], list[UUID], bool, datetime | None]:
    """Combine all reasons into one suspension.

    The task resumes when all of them have ended, and then waits again for what was left out: a time
    next to any other reason, and subtasks that may fail next to subtasks that may not.
    """
    waits = [wait for reason in reasons for wait in reason.waits]
    required = [child for reason in reasons if not reason.optional for child in reason.children]
    optional = [child for reason in reasons if reason.optional for child in reason.children]
    times = [reason.until for reason in reasons if reason.until is not None]
    run_at = min(times) if times and not (waits or required or optional) else None
    return waits, required or optional, not required and bool(optional), run_at


def _to_step(step: dict[str, Any]) -> Step:
    return Step(
        name=step["name"],
        kind=step["kind"],
        seq=step["seq"],
        output=step["output"],
        saved_at=datetime.fromisoformat(step["saved_at"]),
        cost_usd=float(step["cost_usd"]),
        input_hash=step["input_hash"],
        input=step["input"],
    )


def check_step_name(name: object) -> None:
    """Raise InvalidArgument if this is not a valid name of a step."""
    problem = hint = None
    if not isinstance(name, str) or not name or clean_text(name) != name:
        problem = f"{name!r} is not a valid name of a step"
        hint = "Pass the name first, then the function: ctx.step('fetch', fetch, url)"
    elif len(name.encode()) > MAX_BYTES:
        problem = f"the name of a step has {len(name.encode())} bytes, {MAX_BYTES} are allowed"
        hint = "Choose a short name, and pass what the step depends on as step_key=."
    elif name.startswith(tuple(f"{kind}:" for kind in KINDS)):
        problem = f"the name of a step cannot begin with {name.partition(':')[0]}:"
        hint = "These prefixes are reserved for waits, subtasks and sleeps."
    if problem is not None:
        raise InvalidArgument(problem, hint=hint, argument="name")


def unique_name(kind: str, text: str, used: Container[str]) -> str:
    """Return `kind:text`, with a number from the second use on."""
    base = shorten(f"{kind}:{' '.join(clean_text(text).split())}", MAX_BYTES - 8)
    name, number = base, 1
    while name in used:
        number += 1
        name = f"{base}#{number}"
    return name


def shorten(text: str, limit: int = MAX_BYTES) -> str:
    """Return at most `limit` bytes of a text; a hash replaces the part that is cut off."""
    encoded = text.encode()
    if len(encoded) <= limit:
        return text
    suffix = f"~{hashlib.sha256(encoded).hexdigest()[:12]}"
    return encoded[: limit - len(suffix)].decode(errors="ignore") + suffix
