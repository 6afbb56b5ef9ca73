"""The promoter: makes tasks claimable when their time has come."""

from treadle.services.service import BATCH, Service, log


class Promoter(Service):
    """Moves due retries and due tasks to ready; woken for what falls due within seconds."""

    name = "promoter"
    channel = "task_due"

    async def tick(self) -> int:
        promoted = await self._gateway.promote_tasks(BATCH, self.skip())
        for each in promoted:
            if each.problem is not None:
                self.remember_bad(each.id, each.problem)
        moved = sum(each.problem is None for each in promoted)
        self.moved += moved
        if moved:
            log.info("tasks.promoted", tasks=moved)
        return len(promoted)

    async def next_in(self) -> float | None:
        return await self._gateway.next_due_at()
