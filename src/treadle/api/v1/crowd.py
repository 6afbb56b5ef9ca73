"""What many callers do at the same time, and so in one call: enqueue, claim, and complete."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple
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
    """What one agent looks for, in all of its requests that can be answered together."""

    agent: str
    queues: tuple[str, ...]
    types: tuple[str, ...] | None
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
        self.claim = Together(self._claim)
        self.complete = Together(self._complete, lambda done: done.id)

    async def _enqueue(self, place: Place, tasks: list[New]) -> list[Enqueued]:
        return await enqueue_all(await self._gateway(), place, tasks)

    async def _claim(self, wish: Wish, one_each: list[None]) -> list[Sequence[Claim]]:
        """One task for each while there are any, under a token that they share."""
        calls = await self._gateway()
        found = await calls.claim_tasks(
            wish.agent,
            wish.queues,
            types=wish.types,
            limit=len(one_each),
            token=uuid4(),
            start=wish.start,
        )
        return [found[place : place + 1] for place in range(len(one_each))]

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
