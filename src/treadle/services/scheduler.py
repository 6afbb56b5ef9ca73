"""The scheduler: makes the work of schedules when their time has come, and that of triggers.

It reads the calendar and proposes times; SQL decides under the lock of the schedule, so that any
number of schedulers deal with each time once.
"""

import random
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice, takewhile

from treadle.cron import Cron
from treadle.db.schedules import DueSchedule, ScheduleRun
from treadle.errors import InvalidArgument, TreadleError, Unavailable
from treadle.services.service import BATCH, Service, log

# Times of one schedule in one transaction, and in one tick: after that, the others have a turn.
TIMES = 50
MOST_TIMES = 1000
# The beginnings of SQLSTATE that are no answer: the server is away, or about to go.
AWAY = ("08", "57P")


class Scheduler(Service):
    """Fires what is due and works out what comes next; then does what follows from events."""

    name = "scheduler"
    channel = "schedule_due"
    also = ("treadle_events",)

    async def tick(self) -> int:
        due = await self._db.schedules.due(BATCH, self.skip())
        # Several schedulers begin at different ends, and seldom stand in each other's way.
        random.shuffle(due)
        # What others have in hand is not counted: who could do nothing waits a little longer.
        served = [await self._serve(each) for each in due]
        return max(sum(served), await self._fire_triggers())

    async def next_in(self) -> float | None:
        return await self._db.schedules.next_due_in()

    async def _fire_triggers(self) -> int:
        """What follows from events: tasks and DAGs, and reviews of types that fail too often."""
        for name in await self._db.triggers.check_failure_rates():
            log.warning("trigger.failing_type", trigger=name)
        fired = await self._db.triggers.fire_all(BATCH)
        for each in fired:
            self.moved += each.problem is None
            (log.info if each.problem is None else log.warning)(
                "trigger.fired" if each.problem is None else "trigger.failed",
                trigger_id=str(each.id),
                event_id=each.event_id,
                task_id=each.task_id and str(each.task_id),
                dag_id=each.dag_id and str(each.dag_id),
                problem=each.problem,
            )
        return len(fired)

    async def _serve(self, due: DueSchedule) -> bool:
        """Deal with one schedule; False when somebody else does, or it cannot be done now."""
        try:
            calendar = calendar_of(due.cron, due.timezone)
            if due.next_at is None:
                first = calendar.after(due.from_at)
                await self._db.schedules.fire(due.id, due.revision, [], first)
                return True
            return await self._fire(calendar, due, due.next_at)
        except InvalidArgument as error:
            log.error("schedule.rejected", schedule=due.name, problem=str(error))
            return await self._db.schedules.reject(due.id, due.revision, str(error))
        except Unavailable as error:
            if str(error.detail.get("sqlstate") or AWAY[0]).startswith(AWAY):
                raise
            # A lock, or room, that is not to be had now: this one waits for the next tick.
            log.warning("schedule.waiting", schedule=due.name, error=str(error))
        except TreadleError as error:
            self.skip_row(due.id, str(error), "schedule_id")
        return False

    async def _fire(self, calendar: Cron, due: DueSchedule, at: datetime) -> bool:
        """Deal with all that is due, some at a time; stop where another scheduler goes on."""
        following: datetime | None = at
        for number in range(MOST_TIMES // TIMES):
            if following is None or following > due.now:
                break
            times = times_due(calendar, due, following)
            following = calendar.after(times[-1])
            runs = await self._db.schedules.fire(due.id, due.revision, times, following)
            self._tell(due, runs)
            if not runs:
                return number > 0
        return True

    def _tell(self, due: DueSchedule, runs: list[ScheduleRun]) -> None:
        for run in runs:
            self.moved += run.status == "queued"
            (log.info if run.status == "queued" else log.warning)(
                f"schedule.{run.status}",
                schedule=due.name,
                nominal_at=run.nominal_at.isoformat(),
                task_id=run.task_id and str(run.task_id),
                dag_id=run.dag_id and str(run.dag_id),
                error=run.error,
            )
            if run.depth is not None:
                _tell_queue(due, run)


def _tell_queue(due: DueSchedule, run: ScheduleRun) -> None:
    """What went to queue `push`, in the words of everybody who submits there."""
    facts = {"depth": run.depth, "source": "scheduler", "source_job": due.name}
    if run.status == "queued":
        log.info("queue.task_added", queue_id=f"queue-{run.task_id}", **facts)
    elif run.status == "skipped_queue_full":
        log.warning("queue.submit_rejected", reason="queue_full", **facts)


def times_due(calendar: Cron, due: DueSchedule, first: datetime) -> list[datetime]:
    """The times that have come, oldest first; of those that go by unmade only both ends."""
    since = due.now - timedelta(seconds=due.grace_s)
    found = [first]
    if due.catch_up != "all" and first < since:
        if due.catch_up == "one":
            last = calendar.latest(due.now, first)
            return [first, last] if last > first else [first]
        last = calendar.latest(since, first)
        found = [first, last] if last > first else [first]
    later = takewhile(lambda time: time <= due.now, calendar.times(found[-1]))
    return [*found, *islice(later, TIMES - len(found))]


@lru_cache(maxsize=1000)
def calendar_of(cron: str, timezone: str) -> Cron:
    """Reading a line takes longer than using it."""
    return Cron(cron, timezone)
