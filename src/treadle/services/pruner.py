"""The pruner: lets finished tasks go once they are older than their queues keep them.

Once a day it also takes away the files of tasks that are gone.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import anyio

from treadle.artifacts.store import make_store
from treadle.artifacts.sweeper import Sweeper
from treadle.db.retention import START
from treadle.services.service import BATCH, Service, log
from treadle.settings import Settings

Tell = Callable[["PruneRound"], None]
MOST_ROUNDS = 100
# A step that waited for a lock, or whose process was stopped, did not work all that time.
LONGEST_REST_S = 30.0


@dataclass
class PruneRound:
    """One walk over the tasks, and what else was old."""

    place: str | None = START
    began: float = field(default_factory=time.monotonic)
    pruned: int = 0
    kept: int = 0
    events: int = 0
    rest: dict[str, int] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


class Pruner(Service):
    """Walks over the tasks in small steps, with pauses in between, and rests until the next round.

    Each step is a transaction of its own. A share of the time is all that it takes: the rest
    belongs to those who claim and complete.
    """

    name = "pruner"

    every_s = 600.0
    share = 0.25
    batch = 1000

    _round: PruneRound | None = None
    _next_at = 0.0
    _sweeper: Sweeper | None = None

    def configure(self, settings: Settings) -> None:
        super().configure(settings)
        self.every_s = settings.prune_every_s
        self.share = settings.prune_share
        self.batch = settings.prune_batch
        self._sweeper = Sweeper(self._db, partial(make_store, settings))

    async def tick(self) -> int:
        if self._round is None:
            if time.monotonic() < self._next_at:
                return 0
            self._round = PruneRound()
        current = self._round
        began = time.monotonic()
        if not await self._step(current):
            await self._end(current)
            return 0
        await self._rest(time.monotonic() - began)
        return BATCH

    async def next_in(self) -> float | None:
        return max(0.1, self._next_at - time.monotonic())

    async def once(self, tell: Tell | None = None) -> PruneRound:
        """Walk until nothing more goes: what one round lets go may free others for the next."""
        total = PruneRound()
        for _ in range(MOST_ROUNDS):
            current = PruneRound()
            while not self._stopping and await self._step(current, total):
                if tell is not None:
                    tell(total)
            total.kept = current.kept
            if self._stopping or not current.pruned:
                break
        await self._sweep()
        return total

    async def _step(self, current: PruneRound, total: PruneRound | None = None) -> bool:
        """One batch of tasks; at the end of the table the rest. False: the round is over."""
        if current.place is None:
            await self._old_events(current)
            current.rest = await self._db.retention.prune_rest(self.batch)
            self.moved += sum(current.rest.values())
            if total is not None:
                total.events += current.events
                total.rest = {
                    kind: total.rest.get(kind, 0) + count for kind, count in current.rest.items()
                }
            return False
        done = await self._db.retention.prune_tasks(current.place, self.batch, self.skip())
        for task, problem in zip(done.bad, done.problems, strict=True):
            self.skip_row(task, problem)
        current.place = done.place
        for each in (current, total):
            if each is not None:
                each.pruned += done.pruned
                each.kept += done.kept
        self.moved += done.pruned
        return True

    async def _old_events(self, current: PruneRound) -> None:
        open_since = await self._db.retention.oldest_open_at()
        place: int | None = 0
        while place is not None and not self._stopping:
            began = time.monotonic()
            place, gone = await self._db.retention.prune_events(place, self.batch, open_since)
            current.events += gone
            self.moved += gone
            await self._rest(time.monotonic() - began)

    async def _rest(self, worked_s: float) -> None:
        """Leave the rest of the time to others; a stop ends it."""
        rest_s = worked_s * (1 - self.share) / self.share
        with anyio.move_on_after(min(rest_s, LONGEST_REST_S)):
            await self._wake.wait()

    async def _sweep(self) -> None:
        """Once a day: the files of tasks that are gone."""
        if self._sweeper is not None and not self._stopping:
            await self._sweeper.tick(lambda: self._stopping)

    async def _end(self, current: PruneRound) -> None:
        self._round = None
        self._next_at = time.monotonic() + self.every_s
        await self._sweep()
        facts = {"tasks": current.pruned, "events": current.events, **current.rest}
        if any(facts.values()):
            log.info("round.pruned", **facts, kept=current.kept, seconds=round(current.seconds, 1))
