"""Missed and overlapping runs: the catch-up and the overlap policy of a schedule."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.drivers.engine import Driver
from tests.drivers.schedules import (
    DAG,
    HOUR,
    START,
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
from treadle.services import scheduler

SECOND = timedelta(seconds=1)


def hours(first: int, last: int) -> list[datetime]:
    return [START + number * HOUR for number in range(first, last + 1)]


def away(driver: Driver, until: datetime, **settings: Any) -> None:
    """A schedule whose first time is START, and no scheduler before `until`."""
    ready(driver, START, **settings)
    at(driver, until)
    tick(driver)


@pytest.mark.requirement("F19")
def test_catch_up_skip_creates_nothing_for_missed_times(driver: Driver) -> None:
    away(driver, START + 5.5 * HOUR, catch_up="skip")

    assert tasks(driver) == []
    assert runs(driver) == [(START, "skipped_missed")]
    row = schedule(driver)
    assert (row["next_at"], row["last_at"]) == (START + 6 * HOUR, START + 5 * HOUR)
    assert driver.value("select missed_until from treadle.schedule_runs") == START + 5 * HOUR


@pytest.mark.requirement("F19")
def test_skip_still_makes_the_time_that_has_just_come(driver: Driver) -> None:
    away(driver, START + 5 * HOUR + 20 * SECOND, catch_up="skip")

    assert runs(driver) == [(START, "skipped_missed"), (START + 5 * HOUR, "queued")]
    assert (
        driver.value(
            "select missed_until from treadle.schedule_runs where status = 'skipped_missed'"
        )
        == START + 4 * HOUR
    )
    assert schedule(driver)["next_at"] == START + 6 * HOUR


@pytest.mark.requirement("F19")
@pytest.mark.parametrize("policy", ["skip", "one", "all"])
def test_a_time_within_the_grace_is_not_missed(driver: Driver, policy: str) -> None:
    away(driver, START + 299 * SECOND, catch_up=policy, grace_s=300)

    assert runs(driver) == [(START, "queued")]


@pytest.mark.requirement("F19")
def test_a_time_after_the_grace_is_missed(driver: Driver) -> None:
    away(driver, START + 301 * SECOND, catch_up="skip", grace_s=300)

    assert runs(driver) == [(START, "skipped_missed")]


@pytest.mark.requirement("F19")
def test_one_makes_one_task_for_all_that_was_missed(driver: Driver) -> None:
    away(driver, START + 5.5 * HOUR)

    assert len(tasks(driver)) == 1
    assert runs(driver) == [(START, "skipped_missed"), (START + 5 * HOUR, "queued")]
    assert schedule(driver)["next_at"] == START + 6 * HOUR
    tick(driver, 3)
    assert len(tasks(driver)) == 1


@pytest.mark.requirement("F19")
def test_one_makes_the_only_time_that_was_missed(driver: Driver) -> None:
    away(driver, START + 0.5 * HOUR)

    assert runs(driver) == [(START, "queued")]


@pytest.mark.requirement("F19")
def test_catch_up_one_creates_each_time_that_was_not_missed(driver: Driver) -> None:
    ready(driver, START, cron="* * * * *", grace_s=3600)
    at(driver, START + 3 * timedelta(minutes=1))
    tick(driver)

    assert [status for _, status in runs(driver)] == ["queued"] * 4


@pytest.mark.requirement("F19")
def test_all_makes_each_time_in_order(driver: Driver) -> None:
    away(driver, START + 5.5 * HOUR, catch_up="all")

    assert runs(driver) == [(time, "queued") for time in hours(0, 5)]
    assert schedule(driver)["next_at"] == START + 6 * HOUR


@pytest.mark.requirement("F19")
def test_catch_up_all_is_bounded_and_continues_in_the_next_tick(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "TIMES", 20)
    monkeypatch.setattr(scheduler, "MAX_TIMES", 60)
    ready(driver, START, cron="* * * * *", catch_up="all")
    at(driver, START + timedelta(minutes=89))
    tick(driver)
    assert len(runs(driver)) == 60

    tick(driver)

    assert [nominal for nominal, _ in runs(driver)] == [
        START + timedelta(minutes=number) for number in range(90)
    ]


@pytest.mark.requirement("F19")
@pytest.mark.parametrize("kind", ["task", "dag"])
def test_overlap_skip_waits_for_the_end_of_the_last(driver: Driver, kind: str) -> None:
    ready(driver, START, overlap="skip", **({"dag": DAG} if kind == "dag" else {}))
    fire(driver, [START], START + HOUR)
    at(driver, START + HOUR)
    assert fire(driver, [START + HOUR], START + 2 * HOUR) == ["skipped_overlap"]
    while claims := driver.claim():
        driver.complete(claims[0])

    at(driver, START + 2 * HOUR)

    assert fire(driver, [START + 2 * HOUR], START + 3 * HOUR) == ["queued"]


@pytest.mark.requirement("F19")
def test_overlap_allow_does_not_look(driver: Driver) -> None:
    ready(driver, START)
    fire(driver, [START], START + HOUR)
    at(driver, START + HOUR)

    assert fire(driver, [START + HOUR], START + 2 * HOUR) == ["queued"]
    assert [task["status"] for task in tasks(driver)] == ["ready", "ready"]


@pytest.mark.requirement("F19")
@pytest.mark.parametrize("kind", ["task", "dag"])
def test_cancel_previous_cancels_active_work_with_a_reason(driver: Driver, kind: str) -> None:
    ready(driver, START, overlap="cancel_previous", **({"dag": DAG} if kind == "dag" else {}))
    fire(driver, [START], START + HOUR)
    old = {task["id"] for task in tasks(driver)}
    driver.claim()
    at(driver, START + HOUR)

    assert fire(driver, [START + HOUR], START + 2 * HOUR) == ["queued"]

    assert {driver.state_of(task) for task in old} == {"cancelled"}
    assert len(tasks(driver)) == 2 * len(old)
    assert "cancelled" not in {task["status"] for task in tasks(driver) if task["id"] not in old}
    reasons = driver.rows(
        "select distinct failure_reason from treadle.tasks where status = 'cancelled'"
    )
    assert any("schedule hourly started again" in (reason or "") for (reason,) in reasons)


@pytest.mark.requirement("F19")
def test_what_a_person_started_counts_for_the_overlap_too(driver: Driver) -> None:
    """And the one before it is not forgotten."""
    ready(driver, START, overlap="cancel_previous")
    fire(driver, [START], START + HOUR)
    driver.rows("select treadle.run_schedule('hourly', 'tester')")
    at(driver, START + HOUR)

    fire(driver, [START + HOUR], START + 2 * HOUR)

    assert sorted(task["status"] for task in tasks(driver)) == ["cancelled", "cancelled", "ready"]


@pytest.mark.requirement("F19")
@pytest.mark.parametrize(
    ("policy", "made"),
    [
        ("skip", []),
        ("one", [(START, "skipped_missed"), (START + 3 * HOUR, "queued")]),
        ("all", [(time, "queued") for time in hours(0, 3)]),
    ],
)
def test_after_a_pause_the_catch_up_policy_decides_about_missed_times(
    driver: Driver, policy: str, made: list[tuple[datetime, str]]
) -> None:
    ready(driver, START, catch_up=policy)
    driver.rows("select treadle.pause_schedule('hourly', 'a move', 'tester')")
    at(driver, START + 3.5 * HOUR)
    tick(driver)
    assert fire(driver, [START], START + HOUR) == []
    assert tasks(driver) == []

    assert driver.value("select treadle.resume_schedule('hourly', 'tester')")
    tick(driver, 2)

    assert runs(driver) == made
    assert schedule(driver)["next_at"] == START + 4 * HOUR


def test_times_before_a_new_cron_line_are_not_made_up_for(driver: Driver) -> None:
    ready(driver, START, catch_up="all")
    at(driver, START + 3.6 * HOUR)
    change(driver, cron="30 * * * *")
    tick(driver, 2)

    assert tasks(driver) == []
    assert schedule(driver)["next_at"] == START + 4.5 * HOUR


def test_a_schedule_defined_in_another_zone_starts_from_now(driver: Driver) -> None:
    at(driver, START)
    define(driver, cron="0 14 * * *", timezone="Europe/Berlin", catch_up="all")
    tick(driver, 2)

    assert schedule(driver)["next_at"] == START + timedelta(days=1)
    assert tasks(driver) == []
