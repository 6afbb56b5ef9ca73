"""The pruner: removes ended tasks that are older than the retention of their queue.

Once a day it also deletes the files of removed tasks.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import anyio

from treadle.artifacts.store import make_store
from treadle.artifacts.sweep import Sweeper
from treadle.db.retention import START
from treadle.services.service import BATCH, Service, log
from treadle.settings import Settings

OnProgress = Callable[["PruneRound"], None]
MAX_ROUNDS = 100
# The maximum pause: a step that only waited for a lock has not loaded the database.
MAX_REST_S = 30.0


@dataclass
class PruneRound:
    """One pass over the tasks, and the counts of other removed rows."""

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
    """Removes old tasks in small steps, each in a transaction of its own.

    It pauses between steps, so that it works only a fraction (`share`) of the time.
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

    async def once(self, on_progress: OnProgress | None = None) -> PruneRound:
        """Run rounds until nothing is removed: a removed task may have been pinning others."""
        total = PruneRound()
        for _ in range(MAX_ROUNDS):
            current = PruneRound()
            while not self._stopping and await self._step(current, total):
                if on_progress is not None:
                    on_progress(total)
            total.kept = current.kept
            if self._stopping or not current.pruned:
                break
        await self._sweep()
        return total

    async def _step(self, current: PruneRound, total: PruneRound | None = None) -> bool:
        """Remove one batch of tasks, then the other rows; False when the round is over."""
        if current.place is None:
            await self._prune_events(current)
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

    async def _prune_events(self, current: PruneRound) -> None:
        open_since = await self._db.retention.oldest_open_at()
        place: int | None = 0
        while place is not None and not self._stopping:
            began = time.monotonic()
            place, removed = await self._db.retention.prune_events(place, self.batch, open_since)
            current.events += removed
            self.moved += removed
            await self._rest(time.monotonic() - began)

    async def _rest(self, worked_s: float) -> None:
        """Pause for the rest of the time; a stop ends the pause."""
        rest_s = worked_s * (1 - self.share) / self.share
        with anyio.move_on_after(min(rest_s, MAX_REST_S)):
            await self._wake.wait()

    async def _sweep(self) -> None:
        """Delete the files of removed tasks, at most once a day."""
        if self._sweeper is not None and not self._stopping:
            await self._sweeper.tick(lambda: self._stopping)

    async def _end(self, current: PruneRound) -> None:
        self._round = None
        self._next_at = time.monotonic() + self.every_s
        await self._sweep()
        facts = {"tasks": current.pruned, "events": current.events, **current.rest}
        if any(facts.values()):
            log.info(
                "pruner.round_completed",
                **facts,
                kept=current.kept,
                seconds=round(current.seconds, 1),
            )
