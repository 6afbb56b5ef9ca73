"""Schedules: each nominal time creates its work once, and every outcome is recorded."""

from datetime import timedelta

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.schedules import (
    DAG,
    HOUR,
    START,
    TASK,
    at,
    change,
    define,
    fire,
    ready,
    runs,
    schedule,
    tasks,
    tick,
)

SECOND = timedelta(seconds=1)


@pytest.mark.requirement("F19")
def test_a_time_that_has_come_makes_one_task_and_the_next_time_is_set(driver: Driver) -> None:
    ready(driver, START, task={**TASK, "priority": 7, "queue": "default"})

    assert fire(driver, [START], START + HOUR) == ["queued"]

    [task] = tasks(driver)
    assert (task["type"], task["spec"], task["priority"]) == ("code", {"n": 1}, 7)
    assert (task["source"], task["source_job"]) == ("schedule", "hourly")
    assert (task["created_by"], task["status"]) == ("tester", "ready")
    row = schedule(driver)
    assert (row["next_at"], row["last_at"]) == (START + HOUR, START)
    assert (row["last_status"], row["last_task"]) == ("queued", task["id"])
    assert runs(driver) == [(START, "queued")]


@pytest.mark.requirement("F19")
def test_a_second_proposal_of_the_same_time_does_nothing(driver: Driver) -> None:
    ready(driver, START)
    fire(driver, [START], START + HOUR)

    assert fire(driver, [START], START + HOUR) == []
    assert fire(driver, [START - HOUR], START + 2 * HOUR) == []
    assert fire(driver, [], START + 2 * HOUR) == []
    assert len(tasks(driver)) == 1
    assert schedule(driver)["next_at"] == START + HOUR


@pytest.mark.requirement("F19")
def test_a_time_that_has_not_come_does_nothing(driver: Driver) -> None:
    ready(driver, START)
    at(driver, START - SECOND)

    assert fire(driver, [START], START + HOUR) == []
    assert fire(driver, [START], START) == []
    assert tasks(driver) == []
    assert schedule(driver)["next_at"] == START


@pytest.mark.requirement("F19")
def test_a_time_that_was_dealt_with_is_never_dealt_with_again(driver: Driver) -> None:
    """Also when the clock or somebody's hand has set the schedule back."""
    ready(driver, START)
    fire(driver, [START], START + HOUR)
    driver.rows("update treadle.schedules set next_at = %s", START)

    assert fire(driver, [START], START + HOUR) == []
    assert runs(driver) == [(START, "queued")]
    assert len(tasks(driver)) == 1
    assert schedule(driver)["next_at"] == START + HOUR


@pytest.mark.requirement("F19")
def test_times_calculated_before_a_change_are_ignored(driver: Driver) -> None:
    ready(driver, START)
    before = schedule(driver)["revision"]
    change(driver, cron="30 * * * *")

    assert fire(driver, [START], START + HOUR, revision=before) == []
    assert fire(driver, [], START + HOUR, revision=before) == []
    assert tasks(driver) == []
    assert schedule(driver)["next_at"] is None


def test_a_change_that_is_not_of_the_calendar_leaves_the_next_time(driver: Driver) -> None:
    ready(driver, START)

    assert change(driver, jitter_s=5, overlap="skip") == "changed"
    assert change(driver, jitter_s=5, overlap="skip") == "unchanged"

    row = schedule(driver)
    assert (row["next_at"], row["jitter_s"], row["overlap"]) == (START, 5, "skip")
    assert row["cron"] == "0 * * * *"


def test_a_change_keeps_the_last_status(driver: Driver) -> None:
    ready(driver, START)
    fire(driver, [START], START + HOUR)

    change(driver, cron="30 * * * *")

    row = schedule(driver)
    assert (row["last_status"], row["last_at"]) == ("queued", START)
    assert row["last_task"] is not None


@pytest.mark.requirement("F19")
def test_a_schedule_that_another_scheduler_holds_is_left_alone(driver: Driver) -> None:
    ready(driver, START)
    other = driver.another()
    with other.conn.transaction():
        assert fire(other, [START], START + HOUR) == ["queued"]

        driver.rows("set lock_timeout = '1s'")
        assert fire(driver, [START], START + HOUR) == []
    assert len(tasks(driver)) == 1


@pytest.mark.requirement("F19")
def test_a_schedule_can_make_a_dag(driver: Driver) -> None:
    ready(driver, START, dag=DAG)

    assert fire(driver, [START], START + HOUR) == ["queued"]

    [dag] = driver.records("select * from treadle.dags")
    assert (dag["name"], dag["tasks"], dag["created_by"]) == ("hourly", 2, "tester")
    assert dag["meta"]["schedule"] == "hourly"
    assert schedule(driver)["last_dag"] == dag["id"]
    assert {task["source_job"] for task in tasks(driver)} == {"hourly"}


