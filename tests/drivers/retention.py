"""Create finished tasks of a given age, and prune them."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.steps import claimed, record_artifact, save_step
from tests.drivers.waits import ask

DAY = timedelta(days=1)
KEEP = {"keep_completed_s": 86400, "keep_cancelled_s": 86400}


def keep(driver: Driver, queue: str = "default", /, **settings: Any) -> None:
    """Set how long a queue keeps what has ended; a day unless said otherwise."""
    driver.rows("select treadle.define_queue(%s, %s)", queue, Jsonb(settings or KEEP))


def keep_events(driver: Driver, seconds: float) -> None:
    """Set how long events are kept; the event of this change is removed."""
    driver.rows("select treadle.set_retention('events', %s)", seconds)
    driver.rows("delete from treadle.events where kind = 'retention.set'")


def prune(driver: Driver, limit: int = 1000, skip: list[UUID] | None = None) -> int:
    """Prune the whole table once; return the number of pruned tasks."""
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
    """A dead-lettered task."""
    task = driver.enqueue(**options)
    [claim] = [each for each in driver.claim(limit=100) if each.id == task]
    driver.fail(claim, action="fail")
    assert driver.state_of(task) == "dead_lettered"
    return task


def age(driver: Driver, by: timedelta = 2 * DAY) -> None:
    """Advance the clock."""
    driver.set_clock(by)


def exists(driver: Driver, task: UUID) -> bool:
    return bool(driver.value("select exists (select from treadle.tasks where id = %s)", task))


def archived(driver: Driver, task: UUID) -> dict[str, Any] | None:
    """The task in the history."""
    found = driver.records("select * from treadle.archived_tasks where id = %s", task)
    assert len(found) <= 1
    return found[0] if found else None


def sweep_events(driver: Driver) -> int:
    """Prune all events, two at a time; return the number of pruned events."""
    place: int | None = 0
    gone = 0
    while place is not None:
        query = "select * from treadle.prune_events(%s, 2, treadle.oldest_open_at())"
        [(place, pruned)] = driver.rows(query, place)
        gone += pruned
    return gone


def complete_full_task(driver: Driver) -> UUID:
    """Complete a task that has rows in every table."""
    driver.rows("""select treadle.define_queue('default', '{"audit": "full"}')""")
    claim = claimed(
        driver,
        spec={"topic": "cats", "nothing": None, "deep": {"er": [None, 1.50]}},
        title="A title",
        tags=["x", "y"],
        external_ref="ref 1",
    )
    save_step(
        driver,
        claim,
        "draft",
        {"text": None},
        calls=[{"usd": "0.25", "model": "m", "input_tokens": 7}],
    )
    record_artifact(driver, claim)
    driver.rows(
        "select treadle.add_attempt_note(%s, %s, 'look at the tail')", claim.id, claim.token
    )
    wait = ask(driver, claim)
    driver.rows("select treadle.answer_wait(%s, 'true', 'ann', 'a note')", wait)
    driver.fail(claim, action="fail")
    driver.retry(claim.id)
    again = driver.claim_one("b")
    driver.rows(
        "select treadle.complete_task(%s, %s, %s, %s)",
        *(again.id, again.token, Jsonb({"pages": 3, "rest": None})),
        Jsonb({"summary": "read", "confidence": 0.5}),
    )
    return claim.id
