"""Schedules through their SQL functions: define, move the clock, fire."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import anyio
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver, Record
from treadle import Treadle
from treadle.services.scheduler import Scheduler
from treadle.settings import load_settings

START = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
TASK = {"type": "code", "spec": {"n": 1}}
DAG = {"tasks": [{"name": "a", "type": "code"}, {"name": "b", "type": "test", "after": ["a"]}]}


def at(driver: Driver, moment: datetime) -> datetime:
    """Stop the clock of treadle at this time."""
    driver.set_clock(timedelta(0))
    driver.rows("update public.test_clock set stopped_at = %s", moment)
    return moment


def define(driver: Driver, name: str = "hourly", **settings: Any) -> UUID:
    """A schedule, by default one of the type code at each full hour."""
    given: Record = {"cron": "0 * * * *", **settings}
    if "dag" not in given:
        given.setdefault("task", TASK)
    driver.value("select treadle.define_schedule(%s, %s, 'tester')", name, Jsonb(given))
    return UUID(str(schedule(driver, name)["id"]))


def change(driver: Driver, name: str = "hourly", **settings: Any) -> str:
    query = "select treadle.define_schedule(%s, %s, 'tester')"
    return str(driver.value(query, name, Jsonb(settings)))


def schedule(driver: Driver, name: str = "hourly") -> Record:
    [row] = driver.records("select * from treadle.schedules where name = %s", name)
    return row


def fire(
    driver: Driver,
    due: Sequence[datetime],
    following: datetime | None,
    *,
    name: str = "hourly",
    revision: int | None = None,
) -> list[str]:
    """Propose times; return the statuses of those that were handled."""
    row = schedule(driver, name)
    rows = driver.rows(
        "select status from treadle.fire_schedule(%s, %s, %s::timestamptz[], %s)",
        *(row["id"], row["revision"] if revision is None else revision, list(due), following),
    )
    return [status for (status,) in rows]


def ready(driver: Driver, first: datetime, **settings: Any) -> datetime:
    """A schedule whose next time is `first`, at which the clock is stopped."""
    at(driver, first - timedelta(minutes=30))
    define(driver, **settings)
    assert fire(driver, [], first) == []
    return at(driver, first)


def runs(driver: Driver, name: str = "hourly") -> list[tuple[datetime | None, str]]:
    query = "select nominal_at, status from treadle.schedule_runs where schedule = %s order by id"
    return [(row[0], row[1]) for row in driver.rows(query, name)]


def tasks(driver: Driver) -> list[Record]:
    return driver.records("select * from treadle.task_details order by created_at, id")


def tick(driver: Driver, times: int = 1) -> None:
    """Run a scheduler in this process for one or more ticks."""

    async def work() -> None:
        settings = load_settings(database_url=driver.url, notify=False)
        app = Treadle(driver.url, settings=settings)
        async with app.service(Scheduler) as service:
            for _ in range(times):
                await service.tick()

    anyio.run(work)