@pytest.mark.requirement("F19")
def test_the_template_can_refer_to_its_nominal_time(driver: Driver) -> None:
    late = START.replace(hour=22, minute=30)
    spec = {"day": "{{nominal_date}}", "deep": [{"at": "up to {{nominal_at}}"}]}
    task = {"type": "code", "spec": spec, "idempotency_key": "day-{{nominal_date}}"}
    ready(driver, late, cron="30 * * * *", timezone="Europe/Berlin", task=task)

    fire(driver, [late], late + HOUR)
    at(driver, late + HOUR)
    assert fire(driver, [late + HOUR], late + 2 * HOUR) == ["skipped_duplicate"]

    [made] = tasks(driver)
    assert made["spec"] == {"day": "2026-05-05", "deep": [{"at": "up to 2026-05-04T22:30:00Z"}]}
    assert made["idempotency_key"] == "day-2026-05-05"


@pytest.mark.requirement("F19")
def test_jitter_moves_the_start_by_the_same_amount_each_time_and_not_the_nominal_time(
    driver: Driver,
) -> None:
    ready(driver, START, jitter_s=600, catch_up="all")
    times = [START + number * HOUR for number in range(20)]
    at(driver, times[-1])

    fire(driver, times, START + 20 * HOUR)

    assert [nominal for nominal, _ in runs(driver)] == times
    query = """
    select run_at - nominal_at, run_at = treadle.run_start_at(schedules, nominal_at)
    from treadle.schedule_runs inner join treadle.tasks on tasks.id = task_id
    inner join treadle.schedules on schedules.id = schedule_id
    """
    found = driver.rows(query)
    assert all(timedelta(0) <= delay < timedelta(seconds=600) for delay, _ in found)
    assert len({delay for delay, _ in found}) > 15
    assert all(same for _, same in found)
    assert tasks(driver)[-1]["status"] == "pending"


@pytest.mark.requirement("F19")
def test_a_full_queue_is_recorded_and_the_schedule_continues(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('small', '{\"max_depth\": 1}')")
    driver.enqueue(queue="small")
    ready(driver, START, task={**TASK, "queue": "small"})

    assert fire(driver, [START], START + HOUR) == ["skipped_queue_full"]

    row = schedule(driver)
    assert (row["last_status"], row["last_task"]) == ("skipped_queue_full", None)
    assert "small" in row["last_error"]
    [event] = driver.records("select * from treadle.events where kind = 'schedule.skipped'")
    assert event["data"]["status"] == "skipped_queue_full"
    driver.complete(driver.claim_one(queues=["small"]))
    at(driver, START + HOUR)
    assert fire(driver, [START + HOUR], START + 2 * HOUR) == ["queued"]
    assert schedule(driver)["last_error"] is None


@pytest.mark.requirement("F19")
def test_work_that_cannot_be_enqueued_is_a_status_and_leaves_nothing(driver: Driver) -> None:
    ready(driver, START, task={**TASK, "type": "test"})
    driver.rows("delete from treadle.task_types where name = 'test'")

    assert fire(driver, [START], START + HOUR) == ["failed"]

    row = schedule(driver)
    assert row["last_status"] == "failed"
    assert "there is no task type 'test' (TR203)" in row["last_error"]
    assert (row["next_at"], tasks(driver)) == (START + HOUR, [])
    assert driver.rows("select kind from treadle.events where kind = 'schedule.failed'") == [
        ("schedule.failed",)
    ]


def test_a_temporary_error_is_raised_and_the_time_stays_due(driver: Driver) -> None:
    """A lock that is held too long says nothing of the schedule."""
    ready(driver, START, overlap="cancel_previous")
    fire(driver, [START], START + HOUR)
    at(driver, START + HOUR)
    other = driver.another()
    with other.conn.transaction():
        other.rows("select from treadle.tasks for update")
        driver.rows("set lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            fire(driver, [START + HOUR], START + 2 * HOUR)

    assert runs(driver) == [(START, "queued")]
    assert fire(driver, [START + HOUR], START + 2 * HOUR) == ["queued"]


@pytest.mark.requirement("F19")
def test_a_scheduler_works_out_the_first_time_and_fires_it(driver: Driver) -> None:
    at(driver, START + timedelta(minutes=10))
    define(driver)
    tick(driver)
    assert schedule(driver)["next_at"] == START + HOUR

    at(driver, START + HOUR + SECOND)
    tick(driver)

    assert runs(driver) == [(START + HOUR, "queued")]
    assert schedule(driver)["next_at"] == START + 2 * HOUR
