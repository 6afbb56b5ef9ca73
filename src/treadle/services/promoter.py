"""The promoter: makes tasks claimable when their time has come, and lets waits expire."""

from treadle.services.service import BATCH, Service, log


class Promoter(Service):
    """Moves due retries and due tasks to ready, and ends waits that nobody answered in time.

    Woken for what falls due within seconds.
    """

    name = "promoter"
    channel = "task_due"

    async def tick(self) -> int:
        return max(await self._promote(), await self._expire())

    async def next_in(self) -> float | None:
        return await self._gateway.next_due_at()

    async def _promote(self) -> int:
        promoted = await self._gateway.promote_tasks(BATCH, self.skip())
        for each in promoted:
            if each.problem is not None:
                self.remember_bad(each.id, each.problem)
        moved = sum(each.problem is None for each in promoted)
        self.moved += moved
        if moved:
            log.info("tasks.promoted", tasks=moved)
        return len(promoted)

    async def _expire(self) -> int:
        expired = await self._gateway.expire_waits(BATCH, self.skip())
        for each in expired:
            if each.problem is not None:
                self.remember_bad(each.id, each.problem, "wait_id")
        moved = sum(each.problem is None for each in expired)
        self.moved += moved
        if moved:
            log.info("waits.expired", waits=moved)
        return len(expired)
