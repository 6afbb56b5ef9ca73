"""After failures in a row the tasks of a type are not claimed until a probe succeeds."""

from datetime import timedelta

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.gates import breaker, breaker_on, events, fail_in_a_row, opened, probe_due, state
from tests.drivers.refusals import refused, unchanged

pytestmark = pytest.mark.requirement("R5")


def test_five_failures_in_a_row_keep_the_type_back_and_no_other(driver: Driver) -> None:
    breaker_on(driver)
    fail_in_a_row(driver, 4)
    assert state(driver) == "closed"
    fail_in_a_row(driver, 1)

    driver.enqueue(type="code")
    other = driver.enqueue(type="review")

    assert state(driver) == "open"
    assert [claim.id for claim in driver.claim("a", 10)] == [other]


def test_opening_a_breaker_emits_an_event_with_the_cause(driver: Driver) -> None:
    breaker_on(driver)
    last = fail_in_a_row(driver, 5, error="no route to host\n\nTraceback")[-1]

    [event] = events(driver, "breaker.opened")
    data = event["data"]
    assert (data["type"], data["why"], data["failures"]) == ("code", "failures in a row", 5)
    assert (data["class"], data["error"]) == ("error", "no route to host")
    assert data["task_id"] == str(last.id)


def test_a_success_in_between_resets_the_count(driver: Driver) -> None:
    breaker_on(driver)
    fail_in_a_row(driver, 4)
    driver.enqueue()
    driver.complete(driver.claim_one("a"))
    fail_in_a_row(driver, 4)

    assert (state(driver), breaker(driver)["failures"]) == ("closed", 4)


@pytest.mark.parametrize("failure_class", ["error", "crash", "timeout", "auth_failure"])
def test_what_counts(driver: Driver, failure_class: str) -> None:
    breaker_on(driver)
    fail_in_a_row(driver, 5, failure_class=failure_class)

    assert state(driver) == "open"


@pytest.mark.parametrize(
    "options",
    [
        {"failure_class": "rate_limit", "retry_after": 0},
        {"failure_class": "refused"},
        {"failure_class": "invalid_output"},
        {"failure_class": "budget_exceeded"},
        {"failure_class": "unavailable"},
        {"action": "cancel"},
    ],
    ids=lambda options: next(iter(options.values())),
)
def test_failures_that_do_not_concern_the_type_do_not_count(
    driver: Driver, options: dict[str, str]
) -> None:
    breaker_on(driver)
    for _ in range(6):
        driver.enqueue(max_attempts=1)
        driver.fail(driver.claim_one("a"), **options)  # type: ignore[arg-type]

    assert (state(driver), breaker(driver)["failures"]) == ("closed", 0)


def test_a_dead_worker_counts_as_one_failure_regardless_of_its_tasks(driver: Driver) -> None:
    breaker_on(driver)
    driver.enqueue_batch([{}] * 20)
    for claim in driver.claim("a", 20):
        driver.age_claim(claim.id, timedelta(hours=1))

    # Some at once, and some one by one.
    reaped = [*driver.reap(12), *(each for _ in range(8) for each in driver.reap(1))]
    assert len(reaped) == 20
    assert (state(driver), breaker(driver)["failures"]) == ("closed", 1)


def test_a_worker_that_dies_again_counts_as_another_failure(driver: Driver) -> None:
    breaker_on(driver)
    for times in range(1, 6):
        driver.enqueue(retry={"strategy": "fixed", "initial_delay_s": 3600})
        driver.age_claim(driver.claim_one("a").id, timedelta(hours=1))
        driver.rows("update treadle.tasks set claimed_at = clock_timestamp() where agent_id = 'a'")
        assert len(driver.reap()) == 1
        assert breaker(driver)["failures"] == times

    assert state(driver) == "open"


def test_a_task_that_never_started_is_not_a_failure(driver: Driver) -> None:
    breaker_on(driver)
    driver.enqueue_batch([{}] * 6)
    for claim in driver.claim("a", 6, start=False):
        driver.age_claim(claim.id, timedelta(hours=1))

    assert {each.reason for each in driver.reap()} == {"claim_expired"}
    assert breaker(driver)["failures"] == 0


def test_a_task_that_ran_too_long_is_a_failure_each(driver: Driver) -> None:
    breaker_on(driver)
    driver.enqueue_batch([{}] * 5, timeout_s=1)
    for claim in driver.claim("a", 5):
        driver.age_claim(claim.id, timedelta(seconds=10))
        driver.heartbeat(claim)

    assert {each.reason for each in driver.reap()} == {"timeout"}
    assert state(driver) == "open"


