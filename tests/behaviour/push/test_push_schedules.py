"""Schedules submit to queue `push` like other callers and record the result."""

import psycopg
import pytest

from tests.drivers.engine import Driver, Record
from tests.drivers.push import entry, submit
from tests.drivers.refusals import refused, unchanged
from tests.drivers.schedules import HOUR, START, at, define, fire, ready, schedule, tick

PROMPT = "Perform nightly maintenance..."
TASK = {"queue": "push", "spec": {"prompt": PROMPT, "model": "sonnet"}}


def shown(driver: Driver) -> Record:
    [row] = driver.records("select * from treadle.schedule_status")
    return row


@pytest.mark.requirement("Q10")
def test_a_schedule_queues_its_prompt_and_keeps_the_queue_id(driver: Driver) -> None:
    ready(driver, START, task=TASK)

    assert fire(driver, [START], START + HOUR) == ["queued"]

    found = entry(driver, schedule(driver)["last_task"])
    assert (found["state"], found["prompt"]) == ("pending", PROMPT)
    assert (found["source"], found["source_job"]) == ("scheduler", "hourly")
    assert (shown(driver)["last_status"], shown(driver)["last_queue_id"]) == (
        "queued",
        found["queue_id"],
    )


@pytest.mark.requirement("Q10")
def test_a_full_queue_is_recorded_and_the_schedule_continues(driver: Driver) -> None:
    submit(driver, size=2)
    ready(driver, START, task=TASK)
    assert fire(driver, [START], START + HOUR) == ["queued"]
    first = shown(driver)["last_queue_id"]
    at(driver, START + HOUR)

    assert fire(driver, [START + HOUR], START + 2 * HOUR) == ["skipped_queue_full"]

    assert (shown(driver)["last_status"], shown(driver)["last_queue_id"]) == (
        "skipped_queue_full",
        first,
    )
    assert "at most 2 tasks" in shown(driver)["last_error"]
    assert driver.value("select count(*) from treadle.tasks") == 2
    driver.rows("select treadle.cancel_push(%s)", first)
    at(driver, START + 2 * HOUR)
    assert fire(driver, [START + 2 * HOUR], START + 3 * HOUR) == ["queued"]


@pytest.mark.requirement("Q10")
def test_a_manual_run_into_a_full_queue_is_recorded_and_is_not_a_nominal_time(
    driver: Driver,
) -> None:
    submit(driver, size=1)
    ready(driver, START, task=TASK)
    with unchanged(driver), refused("TR105"):
        driver.rows("select treadle.run_schedule('hourly')")

    driver.rows("select treadle.record_skipped_run('hourly', 'it is full', 'me')")

    row = shown(driver)
    assert (row["last_status"], row["last_error"]) == ("skipped_queue_full", "it is full")
    assert (row["next_at"], row["last_queue_id"]) == (START, None)
    assert row["last_at"] == driver.value("select fired_at from treadle.schedule_runs")
    assert driver.rows("select nominal_at, status, actor from treadle.schedule_runs") == [
        (None, "skipped_queue_full", "me")
    ]
    assert fire(driver, [START], START + HOUR) == ["skipped_queue_full"]


@pytest.mark.requirement("Q2")
def test_the_error_of_a_manual_run_into_a_full_queue_names_the_setting(driver: Driver) -> None:
    submit(driver, size=1)
    define(driver, task=TASK)

    with pytest.raises(psycopg.Error) as raised:
        driver.rows("select treadle.run_schedule('hourly')")

    assert raised.value.sqlstate == "TR105"
    assert "TREADLE_QUEUE_MAX_SIZE" in (raised.value.diag.message_hint or "")


@pytest.mark.requirement("Q14")
def test_what_a_schedule_submits_comes_with_the_depth_of_the_queue(driver: Driver) -> None:
    submit(driver)
    ready(driver, START, task=TASK)
    row = schedule(driver)

    found = driver.rows(
        "select status, depth from treadle.fire_schedule(%s, %s, %s::timestamptz[], %s)",
        *(row["id"], row["revision"], [START], START + HOUR),
    )

    assert found == [("queued", 2)]


@pytest.mark.requirement("Q10")
def test_a_scheduler_queues_what_is_due(driver: Driver) -> None:
    define(driver, task=TASK)
    tick(driver)
    driver.rows("update treadle.schedules set next_at = date_trunc('hour', treadle.clock())")

    tick(driver)

    assert shown(driver)["last_status"] == "queued"
    [row] = driver.records("select queue_id, state from treadle.push_queue")
    assert row == {"queue_id": shown(driver)["last_queue_id"], "state": "pending"}


@pytest.mark.requirement("Q10")
def test_a_schedule_makes_the_queue_with_its_limit(driver: Driver) -> None:
    define(driver, task=TASK)

    driver.rows("select treadle.run_schedule('hourly')")

    settings = driver.rows("select max_depth, max_attempts from treadle.queues where name = 'push'")
    assert settings == [(50, 3)]


def test_a_schedule_whose_prompt_no_agent_understands_is_refused(driver: Driver) -> None:
    with refused("TR001", "prompt"):
        define(driver, task={"queue": "push", "spec": {"model": "sonnet"}})


def test_a_schedule_of_another_queue_has_no_queue_id(driver: Driver) -> None:
    ready(driver, START)

    assert fire(driver, [START], START + HOUR) == ["queued"]
    assert shown(driver)["last_queue_id"] is None
