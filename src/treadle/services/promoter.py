"""The promoter: makes tasks claimable when their time has come, and lets waits expire."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from treadle.services.service import BATCH, Service, log


class MovedRow(Protocol):
    """A row that a function of SQL has moved, or could not."""

    @property
    def id(self) -> UUID: ...

    @property
    def problem(self) -> str | None: ...


class Promoter(Service):
    """Moves due retries and due tasks to ready, and ends waits that nobody answered in time.

    Re-ranks tasks whose deadline has come nearer. Gives free slots and budgets to tasks that wait
    for one, asks or gives up where a budget has run out. Says that gates are open again. Woken for
    what falls due within seconds.
    """

    name = "promoter"
    channel = "task_due"

    async def tick(self) -> int:
        db = self._db
        return max(
            self._rows("tasks.promoted", await db.tasks.promote(BATCH, self.skip())),
            self._rows("waits.expired", await db.waits.expire(BATCH, self.skip()), "wait_id"),
            self._rows("budgets.reviewed", await db.budgets.review(BATCH, self.skip())),
            self._count("tasks.admitted", await db.tasks.admit(BATCH)),
            self._rows("tasks.reranked", await db.tasks.rerank(BATCH, self.skip())),
            self._count("gates.opened", await db.gates.reopen()),
        )

    async def next_in(self) -> float | None:
        return await self._db.tasks.next_due_in()

    def _rows(self, event: str, rows: Sequence[MovedRow], of: str = "task_id") -> int:
        for each in rows:
            if each.problem is not None:
                self.skip_row(each.id, each.problem, of)
        self._count(event, sum(each.problem is None for each in rows))
        return len(rows)

    def _count(self, event: str, moved: int) -> int:
        self.moved += moved
        if moved:
            log.info(event, **{event.partition(".")[0]: moved})
        return moved
