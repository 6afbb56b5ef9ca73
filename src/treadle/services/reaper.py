"""The reaper: ends the claims of workers that crashed, hang or are too slow."""

from treadle.services.service import BATCH, Service, log


class Reaper(Service):
    """Ends expired claims and marks silent agents."""

    name = "reaper"

    async def tick(self) -> int:
        reaped = await self._db.claims.reap(BATCH, self.skip())
        for each in reaped:
            if each.problem is not None:
                self.skip_row(each.id, each.problem)
                continue
            self.moved += 1
            log.info("claim.reaped", task_id=str(each.id), reason=each.reason, status=each.status)
        for agent in await self._db.agents.mark_silent():
            log.warning("agent.timed_out", agent=agent)
        return len(reaped)

    async def next_in(self) -> float | None:
        return await self._db.claims.next_reap_in()
