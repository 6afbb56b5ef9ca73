"""What a task remembers while it runs, under which names, and how it stops to wait.

Steps that were saved come with the claim and cost no round trip. A task gives up its claim only
when nothing else of it is under way: a step that runs beside a question is finished and saved, and
questions asked side by side are all open before the task waits for them together.
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
# Turns of the loop without anything under way before a task gives up its claim: who has just been
# given a result may go on with the next step.
CALM_TURNS = 3
MAX_BYTES = 200
KINDS = ("ask", "event", "spawn", "sleep")


@dataclass(eq=False, slots=True)
class CurrentStep:
    """The step that the code now running belongs to, and what it has spent."""

    journal: "Journal"
    name: str
    outer: "CurrentStep | None"
    calls: list[dict[str, Any]] = field(default_factory=list)
    over: bool = False


# Also known in threads and in tasks that a step starts: they get a copy of the context.
inside: ContextVar[CurrentStep | None] = ContextVar("inside", default=None)


@dataclass(frozen=True, slots=True)
class SuspendReason:
    """What a task waits for: answers, subtasks or a time."""

    waits: Sequence[UUID] = ()
    children: Sequence[UUID] = ()
    optional: bool = False
    until: datetime | None = None


class Journal:
    """The memory of one attempt, and its way to suspend the task."""

    def __init__(self, claim: Claim, db: Database) -> None:
        self.claim = claim
        self.db = db
        self.steps = {step["name"]: _known(step) for step in claim.steps or ()}
        self.suspended = False
        self._lost: ClaimLost | None = None
        self._names: set[str] = set()
        self._busy = 0
        self._idle = anyio.Event()
        self._reasons: list[SuspendReason] = []
        self._turn = anyio.Lock()
        self._closing: anyio.Event | None = None

    @property
    def suspending(self) -> bool:
        """Whether the claim is being given up or was."""
        return self.suspended or self._closing is not None

    def name(self, kind: str, text: str) -> str:
        """The name of a wait, a spawn or a sleep: the second of the same text is another one."""
        name = numbered(kind, text, self._names)
        self._names.add(name)
        return name

    def keep(self, name: str, kind: str, output: Any, **more: Any) -> Step:
        """Remember what the database has kept."""
        step = Step(name, kind, len(self.steps) + 1, output, datetime.now(UTC), **more)
        return self.steps.setdefault(name, step)

    def current(self) -> CurrentStep | None:
        """The step of this task that the caller runs in."""
        found = inside.get()
        return found if found is not None and found.journal is self and not found.over else None

    def forbid_in_step(self, what: str) -> None:
        """Raise in a step: when its result is known it is not called, and does none of this."""
        current = self.current()
        if current is not None:
            raise IllegalTransition(
                f"step {current.name} cannot {what}",
                hint="Do it in the handler, before the step or after it.",
                task_id=str(self.claim.id),
            )

    def check(self) -> None:
        """Raise when the claim is gone, before anything more is paid for."""
        if self.suspended:
            raise Suspended(f"task {self.claim.id} has given up its claim to wait")
        if self._lost is not None:
            raise ClaimLost(str(self._lost), hint=self._lost.hint, **self._lost.detail)

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """Something is under way: the task does not give up its claim meanwhile."""
        while self._closing is not None:
            await self._closing.wait()
        self.check()
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            if self._busy == 0:
                self._idle.set()

    async def call(self, send: Callable[[], Awaitable[T]]) -> T:
        """Call the database until it answers: each call is safe to repeat."""
        delay = 0.05
        while True:
            try:
                return await send()
            except ClaimLost as error:
                self._lost = error
                raise
            except Unavailable as error:
                log.warning("task.waiting", task_id=str(self.claim.id), error=str(error))
                await anyio.sleep(random.uniform(delay / 2, delay))
                delay = min(delay * 2, 5.0)

    async def suspend(self, reason: SuspendReason) -> NoReturn:
        """Give up the claim as soon as nothing else is under way, and end the handler."""
        self._reasons.append(reason)
        try:
            async with self._turn:
                await self._calm()
                if not self.suspended:
                    await self._give_up()
        finally:
            self._reasons.remove(reason)
        raise Suspended(f"task {self.claim.id} has given up its claim to wait")

    async def _calm(self) -> None:
        turns = 0
        while turns < CALM_TURNS:
            if self._busy:
                self._idle = anyio.Event()
                await self._idle.wait()
                turns = 0
            else:
                await anyio.lowlevel.checkpoint()
                turns += 1

    async def _give_up(self) -> None:
        self.check()
        claim = self.claim
        waits, children, optional, run_at = _together(self._reasons)
        self._closing = anyio.Event()
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
            self._closing.set()
            self._closing = None


def _together(
    reasons: Sequence[SuspendReason],
) -> tuple[list[UUID], list[UUID], bool, datetime | None]:
    """One suspension for all that is waited for.

    The task comes back when all of it has ended, and then waits again for what was left out: a time
    beside anything else, and subtasks that may fail beside subtasks that may not.
    """
    waits = [wait for reason in reasons for wait in reason.waits]
    strict = [child for reason in reasons if not reason.optional for child in reason.children]
    lenient = [child for reason in reasons if reason.optional for child in reason.children]
    times = [reason.until for reason in reasons if reason.until is not None]
    run_at = min(times) if times and not (waits or strict or lenient) else None
    return waits, strict or lenient, not strict and bool(lenient), run_at


def _known(step: dict[str, Any]) -> Step:
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
    """Raise InvalidArgument for what cannot name a step."""
    problem = hint = None
    if not isinstance(name, str) or not name or clean_text(name) != name:
        problem = f"{name!r} cannot name a step"
        hint = "Give the step a name first, then the function: ctx.step('fetch', fetch, url)"
    elif len(name.encode()) > MAX_BYTES:
        problem = f"the name of a step has at most {MAX_BYTES} bytes, this has {len(name.encode())}"
        hint = "Choose a short name; pass step_key= for what it depends on."
    elif name.startswith(tuple(f"{kind}:" for kind in KINDS)):
        problem = f"the name of a step cannot begin with {name.partition(':')[0]}:"
        hint = "Waits, subtasks and sleeps have names like that."
    if problem is not None:
        raise InvalidArgument(problem, hint=hint, argument="name")


def numbered(kind: str, text: str, used: Container[str]) -> str:
    """`kind:text`, with a number from the second use on: one answer never serves two questions."""
    base = fit(f"{kind}:{' '.join(clean_text(text).split())}", MAX_BYTES - 8)
    name, number = base, 1
    while name in used:
        number += 1
        name = f"{base}#{number}"
    return name


def fit(text: str, limit: int = MAX_BYTES) -> str:
    """The text in at most so many bytes; what is cut off is told apart by its hash."""
    whole = text.encode()
    if len(whole) <= limit:
        return text
    mark = f"~{hashlib.sha256(whole).hexdigest()[:12]}"
    return whole[: limit - len(mark)].decode(errors="ignore") + mark
