"""Budgets through their SQL functions: set, spend, read, and watch them during claims."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver, Record
from treadle.models import Claim

# Every budget at one moment: what it may not be, and what would show a leak.
WRONG = """
    select scope, scope_key, limit_usd, spent_usd, reserved_usd,
      (
        select coalesce(sum(usd), 0) from treadle.reservations where budget_id = budgets.id
      ) as held_usd
    from treadle.budgets
    where
      spent_usd + reserved_usd > limit_usd
      or reserved_usd <> (
        select coalesce(sum(usd), 0) from treadle.reservations where budget_id = budgets.id
      )
"""


def set_budget(
    driver: Driver, scope: str, key: object, usd: object, period: str | None = None, **more: Any
) -> int:
    given = "".join(f", p_{name} => %s" for name in more)
    query = f"select treadle.set_budget(%s, %s::text, %s::numeric, %s{given})"
    return int(driver.value(query, scope, key, usd, period, *more.values()))


def budget(driver: Driver, budget_id: int) -> Record:
    [row] = driver.records("select * from treadle.budgets where id = %s", budget_id)
    return row


def money(driver: Driver, budget_id: int) -> tuple[Any, Any]:
    """Spent and reserved."""
    row = budget(driver, budget_id)
    return row["spent_usd"], row["reserved_usd"]


def pay(driver: Driver, claim: Claim, usd: object, call_id: str | None = None) -> Record:
    """Record one call; return the verdict."""
    call = {"usd": str(usd), **({"call_id": call_id} if call_id else {})}
    [row] = driver.records(
        "select * from treadle.record_spend(%s, %s, %s)", claim.id, claim.token, Jsonb([call])
    )
    return row


def reserve(driver: Driver, claim: Claim, usd: object = 0, *, ask: bool = True) -> Record:
    [row] = driver.records(
        "select * from treadle.reserve_spend(%s, %s, %s::numeric, %s)",
        *(claim.id, claim.token, usd, ask),
    )
    return row


def review(driver: Driver) -> list[tuple[UUID, str]]:
    rows = driver.rows("select id, verdict, problem from treadle.review_budgets()")
    assert [row[2] for row in rows] == [None] * len(rows)
    return [(row[0], row[1]) for row in rows]


def admit(driver: Driver) -> int:
    return int(driver.value("select treadle.admit_waiting_tasks()"))


def question(driver: Driver, task_id: UUID) -> Record:
    """The one open question of a task."""
    [row] = driver.records(
        "select * from treadle.waits where task_id = %s and status = 'open'", task_id
    )
    return row


def kinds(driver: Driver) -> list[str]:
    """The kinds of budget events, in order."""
    query = "select kind from treadle.events where kind like 'budget.%%' order by id"
    return [row[0] for row in driver.rows(query)]


def dag(driver: Driver, count: int, usd: object, **options: Any) -> tuple[UUID, int]:
    """A DAG of tasks that wait for nothing, with its budget."""
    document = {
        "name": "costly",
        "budget_usd": usd,
        "tasks": [{"name": str(n), "type": "code", **options} for n in range(count)],
    }
    dag_id = driver.value("select dag_id from treadle.create_dag(%s)", Jsonb(document))
    query = "select id from treadle.budgets where scope = 'dag' and scope_key = %s::text"
    return dag_id, driver.value(query, dag_id)


@contextmanager
def watched(driver: Driver) -> Iterator[list[Record]]:
    """Check all budgets repeatedly while the block runs; the list has the violations."""
    session = driver.another()
    wrong: list[Record] = []
    looks = 0
    done = Event()

    def look() -> None:
        nonlocal looks
        while not done.is_set():
            wrong.extend(session.records(WRONG))
            looks += 1

    thread = Thread(target=look)
    thread.start()
    try:
        yield wrong
    finally:
        done.set()
        thread.join()
    assert looks > 3, "nobody looked"
    wrong.extend(driver.records(WRONG))
