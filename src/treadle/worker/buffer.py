"""Prefetched claims that wait for a free slot, and how many to prefetch.

Prefetching hides the round trip of a claim, but other workers cannot run a task that waits here,
and it must start within its claim TTL. So the number adapts: it doubles when slots are idle
although more tasks are ready, and halves when a claim has waited too long.
"""

import time
from collections import deque

import anyio

from treadle.models import Claim

TOO_LONG_S = 0.5


class ClaimBuffer:
    """A queue of claims between the claim loop and the slots."""

    def __init__(self, slots: int, max_prefetch: int | None) -> None:
        self._slots = slots
        self._max_prefetch = max(100, 4 * slots) if max_prefetch is None else max_prefetch
        self._claims: deque[tuple[float, Claim]] = deque()
        self._idle_slots: list[anyio.Event] = []
        self._room = anyio.Event()
        self.prefetch = 0
        self.closed = False

    def __len__(self) -> int:
        return len(self._claims)

    def wanted(self) -> int:
        """Return how many tasks to claim now; 0 while a round trip is not worth it."""
        want = len(self._idle_slots) + self.prefetch - len(self._claims)
        if not self._idle_slots and want < max(1, self.prefetch // 2):
            return 0
        return max(0, want)

    def put(self, claims: list[Claim], asked: int, received: float) -> None:
        """Add claims; prefetch more from now on if all that were asked for came to idle slots."""
        if len(claims) == asked and self._idle_slots:
            self.prefetch = min(self._max_prefetch, max(self._slots, 2 * self.prefetch))
        self._claims.extend((received, claim) for claim in claims)
        for _ in range(min(len(claims), len(self._idle_slots))):
            self._idle_slots.pop().set()

    async def get(self) -> Claim | None:
        """Return the next claim for a slot; None when the buffer is closed and empty."""
        while not self._claims:
            if self.closed:
                return None
            filled = anyio.Event()
            self._idle_slots.append(filled)
            self._room.set()
            await filled.wait()
        received, claim = self._claims.popleft()
        if time.monotonic() - received > TOO_LONG_S:
            self.prefetch //= 2
        if len(self._claims) * 2 <= self.prefetch:
            self._room.set()
        return claim

    async def room(self) -> None:
        """Wait until a slot is free or the buffer runs low."""
        self._room = anyio.Event()
        if self.wanted() == 0:
            await self._room.wait()

    def wake(self) -> None:
        """End a call of `room()` early."""
        self._room.set()

    def take_stale(self, older_than_s: float) -> list[Claim]:
        """Remove and return the claims that have waited too long to start in time."""
        limit = time.monotonic() - older_than_s
        stale = []
        while self._claims and self._claims[0][0] < limit:
            stale.append(self._claims.popleft()[1])
        if stale:
            self.prefetch = 0
        return stale

    def close(self) -> list[Claim]:
        """Close the buffer and return the claims that have not started."""
        self.closed = True
        left = [claim for _, claim in self._claims]
        self._claims.clear()
        self._room.set()
        while self._idle_slots:
            self._idle_slots.pop().set()
        return left
