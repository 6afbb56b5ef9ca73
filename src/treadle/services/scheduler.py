"""The scheduler: fires due schedules, and triggers when their events happen.

It calculates times from the cron line and proposes them. SQL decides under the lock of the
schedule, so that each time is handled once, however many schedulers run.
"""

import random
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice, takewhile

from treadle.cron import Cron
from treadle.db.schedules import DueSchedule, ScheduleRun
from treadle.errors import InvalidArgument, TreadleError, Unavailable
from treadle.services.service import BATCH, Service, log

# The maximum number of times of one schedule in one transaction, and in one tick.
TIMES = 50
MAX_TIMES = 1000
# Classes of SQLSTATE that mean that the server is unreachable or shutting down.
CONNECTION_STATES = ("08", "57P")


class Scheduler(Service):
    """Fires due schedules and calculates their next times; then fires triggers."""

    name = "scheduler"
    channel = "treadle_schedules"
    more_channels = ("treadle_events",)

    async def tick(self) -> int:
        due = await self._db.schedules.due(BATCH, self.skip())
        # In random order, so that several schedulers seldom wait for each other's locks.
        random.shuffle(due)
        # Schedules that another process handles do not count, so the next pause is longer.
        served = [await self._serve(each) for each in due]
        return max(sum(served), await self._fire_triggers())

    async def next_in(self) -> float | None:
        return await self._db.schedules.next_due_in()

    async def _fire_triggers(self) -> int:
        """Fire triggers: on events, and on types whose failure rate is too high."""
        for name in await self._db.triggers.check_failure_rates():
            log.warning("trigger.type_failing", trigger=name)
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
        """Handle one schedule; return False if another process handles it, or if it must wait."""
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
            state = str(error.detail.get("sqlstate") or CONNECTION_STATES[0])
            if state.startswith(CONNECTION_STATES):
                raise
            # A lock timeout or a lack of resources: try this schedule again in the next tick.
            log.warning("schedule.deferred", schedule=due.name, error=str(error))
        except TreadleError as error:
            self.skip_row(due.id, str(error), "schedule_id")
        return False

    async def _fire(self, calendar: Cron, due: DueSchedule, at: datetime) -> bool:
        """Handle all due times in batches; stop if another scheduler has taken over."""
        following: datetime | None = at
        for number in range(MAX_TIMES // TIMES):
            if following is None or following > due.now:
                break
            times = times_due(calendar, due, following)
            following = calendar.after(times[-1])
            runs = await self._db.schedules.fire(due.id, due.revision, times, following)
            self._log_runs(due, runs)
            if not runs:
                return number > 0
        return True

    def _log_runs(self, due: DueSchedule, runs: list[ScheduleRun]) -> None:
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
                _log_push(due, run)


def _log_push(due: DueSchedule, run: ScheduleRun) -> None:
    """Log a submission to queue `push` with the same events as the Queue API."""
    facts = {"depth": run.depth, "source": "scheduler", "schedule": due.name}
    if run.status == "queued":
        log.info("queue.task_added", queue_id=f"queue-{run.task_id}", **facts)
    elif run.status == "skipped_queue_full":
        log.warning("queue.submit_rejected", reason="queue_full", **facts)


def times_due(calendar: Cron, due: DueSchedule, first: datetime) -> list[datetime]:
    """Return the due times, oldest first; of the times to skip, only the first and the last."""
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
    """Return the calendar of a cron line; cached, because parsing is slower than using it."""
    return Cron(cron, timezone)
