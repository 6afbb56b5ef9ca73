"""`why` reports where a task runs and how a task ended."""

from datetime import timedelta

import pytest

from tests.drivers.budgets import set_budget
from tests.drivers.engine import Driver
from tests.drivers.refusals import refused
from tests.drivers.why import only, why

pytestmark = pytest.mark.requirement("B3")


def test_a_task_that_does_not_exist_has_no_reasons(driver: Driver) -> None:
    with refused("TR201", "there is no task 00000000-0000-7000-8000-000000000000"):
        driver.rows("select * from treadle.why('00000000-0000-7000-8000-000000000000')")


def test_asking_changes_nothing_and_needs_no_right_to_write(driver: Driver) -> None:
    driver.enqueue_batch([{}] * 3, concurrency_key="k", max_cost_usd=1)
    set_budget(driver, "all", None, 2)
    session = driver.another()
    session.rows("set default_transaction_read_only = on")
    before = driver.contents()

    for (task,) in driver.rows("select id from treadle.tasks"):
        assert why(session, task)

    assert driver.contents() == before


def test_why_names_the_agent_of_a_running_task(driver: Driver) -> None:
    driver.set_clock(timedelta(0), stopped=True)
    task = driver.enqueue()
    driver.claim_one("a")
    driver.rows("update treadle.tasks set heartbeat_at = heartbeat_at - interval '3 s'")

    row = only(driver, task)

    started = driver.task(task)["started_at"]
    assert row["reason"] == "running"
    assert row["sentence"] == (
        f"running on agent a since {started:%Y-%m-%d %H:%M:%S} UTC, heartbeat 3 s ago"
    )
    assert row["detail"]["agent"] == "a"


def test_a_claim_that_was_not_started_is_said_to_be_one(driver: Driver) -> None:
    task = driver.enqueue()
    driver.claim_one("b", start=False)

    row = only(driver, task)

    assert row["reason"] == "claimed"
    assert row["sentence"].startswith("claimed by agent b since ")
    assert row["sentence"].endswith(", not started yet")


def test_a_claim_that_ran_out_waits_for_the_reaper(driver: Driver) -> None:
    task = driver.enqueue()
    driver.claim_one("a")
    driver.age_claim(task, timedelta(hours=1))

    first, second = why(driver, task)

    assert first["reason"] == "claim_expired"
    assert first["sentence"] == (
        "the claim of agent a has expired (heartbeat_timeout), but no reaper has ended it"
    )
    assert second["reason"] == "running"


def test_why_reports_a_completed_task(driver: Driver) -> None:
    task = driver.enqueue()
    driver.complete(driver.claim_one("a"))
    driver.rows("update treadle.tasks set completed_at = completed_at - interval '5 min'")

    row = only(driver, task)

    assert (row["reason"], row["sentence"]) == ("completed", "completed 5 min ago by agent a")


def test_why_reports_the_attempts_of_a_dead_letter(driver: Driver) -> None:
    task = driver.enqueue(max_attempts=1)
    driver.fail(driver.claim_one("a"), "no use")

    row = only(driver, task)

    assert row["reason"] == "dead_lettered"
    assert row["sentence"] == "dead-lettered after 1 attempt: error: no use"
    assert row["detail"]["class"] == "error"


def test_why_reports_the_reason_of_a_cancellation(driver: Driver) -> None:
    task = driver.enqueue()
    driver.cancel(task, reason="not needed")

    row = only(driver, task)

    assert (row["reason"], row["sentence"]) == ("cancelled", "cancelled: not needed")
