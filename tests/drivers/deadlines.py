"""The effective priority computed in Python from its documentation, and re-ranking."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.drivers.engine import Driver
from treadle.models import Promoted

HALVING = 10.0
FULL = 128.0
# The maximum error of the deadline urgency that a claim sees.
ERROR = 0.0615
LEAST = 1.0


def boost(minutes_left: float) -> float:
    """The urgency of a deadline in points."""
    return FULL if minutes_left <= 0 else float(FULL * 2 ** (-minutes_left / HALVING))


def tolerance(*boosts: float) -> float:
    """By how much the order of two tasks may be wrong."""
    return 2 * max(LEAST, ERROR * max(boosts))


def rerank(driver: Driver, limit: int = 1000, skip: tuple[UUID, ...] = ()) -> list[Promoted]:
    query = "select * from treadle.rerank_tasks(%s, %s::uuid[])"
    return [Promoted(*row) for row in driver.rows(query, limit, list(skip))]


def exact(driver: Driver, task_id: UUID) -> float:
    return float(driver.value("select treadle.effective_priority(%s)", task_id))


def claimed_as(driver: Driver, task_id: UUID) -> float:
    """The effective priority that a claim compares."""
    return float(
        driver.value(
            """
            select (tasks.rank - treadle.ageing_offset(lanes.ageing, treadle.clock())) / 1000000.0
            from treadle.tasks inner join treadle.lanes on tasks.lane_id = lanes.id
            where tasks.id = %s
            """,
            task_id,
        )
    )


def enqueue_due(driver: Driver, minutes: float, **options: Any) -> UUID:
    """A task whose deadline is a number of minutes away by the shifted clock."""
    moment = driver.value("select treadle.clock() + %s", timedelta(minutes=minutes))
    return driver.enqueue(deadline_at=moment.isoformat(), **options)
