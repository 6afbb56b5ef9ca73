"""Finished tasks of a given age, and the pruner's calls."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.behaviour.driver import Driver

DAY = timedelta(days=1)
KEEP = {"keep_completed_s": 86400, "keep_cancelled_s": 86400}


def keep(driver: Driver, queue: str = "default", /, **settings: Any) -> None:
    """Set how long a queue keeps what has ended; a day unless said otherwise."""
    driver.rows("select treadle.define_queue(%s, %s)", queue, Jsonb(settings or KEEP))


def keep_events(driver: Driver, seconds: float) -> None:
    """Set how long events are kept; the event that says so is none of them."""
    driver.rows("select treadle.set_retention('events', %s)", seconds)
    driver.rows("delete from treadle.events where kind = 'retention.set'")


def prune(driver: Driver, limit: int = 1000, skip: list[UUID] | None = None) -> int:
    """Walk over the whole table once; how many tasks went."""
    place: str | None = "(0,0)"
    gone = 0
    while place is not None:
        query = "select place::text, pruned, bad from treadle.prune_tasks(%s::tid, %s, %s::uuid[])"
        [(place, pruned, bad)] = driver.rows(query, place, limit, skip or [])
        assert bad == []
        gone += pruned
    return gone


def complete_one(driver: Driver, output: object = None, **options: Any) -> UUID:
    """A task that is completed."""
    task = driver.enqueue(**options)
    claims = driver.claim(limit=100, queues=[str(options.get("queue", "default"))])
    [claim] = [each for each in claims if each.id == task]
    assert driver.complete(claim, output) == "completed"
    return task


def die(driver: Driver, **options: Any) -> UUID:
    """A task that gave up."""
    task = driver.enqueue(**options)
    [claim] = [each for each in driver.claim(limit=100) if each.id == task]
    driver.fail(claim, action="fail")
    assert driver.state_of(task) == "dead_lettered"
    return task


def age(driver: Driver, by: timedelta = 2 * DAY) -> None:
    """Let so much time go by."""
    driver.set_clock(by)


def exists(driver: Driver, task: UUID) -> bool:
    return bool(driver.value("select exists (select from treadle.tasks where id = %s)", task))


def archived(driver: Driver, task: UUID) -> dict[str, Any] | None:
    """The task in the history."""
    found = driver.records("select * from treadle.archived_tasks where id = %s", task)
    assert len(found) <= 1
    return found[0] if found else None
