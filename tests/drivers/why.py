"""Ask why a task is not running, and what is next in a queue."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.drivers.engine import Driver, Record

WHY = "select sentence, reason, until, detail from treadle.why(%s)"


def why(driver: Driver, task_id: UUID) -> list[Record]:
    """Every reason, in order."""
    return driver.records(WHY, task_id)


def reasons(driver: Driver, task_id: UUID) -> list[str]:
    return [each["reason"] for each in why(driver, task_id)]


def only(driver: Driver, task_id: UUID) -> Record:
    """The one reason that holds."""
    [row] = why(driver, task_id)
    return row


def reason(driver: Driver, task_id: UUID, code: str) -> Record:
    """The reason with this code, among others."""
    [row] = [each for each in why(driver, task_id) if each["reason"] == code]
    return row


def order(driver: Driver, queue: str = "default", limit: int = 20) -> list[Record]:
    return driver.records("select * from treadle.claim_order(%s, %s)", queue, limit)


def silence(driver: Driver, agent: str) -> None:
    """Move the last heartbeat of an agent an hour into the past."""
    driver.rows(
        "update treadle.agents set heartbeat_at = heartbeat_at - interval '1 hour' where id = %s",
        agent,
    )


def short(task_id: object) -> str:
    """How sentences name a task that has no name."""
    return f"…{str(task_id)[-8:]}"


def registered(driver: Driver, agent: str) -> dict[str, Any]:
    """What an agent asks for when it claims: the queues and types that it registered."""
    [row] = driver.records("select queues, task_types from treadle.agents where id = %s", agent)
    return {"queues": row["queues"], "types": row["task_types"]}
