"""Wait for results: one poll per process, whatever the number of waiters.

The first waiter polls for all; when it is done it hands over to another.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import anyio

from treadle.db.gateway import Gateway
from treadle.errors import Unavailable
from treadle.models import Ended

FIRST_S, LONGEST_S = 0.01, 0.5


class _Waiter:
    __slots__ = ("ended", "event", "id")

    def __init__(self, task_id: UUID) -> None:
        self.id = task_id
        self.event = anyio.Event()
        self.ended: Ended | None = None


class Results:
    """Watches tasks that somebody waits for."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._waiters: set[_Waiter] = set()
        self._leader: _Waiter | None = None

    async def wait(self, task_id: UUID) -> Ended:
        """Wait until a task has ended; the caller sets the time limit."""
        waiter = _Waiter(task_id)
        self._waiters.add(waiter)
        try:
            while waiter.ended is None:
                if self._leader is None:
                    with self._leading(waiter):
                        await self._poll_for(waiter)
                else:
                    await waiter.event.wait()
                    waiter.event = anyio.Event()
            return waiter.ended
        finally:
            self._waiters.discard(waiter)

    @contextmanager
    def _leading(self, waiter: _Waiter) -> Iterator[None]:
        self._leader = waiter
        try:
            yield
        finally:
            self._leader = None
            heir = next((other for other in self._waiters if other.ended is None), None)
            if heir is not None:
                heir.event.set()

    async def _poll_for(self, leader: _Waiter) -> None:
        pause = FIRST_S
        while leader.ended is None:
            try:
                found = await self._gateway.read_results(
                    list({waiter.id for waiter in self._waiters})
                )
            except Unavailable:
                found = []
            by_id = {ended.id: ended for ended in found}
            for waiter in self._waiters:
                if waiter.id in by_id and waiter.ended is None:
                    waiter.ended = by_id[waiter.id]
                    waiter.event.set()
            if leader.ended is None:
                await anyio.sleep(pause)
                pause = min(pause * 1.5, LONGEST_S)