def test_overrides_of_a_type(driver: Driver) -> None:
    breaker_on(driver, threshold=2, first_probe_s=7, cooldown_s=11)
    fail_in_a_row(driver, 2)

    found = breaker(driver)
    assert found["state"] == "open"
    assert found["probe_at"] - found["opened_at"] == timedelta(seconds=7)

    driver.enqueue()
    probe_due(driver)
    driver.fail(driver.claim_one("a"))
    found = breaker(driver)
    assert found["probe_at"] - found["opened_at"] == timedelta(seconds=11)


def test_a_threshold_of_zero_disables_the_breaker(driver: Driver) -> None:
    breaker_on(driver, threshold=0)
    fail_in_a_row(driver, 20)

    assert state(driver) == "closed"


def test_by_default_the_first_probe_is_after_a_minute_and_the_next_after_five(
    driver: Driver,
) -> None:
    opened(driver)
    found = breaker(driver)
    assert found["probe_at"] - found["opened_at"] == timedelta(seconds=60)

    driver.enqueue()
    probe_due(driver)
    driver.fail(driver.claim_one("a"))

    found = breaker(driver)
    assert found["state"] == "open"
    assert found["probe_at"] - found["opened_at"] == timedelta(seconds=300)
    assert [each["data"]["why"] for each in events(driver, "breaker.opened")] == [
        "failures in a row",
        "the probe failed",
    ]


def test_an_operator_trips_and_resets_a_breaker(driver: Driver) -> None:
    driver.enqueue()
    driver.rows("select treadle.trip_breaker('code', 600, 'the cluster moves', 'ann')")
    found = breaker(driver)
    assert (found["state"], found["last_error"], found["opened_by"]) == (
        "open",
        "the cluster moves",
        "ann",
    )
    assert driver.claim("a") == []

    assert driver.value("select treadle.reset_breaker('code', 'ann')") is True
    assert driver.value("select treadle.reset_breaker('code', 'ann')") is False
    assert len(driver.claim("a")) == 1
    assert [each["actor"] for each in events(driver, "breaker.closed")] == ["ann"]


@pytest.mark.parametrize("seconds", ["0", "-1", "'NaN'", "'Infinity'", "1e12"])
def test_a_breaker_is_not_tripped_for_a_time_that_makes_no_sense(
    driver: Driver, seconds: str
) -> None:
    with unchanged(driver), refused("TR001", "cannot be open for"):
        driver.rows(f"select treadle.trip_breaker('code', {seconds})")


@pytest.mark.parametrize("call", ["trip_breaker", "reset_breaker", "pause_type", "resume_type"])
def test_an_unknown_type_is_rejected(driver: Driver, call: str) -> None:
    with unchanged(driver), refused("TR203", "there is no task type 'cod'"):
        driver.rows(f"select treadle.{call}('cod')")


@pytest.mark.parametrize(
    "settings",
    [
        {"threshold": -1},
        {"threshold": 1.5},
        {"threshold": "5"},
        {"first_probe_s": 0},
        {"cooldown_s": -3},
        {"cooldown_s": 1e9},
        {"treshold": 3},
        [],
        None,
    ],
    ids=str,
)
def test_overrides_that_make_no_sense_are_refused(driver: Driver, settings: object) -> None:
    with unchanged(driver), refused("TR001", "the breaker settings are invalid"):
        driver.rows("select treadle.define_type('code', %s)", Jsonb({"breaker": settings}))


@pytest.mark.requirement("B7")
def test_a_paused_type_is_not_claimed_until_it_is_resumed(driver: Driver) -> None:
    task, other = driver.enqueue(), driver.enqueue(type="review")
    running = driver.enqueue(type="deploy")
    claim = driver.claim_one("a", types=["deploy"])
    driver.rows("select treadle.pause_type('code', 'a bug', 'ann')")
    driver.rows("select treadle.pause_type('deploy')")

    assert [each.id for each in driver.claim("a", 10)] == [other]
    assert (claim.id, driver.complete(claim)) == (running, "completed")
    [shown] = driver.records("select * from treadle.type_status where type = 'code'")
    assert (shown["state"], shown["paused_reason"], shown["paused_by"]) == (
        "paused",
        "a bug",
        "ann",
    )

    driver.rows("select treadle.resume_type('code', 'ann')")
    assert [each.id for each in driver.claim("a", 10)] == [task]
    assert len(events(driver, "type.paused")) == 2
    assert len(events(driver, "type.resumed")) == 1
