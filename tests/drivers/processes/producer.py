"""A producer that records which of its tasks were acknowledged."""

from uuid import UUID

import anyio

from treadle import Treadle, Unavailable


class Producer:
    """Enqueues without end; a call that was not acknowledged is repeated with its key."""

    def __init__(self, app: Treadle, name: str) -> None:
        self._app = app
        self._name = name
        self.acknowledged: list[UUID] = []
        self.refused = 0
        self.stopped = False

    async def run(self) -> None:
        while not self.stopped:
            key = f"{self._name}-{len(self.acknowledged)}"
            try:
                handle = await self._app.enqueue("pay", {"naps": [0]}, key=key)
            except Unavailable:
                self.refused += 1
                await anyio.sleep(0.05)
            else:
                self.acknowledged.append(handle.id)
                await anyio.sleep(0.002)
