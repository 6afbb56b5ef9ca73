"""Claims that wait for a free slot, and how many to take ahead.

Taking ahead hides the round trip of a claim, but a claim that waits here is kept from others and
must start within its ttl. So the number adapts: it doubles when slots ran dry although there was
more to have, and halves when a claim waited too long.
"""

import time
from collections import deque

import anyio

from treadle.models import Claim

TOO_LONG_S = 0.5


class ClaimBuffer:
    """A queue of claims between the claim loop and the slots."""

    def __init__(self, slots: int, most_ahead: int | None) -> None:
        self._slots = slots
        self._most_ahead = max(100, 4 * slots) if most_ahead is None else most_ahead
        self._claims: deque[tuple[float, Claim]] = deque()
        self._sleepers: list[anyio.Event] = []
        self._room = anyio.Event()
        self.ahead = 0
        self.closed = False

    def __len__(self) -> int:
        return len(self._claims)

    def wanted(self) -> int:
        """How many tasks to claim now; 0 while it is not worth a round trip."""
        want = len(self._sleepers) + self.ahead - len(self._claims)
        if not self._sleepers and want < max(1, self.ahead // 2):
            return 0
        return max(0, want)

    def put(self, claims: list[Claim], asked: int, received: float) -> None:
        """Add claims; a full answer while slots idle means: ask for more next time."""
        if len(claims) == asked and self._sleepers:
            self.ahead = min(self._most_ahead, max(self._slots, 2 * self.ahead))
        self._claims.extend((received, claim) for claim in claims)
        for _ in range(min(len(claims), len(self._sleepers))):
            self._sleepers.pop().set()

    async def get(self) -> Claim | None:
        """The next claim for a slot; None when the buffer is closed and empty."""
        while not self._claims:
            if self.closed:
                return None
            sleeper = anyio.Event()
            self._sleepers.append(sleeper)
            self._room.set()
            await sleeper.wait()
        received, claim = self._claims.popleft()
        if time.monotonic() - received > TOO_LONG_S:
            self.ahead //= 2
        if len(self._claims) * 2 <= self.ahead:
            self._room.set()
        return claim

    async def room(self) -> None:
        """Wait until a slot is free or the buffer runs low."""
        self._room = anyio.Event()
        if self.wanted() == 0:
            await self._room.wait()

    def nudge(self) -> None:
        """Let whoever waits for room look again."""
        self._room.set()

    def take_stale(self, older_than_s: float) -> list[Claim]:
        """Claims that have waited too long to start in time: give them back."""
        limit = time.monotonic() - older_than_s
        stale = []
        while self._claims and self._claims[0][0] < limit:
            stale.append(self._claims.popleft()[1])
        if stale:
            self.ahead = 0
        return stale

    def close(self) -> list[Claim]:
        """No more claims; returns those that have not started."""
        self.closed = True
        left = [claim for _, claim in self._claims]
        self._claims.clear()
        self._room.set()
        while self._sleepers:
            self._sleepers.pop().set()
        return left
