"""Requests that wait for the same statement share one: enqueue, claim and complete.

While a call is under way others of its kind gather, and go together with the next. Nobody waits for
company: a lone request goes at once, and under load a round trip and a commit serve many. What is
rejected together is tried in halves, until each request has its own answer. A call that takes long,
because it waits for a lock, holds up the requests that it is for, and none behind it.
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
PATIENCE_S = 0.1


@dataclass(eq=False)
class _Pending(Generic[Item, Answer]):
    """One request; woken with its answer, or to make the next call for all that wait."""

    item: Item
    woken: anyio.Event = field(default_factory=anyio.Event)
    answers: list[Answer] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def done(self) -> bool:
        return bool(self.answers) or self.error is not None


class Batcher(Generic[Kind, Item, Answer]):
    """Makes a call for many; `name` tells items apart that must not be in one call.

    Without it all items of a kind are alike, and what refuses one of them refuses all.
    """

    def __init__(
        self,
        send: Callable[[Kind, list[Item]], Awaitable[list[Answer]]],
        name: Callable[[Item], Hashable | None] | None = None,
    ) -> None:
        self._send = send
        self._name = name
        # Those that wait, by kind; a kind is here while a call of it is waited for.
        self._waiting: dict[Kind, list[_Pending[Item, Answer]]] = {}

    async def __call__(self, kind: Kind, item: Item) -> Answer:
        seat: _Pending[Item, Answer] = _Pending(item)
        waiting = self._waiting.get(kind)
        if waiting is None:
            self._waiting[kind] = [seat]
        else:
            waiting.append(seat)
            try:
                await seat.woken.wait()
            except BaseException:
                self._leave(kind, seat)
                raise
        if not seat.done:
            # What goes together is not broken off because one of them is.
            with anyio.CancelScope(shield=True):
                await self._call(kind)
        if seat.error is not None:
            raise seat.error
        return seat.answers[0]

    def _leave(self, kind: Kind, seat: _Pending[Item, Answer]) -> None:
        waiting = self._waiting.get(kind, [])
        if seat in waiting:
            waiting.remove(seat)
            if seat.woken.is_set():
                self._pass_on(kind)

    async def _call(self, kind: Kind) -> None:
        group = self._group(kind)
        passed = False

        def pass_on() -> None:
            nonlocal passed
            if not passed:
                passed = True
                self._pass_on(kind)

        patience = asyncio.get_running_loop().call_later(PATIENCE_S, pass_on)
        try:
            await self._answer(kind, group)
        finally:
            patience.cancel()
            for seat in group:
                seat.woken.set()
            pass_on()

    def _group(self, kind: Kind) -> list[_Pending[Item, Answer]]:
        """The next ones, in the order in which they came, each name once."""
        group: list[_Pending[Item, Answer]] = []
        left: list[_Pending[Item, Answer]] = []
        names: set[Hashable] = set()
        for seat in self._waiting[kind]:
            name = None if self._name is None else self._name(seat.item)
            if len(group) < MOST and (name is None or name not in names):
                group.append(seat)
                names.add(name)
            else:
                left.append(seat)
        self._waiting[kind] = left
        return group

    async def _answer(self, kind: Kind, group: list[_Pending[Item, Answer]]) -> None:
        try:
            answers = await self._send(kind, [seat.item for seat in group])
        except Exception as error:
            if len(group) == 1 or self._name is None or not _is_of_one(error):
                for seat in group:
                    seat.error = error
                return
            half = len(group) // 2
            await self._answer(kind, group[:half])
            await self._answer(kind, group[half:])
            return
        for seat, answer in zip(group, answers, strict=True):
            seat.answers.append(answer)

    def _pass_on(self, kind: Kind) -> None:
        """The first that waits makes the next call."""
        if self._waiting[kind]:
            self._waiting[kind][0].woken.set()
        else:
            del self._waiting[kind]


def _is_of_one(error: Exception) -> bool:
    """Whether it may be that only one of many is refused."""
    return isinstance(error, TreadleError) and not isinstance(error, Unavailable)


class BatchKey(NamedTuple):
    """Where tasks go that can be enqueued together."""

    queue: str
    type: str
    options: bytes


class BatchedTask(NamedTuple):
    """A task to enqueue."""

    spec: bytes
    key: str | None


class ClaimRequest(NamedTuple):
    """What agents look for whose requests can be answered together."""

    queues: tuple[str, ...]
    types: tuple[str, ...] | None
    start: bool


class Terms(TypedDict):
    """A wish as arguments."""

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

    async def claim(self, wish: ClaimRequest, agent: str) -> Sequence[Claim]:
        """One task for an agent, or none."""
        found = await self._claims(wish, agent)
        if isinstance(found, BaseException):
            raise found
        return found

    async def _claim(
        self, wish: ClaimRequest, agents: list[str]
    ) -> list[Sequence[Claim] | BaseException]:
        """One task for each request while there are any; those of an agent share a token.

        The first call is refused for what they all ask for. What goes wrong after it is the answer
        of those whom it concerns: the others have their tasks.
        """
        db = self._db
        limits = Counter(agents)
        where: Terms = {"queues": wish.queues, "types": wish.types, "start": wish.start}
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
        """What became of each; of one alone it says in words why it is refused."""
        db = self._db
        if len(tasks) == 1:
            return [await db.claims.complete_one(*tasks[0])]
        others = await db.claims.complete(
            [(task.id, task.token) for task in tasks],
            [task.output for task in tasks],
            [0] * len(tasks),
            [task.report for task in tasks],
        )
        return [others.get(task.id, "completed") for task in tasks]


def _next(found: list[Claim] | BaseException) -> Sequence[Claim] | BaseException:
    """The next of the claims of an agent, or why there is none."""
    if isinstance(found, BaseException):
        return found
    return [found.pop(0)] if found else []


async def enqueue_all(db: Database, place: BatchKey, tasks: list[BatchedTask]) -> list[Enqueued]:
    """Put tasks in one place."""
    keys = [task.key for task in tasks]
    return await db.tasks.enqueue_batch(
        place.queue,
        place.type,
        specs=[task.spec for task in tasks],
        options=place.options,
        keys=keys if any(key is not None for key in keys) else None,
    )


def batcher_of(request: Request) -> RequestBatcher:
    """The batcher of the server that got this request."""
    batcher: RequestBatcher = request.app.state.batcher
    return batcher
