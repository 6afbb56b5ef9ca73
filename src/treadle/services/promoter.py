"""The promoter: makes tasks ready when they are due, and expires waits."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from treadle.services.service import BATCH, Service, log


class MovedRow(Protocol):
    """A row that SQL has processed; `problem` is set if it could not."""

    @property
    def id(self) -> UUID: ...

    @property
    def problem(self) -> str | None: ...


class Promoter(Service):
    """Makes due tasks and retries ready, and expires waits without an answer.

    It also updates the rank of tasks with deadlines, admits tasks that wait for a concurrency key
    or a budget, applies the policy of tasks whose budget is exhausted, and reopens gates. A
    notification wakes it for tasks that are due within seconds.
    """

    name = "promoter"
    channel = "treadle_due"

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

    def _rows(self, event: str, rows: Sequence[MovedRow], key: str = "task_id") -> int:
        for each in rows:
            if each.problem is not None:
                self.skip_row(each.id, each.problem, key)
        self._count(event, sum(each.problem is None for each in rows))
        return len(rows)

    def _count(self, event: str, moved: int) -> int:
        self.moved += moved
        if moved:
            log.info(event, **{event.partition(".")[0]: moved})
        return moved
