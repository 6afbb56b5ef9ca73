"""What many callers do at the same time, and so in one call: enqueue, claim, and complete."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypedDict
from uuid import UUID, uuid4

from fastapi import Request

from treadle.api.together import Together
from treadle.db.gateway import Gateway
from treadle.models import Claim, Enqueued


class Place(NamedTuple):
    """Where tasks go that can be enqueued together."""

    queue: str
    type: str
    options: bytes


class New(NamedTuple):
    """A task to enqueue."""

    spec: bytes
    key: str | None


class Wish(NamedTuple):
    """What agents look for whose requests can be answered together."""

    queues: tuple[str, ...]
    types: tuple[str, ...] | None
    start: bool


class Terms(TypedDict):
    """A wish as arguments."""

    queues: Sequence[str]
    types: Sequence[str] | None
    start: bool


class Done(NamedTuple):
    """A task to complete."""

    id: UUID
    token: UUID
    output: bytes
    report: bytes | None


class Crowd:
    """Shares calls between the requests of one server."""

    def __init__(self, gateway: Callable[[], Awaitable[Gateway]]) -> None:
        self._gateway = gateway
        self.enqueue = Together(self._enqueue, lambda new: new.key)
        self._claims = Together(self._claim)
        self.complete = Together(self._complete, lambda done: done.id)

    async def _enqueue(self, place: Place, tasks: list[New]) -> list[Enqueued]:
        return await enqueue_all(await self._gateway(), place, tasks)

    async def claim(self, wish: Wish, agent: str) -> Sequence[Claim]:
        """One task for an agent, or none."""
        found = await self._claims(wish, agent)
        if isinstance(found, BaseException):
            raise found
        return found

    async def _claim(self, wish: Wish, agents: list[str]) -> list[Sequence[Claim] | BaseException]:
        """One task for each request while there are any; those of an agent share a token.

        The first call is refused for what they all ask for. What goes wrong after it is the answer
        of those whom it concerns: the others have their tasks.
        """
        calls = await self._gateway()
        limits = Counter(agents)
        where: Terms = {"queues": wish.queues, "types": wish.types, "start": wish.start}
        found: dict[str, list[Claim] | BaseException] = {}
        if len(limits) > 1:
            found.update(await calls.claim_each(limits, **where))
        rest = [agent for agent in limits if agent not in found]
        alone = (
            calls.claim_tasks(agent, limit=limits[agent], token=uuid4(), **where) for agent in rest
        )
        answers = await asyncio.gather(*alone, return_exceptions=True)
        found.update(zip(rest, answers, strict=True))
        return [_next(found[agent]) for agent in agents]

    async def _complete(self, _: None, tasks: list[Done]) -> list[str]:
        """What became of each; of one alone it says in words why it is refused."""
        calls = await self._gateway()
        if len(tasks) == 1:
            return [await calls.complete_task(*tasks[0])]
        others = await calls.complete_tasks(
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


async def enqueue_all(calls: Gateway, place: Place, tasks: list[New]) -> list[Enqueued]:
    """Put tasks in one place."""
    keys = [task.key for task in tasks]
    return await calls.enqueue_batch(
        place.queue,
        place.type,
        specs=[task.spec for task in tasks],
        options=place.options,
        keys=keys if any(key is not None for key in keys) else None,
    )


def crowd_of(request: Request) -> Crowd:
    """The crowd of the server that got this request."""
    crowd: Crowd = request.app.state.crowd
    return crowd
