"""Requests that wait for the same statement share one.

While a call is under way others of its kind gather, and go together with the next. Nobody waits for
company: a lone request goes at once, and under load a round trip and a commit serve many. What is
refused together is tried in halves, until each request has heard its own answer. A call that takes
long, because it waits for somebody's lock, holds up those that it is for, and nobody behind it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

from treadle.errors import TreadleError, Unavailable

Kind = TypeVar("Kind", bound=Hashable)
Item = TypeVar("Item")
Answer = TypeVar("Answer")
MOST = 100
PATIENCE_S = 0.1


@dataclass(eq=False)
class _Seat(Generic[Item, Answer]):
    """One request; woken with its answer, or to make the next call for all that wait."""

    item: Item
    woken: anyio.Event = field(default_factory=anyio.Event)
    answers: list[Answer] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def done(self) -> bool:
        return bool(self.answers) or self.error is not None


class Together(Generic[Kind, Item, Answer]):
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
        self._waiting: dict[Kind, list[_Seat[Item, Answer]]] = {}

    async def __call__(self, kind: Kind, item: Item) -> Answer:
        seat: _Seat[Item, Answer] = _Seat(item)
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

    def _leave(self, kind: Kind, seat: _Seat[Item, Answer]) -> None:
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

    def _group(self, kind: Kind) -> list[_Seat[Item, Answer]]:
        """The next ones, in the order in which they came, each name once."""
        group: list[_Seat[Item, Answer]] = []
        left: list[_Seat[Item, Answer]] = []
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

    async def _answer(self, kind: Kind, group: list[_Seat[Item, Answer]]) -> None:
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
