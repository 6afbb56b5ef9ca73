"""Work items through their SQL functions."""

import json
from typing import Any
from uuid import UUID

from tests.drivers.engine import Driver, Record


def add(driver: Driver, description: str = "Review PR #3", **given: Any) -> UUID:
    """A new item."""
    options = "".join(f", p_{name} => %s" for name in given)
    made: UUID = driver.value(
        f"select treadle.create_work_item('code_review', %s{options})", description, *given.values()
    )
    return made


def change(driver: Driver, item: UUID, *, as_agent: str | None = None, **fields: str) -> Record:
    """Change an item; returns it as it is then."""
    driver.rows(
        "select treadle.update_work_item(%s, %s, 'marcus-a', %s)",
        item,
        json.dumps(fields),
        as_agent,
    )
    return look(driver, item)


def look(driver: Driver, item: UUID) -> Record:
    [row] = driver.records("select * from treadle.work_items where id = %s", item)
    return row


def dispatched(driver: Driver, agent: str = "steve-w", **given: Any) -> UUID:
    item = add(driver, **given)
    change(driver, item, status="dispatched", assigned_agent=agent)
    return item


def in_progress(driver: Driver, agent: str = "steve-w", **given: Any) -> UUID:
    item = dispatched(driver, agent, **given)
    change(driver, item, status="in_progress")
    return item


def taken_up_again(driver: Driver) -> UUID:
    """An item that was blocked and resumed, which only work items can be."""
    item = in_progress(driver)
    change(driver, item, status="blocked", notes="waits")
    change(driver, item, status="in_progress")
    return item


def log(driver: Driver, item: UUID) -> list[tuple[str | None, str, str | None]]:
    """What the log says of an item: from, to, agent."""
    rows = driver.rows(
        "select from_status, to_status, agent from treadle.work_log where task_id = %s"
        " order by number",
        item,
    )
    return [(row[0], row[1], row[2]) for row in rows]


def silent(driver: Driver, item: UUID, minutes: float) -> None:
    """Move the last update of an item in progress into the past."""
    driver.rows(
        "update treadle.tasks set lease_until = lease_until - make_interval(secs => %s),"
        " heartbeat_at = heartbeat_at - make_interval(secs => %s) where id = %s",
        *(minutes * 60, minutes * 60, item),
    )
