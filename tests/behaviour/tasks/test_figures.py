"""The figures of a task are true: waits and runs add up, and attempts have their own details."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.waits import answer, ask, suspend
from treadle import Treadle
from treadle.models import Claim

DAG = {
    "name": "d",
    "tasks": [
        {
            "name": "a",
            "type": "code",
            "models": ["small"],
            "retry": {"strategy": "fixed", "initial_delay_s": 10, "jitter": False},
        }
    ],
}


@pytest.fixture
def task(driver: Driver) -> UUID:
    return create_task(driver)


def create_task(driver: Driver) -> UUID:
    """A task of a DAG, at a clock that only `advance` moves."""
    driver.set_clock(timedelta(0), stopped=True)
    created: UUID = driver.value("select ids[1] from treadle.create_dag(%s)", Jsonb(DAG))
    return created


def advance(driver: Driver, seconds: float) -> None:
    driver.rows(
        "update public.test_clock set stopped_at = stopped_at + %s * interval '1 s'", seconds
    )


def spend(driver: Driver, claim: Claim, model: str, usd: float) -> None:
    calls = Jsonb([{"call_id": f"{claim.token}", "usd": usd, "model": model}])
    driver.rows("select treadle.record_spend(%s, %s, %s)", claim.id, claim.token, calls)


def times(driver: Driver, view: str = "task_details") -> tuple[float, float | None]:
    """Seconds of waiting and running."""
    [(wait_s, run_s)] = driver.rows(f"select wait_s, run_s from treadle.{view}")
    return float(wait_s), None if run_s is None else float(run_s)


def log(driver: Driver, *names: str) -> list[tuple[Any, ...]]:
    query = f"select {', '.join(names)} from treadle.dispatch_log"
    return driver.rows(f"{query} order by coalesce(ended_at, 'infinity'), attempt")


def test_waits_and_runs_add_up_over_a_question_a_retry_and_a_completion(
    driver: Driver, task: UUID
) -> None:
    advance(driver, 10)
    assert times(driver) == (10, None)
    first = driver.claim_one("a", start=False)
    advance(driver, 2)
    driver.start(first)
    spend(driver, first, "large", 0.1)
    advance(driver, 5)
    assert times(driver) == (12, 5)
    question = ask(driver, first)
    assert suspend(driver, first, question) == "blocked"
    advance(driver, 30)
    assert times(driver) == (42, 5)
    answer(driver, question, "yes")
    advance(driver, 3)
    second = driver.claim_one("b")
    advance(driver, 7)
    driver.fail(second, "no luck")
    assert times(driver) == (45, 12)
    advance(driver, 10)
    driver.promote()
    # One that fails at once, without a report of its start.
    third = driver.claim_one("a", start=False)
    advance(driver, 1)
    driver.fail(third, "again")
    advance(driver, 10)
    driver.promote()
    last = driver.claim_one("a")
    spend(driver, last, "other", 0.2)
    advance(driver, 20)
    driver.complete(last)
    advance(driver, 1000)

    for view in ("task_details", "dag_tasks"):
        assert times(driver, view) == (65, 33), view
    assert (
        driver.value(
            "select extract(epoch from completed_at - created_at)::float8 from treadle.tasks"
        )
        == 65 + 33
    )
    assert log(driver, "attempt", "agent_id", "outcome", "reason", "error", "model") == [
        (1, "a", "suspended", "blocked", None, "large"),
        (1, "b", "failed", "handler", "no luck", "small"),
        (2, "a", "failed", "handler", "again", "small"),
        (3, "a", "completed", None, None, "other"),
    ]
    spans = log(driver, "extract(epoch from ended_at - started_at)::float8", "cost_usd")
    assert spans == [
        (5, Decimal("0.1")),
        (7, Decimal(0)),
        (1, Decimal(0)),
        (20, Decimal("0.2")),
    ]


def test_a_result_that_comes_late_counts_its_run_once(driver: Driver, task: UUID) -> None:
    driver.agent("a", heartbeat_s=10)
    claim = driver.claim_one("a")
    advance(driver, 40)
    driver.reap()
    advance(driver, 5)

    driver.rows(
        "select treadle.complete_tasks(%s, %s, p_run_ms => %s)",
        *([claim.id], [claim.token], [45_000]),
    )

    assert times(driver) == (0, 45)


def test_a_claim_that_was_never_started_has_not_run(driver: Driver, task: UUID) -> None:
    claim = driver.claim_one("a", start=False)
    advance(driver, 100)
    driver.reap()

    assert times(driver) == (100, None)
    assert log(driver, "reason", "started_at") == [("claim_expired", None)]
    driver.fall_due(claim.id)
    driver.claim_one("a", start=False)
    driver.cancel(claim.id)
    assert times(driver)[1] is None


def test_the_health_of_a_queue_counts_all_attempts(driver: Driver, task: UUID) -> None:
    driver.fail(driver.claim_one("a"))
    advance(driver, 10)
    driver.promote()
    claim = driver.claim_one("a")
    advance(driver, 20)
    driver.complete(claim)

    health = "select wait_p50_s, run_p50_s from treadle.queue_health where queue = 'default'"
    assert driver.rows(health) == [(Decimal(10), Decimal(20))]


async def test_an_application_reads_the_same_figures(
    driver: Driver, task: UUID, app: Treadle
) -> None:
    advance(driver, 10)
    driver.claim_one("a")
    advance(driver, 2.5)

    row = await app.db.tasks.get(task)

    assert (float(row["wait_s"]), float(row["run_s"])) == (10, 2.5)
