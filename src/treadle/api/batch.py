"""Concurrent requests share database calls: enqueue, claim and complete (ADR 22).

While a call is in progress, requests of its kind are collected and sent with the next call. A
single request is sent at once; no request waits for others to arrive. If a shared call is rejected,
it is split in halves until each request has its own result. A call that takes long, because it
waits for a lock, delays its own requests and not those behind it.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypedDict, TypeVar
from uuid import UUID, uuid4

import anyio
from fastapi import Request

from treadle.db.database import Database
from treadle.errors import TreadleError, Unavailable
from treadle.models import Claim, Enqueued

Kind = TypeVar("Kind", bound=Hashable)
Item = TypeVar("Item")
Answer = TypeVar("Answer")
MOST = 100
LOCK_WAIT_S = 0.1


@dataclass(eq=False)
class _Pending(Generic[Item, Answer]):
    """One request; woken with its result, or to make the next call for all that are waiting."""

    item: Item
    woken: anyio.Event = field(default_factory=anyio.Event)
    answers: list[Answer] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def done(self) -> bool:
        return bool(self.answers) or self.error is not None


class Batcher(Generic[Kind, Item, Answer]):
    """Makes one call for many requests of a kind.

    Items with the same `name` are never in one call. Without `name` all items of a kind ask for the
    same thing, and what rejects one of them rejects all.
    """

    def __init__(
        self,
        send: Callable[[Kind, list[Item]], Awaitable[list[Answer]]],
        name: Callable[[Item], Hashable | None] | None = None,
    ) -> None:
        self._send = send
        self._name = name
        # The waiting requests by kind; a kind is a key while one of its calls is in progress.
        self._waiting: dict[Kind, list[_Pending[Item, Answer]]] = {}

    async def __call__(self, kind: Kind, item: Item) -> Answer:
        pending: _Pending[Item, Answer] = _Pending(item)
        waiting = self._waiting.get(kind)
        if waiting is None:
            self._waiting[kind] = [pending]
        else:
            waiting.append(pending)
            try:
                await pending.woken.wait()
            except BaseException:
                self._leave(kind, pending)
                raise
        if not pending.done:
            # Other requests depend on the call, so it is not cancelled with this one.
            with anyio.CancelScope(shield=True):
                await self._call(kind)
        if pending.error is not None:
            raise pending.error
        return pending.answers[0]

    def _leave(self, kind: Kind, pending: _Pending[Item, Answer]) -> None:
        waiting = self._waiting.get(kind, [])
        if pending in waiting:
            waiting.remove(pending)
            if pending.woken.is_set():
                self._pass_on(kind)

    async def _call(self, kind: Kind) -> None:
        group = self._group(kind)
        passed = False

        def pass_on() -> None:
            nonlocal passed
            if not passed:
                passed = True
                self._pass_on(kind)

        timer = asyncio.get_running_loop().call_later(LOCK_WAIT_S, pass_on)
        try:
            await self._answer(kind, group)
        finally:
            timer.cancel()
            for pending in group:
                pending.woken.set()
            pass_on()

    def _group(self, kind: Kind) -> list[_Pending[Item, Answer]]:
        """Take the next requests in their order, each name once."""
        group: list[_Pending[Item, Answer]] = []
        left: list[_Pending[Item, Answer]] = []
        names: set[Hashable] = set()
        for pending in self._waiting[kind]:
            name = None if self._name is None else self._name(pending.item)
            if len(group) < MOST and (name is None or name not in names):
                group.append(pending)
                names.add(name)
            else:
                left.append(pending)
        self._waiting[kind] = left
        return group

    async def _answer(self, kind: Kind, group: list[_Pending[Item, Answer]]) -> None:
        try:
            answers = await self._send(kind, [pending.item for pending in group])
        except Exception as error:
            if len(group) == 1 or self._name is None or not _may_concern_one(error):
                for pending in group:
                    pending.error = error
                return
            half = len(group) // 2
            await self._answer(kind, group[:half])
            await self._answer(kind, group[half:])
            return
        for pending, answer in zip(group, answers, strict=True):
            pending.answers.append(answer)

    def _pass_on(self, kind: Kind) -> None:
        """Have the first waiting request make the next call."""
        if self._waiting[kind]:
            self._waiting[kind][0].woken.set()
        else:
            del self._waiting[kind]


def _may_concern_one(error: Exception) -> bool:
    """Whether the error may be about one of many requests only."""
    return isinstance(error, TreadleError) and not isinstance(error, Unavailable)


class BatchKey(NamedTuple):
    """What tasks have in common that can be enqueued together."""

    queue: str
    type: str
    options: bytes


class BatchedTask(NamedTuple):
    """A task to enqueue."""

    spec: bytes
    key: str | None


class ClaimRequest(NamedTuple):
    """What claims have in common that can be made together."""

    queues: tuple[str, ...]
    types: tuple[str, ...] | None
    start: bool


class Terms(TypedDict):
    """A claim request as arguments."""

    queues: Sequence[str]
    types: Sequence[str] | None
    start: bool


class Completion(NamedTuple):
    """A task to complete."""

    id: UUID
    token: UUID
    output: bytes
    report: bytes | None


class RequestBatcher:
    """Shares calls between the requests of one server."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.enqueue = Batcher(self._enqueue, lambda new: new.key)
        self._claims = Batcher(self._claim)
        self.complete = Batcher(self._complete, lambda done: done.id)

    async def _enqueue(self, place: BatchKey, tasks: list[BatchedTask]) -> list[Enqueued]:
        return await enqueue_all(self._db, place, tasks)

    async def claim(self, wanted: ClaimRequest, agent: str) -> Sequence[Claim]:
        """Claim one task for an agent, or none."""
        found = await self._claims(wanted, agent)
        if isinstance(found, BaseException):
            raise found
        return found

    async def _claim(
        self, wanted: ClaimRequest, agents: list[str]
    ) -> list[Sequence[Claim] | BaseException]:
        """Claim one task for each request while tasks are left; those of one agent share a token.

        An error of the first call is about what all requests ask for. An error after it is the
        result of one agent only: the others have their tasks.
        """
        db = self._db
        limits = Counter(agents)
        where: Terms = {"queues": wanted.queues, "types": wanted.types, "start": wanted.start}
        found: dict[str, list[Claim] | BaseException] = {}
        if len(limits) > 1:
            found.update(await db.claims.take_each(limits, **where))
        rest = [agent for agent in limits if agent not in found]
        alone = (
            db.claims.take(agent, limit=limits[agent], token=uuid4(), **where) for agent in rest
        )
        answers = await asyncio.gather(*alone, return_exceptions=True)
        found.update(zip(rest, answers, strict=True))
        return [_next(found[agent]) for agent in agents]

    async def _complete(self, _: None, tasks: list[Completion]) -> list[str]:
        """The verdict of each."""
        others = await self._db.claims.complete(
            [(task.id, task.token) for task in tasks],
            [task.output for task in tasks],
            [0] * len(tasks),
            [task.report for task in tasks],
        )
        return [others.get(task.id, "completed") for task in tasks]


def _next(found: list[Claim] | BaseException) -> Sequence[Claim] | BaseException:
    """The next of the claims of an agent, or its error."""
    if isinstance(found, BaseException):
        return found
    return [found.pop(0)] if found else []


async def enqueue_all(db: Database, place: BatchKey, tasks: list[BatchedTask]) -> list[Enqueued]:
    """Enqueue tasks with the same queue, type and options."""
    keys = [task.key for task in tasks]
    return await db.tasks.try_enqueue_batch(
        place.queue,
        place.type,
        specs=[task.spec for task in tasks],
        options=place.options,
        keys=keys if any(key is not None for key in keys) else None,
    )


def batcher_of(request: Request) -> RequestBatcher:
    """The batcher of the server that handles a request."""
    batcher: RequestBatcher = request.app.state.batcher
    return batcher
