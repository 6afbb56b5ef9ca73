"""The delay before a retry: exponential, fixed or immediate, with jitter."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver

pytestmark = pytest.mark.requirement("F12")


def delays(driver: Driver, policy: dict[str, Any], attempts: int) -> list[float]:
    """The delay after each of so many failed attempts of one task, by its policy."""
    driver.enqueue(max_attempts=1000, retry={"poison": False, **policy})
    found = []
    for _ in range(attempts):
        claim = driver.claim_one("a")
        verdict = driver.fail(claim)
        task = driver.task(claim.id)
        if verdict == "ready":
            found.append(0.0)
            continue
        [attempt] = driver.attempts(claim.id)[-1:]
        found.append((task["retry_at"] - attempt["ended_at"]).total_seconds())
        driver.fall_due(claim.id)
    return found


def test_exponential_delays_multiply(driver: Driver) -> None:
    policy = {"strategy": "exponential", "initial_delay_s": 10, "multiplier": 3, "jitter": False}

    assert delays(driver, {**policy, "max_delay_s": 1000}, 5) == [10, 30, 90, 270, 810]


@pytest.mark.requirement("R2")
def test_the_back_off_of_60_120_240_seconds_is_a_policy(driver: Driver) -> None:
    policy = {"strategy": "exponential", "initial_delay_s": 60, "jitter": False}

    assert delays(driver, policy, 3) == [60, 120, 240]


def test_delays_stop_at_the_cap(driver: Driver) -> None:
    policy = {"strategy": "exponential", "initial_delay_s": 100, "jitter": False}

    assert delays(driver, {**policy, "max_delay_s": 250}, 4) == [100, 200, 250, 250]


def test_fixed_delays_stay_the_same(driver: Driver) -> None:
    policy = {"strategy": "fixed", "initial_delay_s": 42, "jitter": False}

    assert delays(driver, policy, 3) == [42, 42, 42]


def test_an_immediate_retry_is_ready_at_once(driver: Driver) -> None:
    assert delays(driver, {"strategy": "immediate"}, 3) == [0, 0, 0]


def test_the_default_is_exponential_from_ten_seconds_with_jitter(driver: Driver) -> None:
    first, second, third = delays(driver, {}, 3)

    assert 5 <= first <= 15
    assert 10 <= second <= 30
    assert 20 <= third <= 60


def test_jitter_is_half_either_way_and_spreads(driver: Driver) -> None:
    policy = {"strategy": "fixed", "initial_delay_s": 100, "jitter": True, "max_delay_s": 300}
    full = driver.value("select treadle.retry_policy('default', 'code', %s)", Jsonb(policy))

    found = [driver.value("select treadle.retry_delay(%s, 1)", Jsonb(full)) for _ in range(400)]

    assert min(found) >= 50
    assert max(found) <= 150
    assert min(found) < 60
    assert max(found) > 140
    assert 90 < sum(found) / len(found) < 110


@pytest.mark.parametrize("attempt", [1, 30, 31, 62, 1000, 2_000_000_000])
def test_no_number_of_attempts_and_no_multiplier_overflows(driver: Driver, attempt: int) -> None:
    policy = {"strategy": "exponential", "initial_delay_s": 2592000, "multiplier": 100}
    full = driver.value(
        "select treadle.retry_policy('default', 'code', %s)",
        Jsonb({**policy, "max_delay_s": 2592000, "jitter": False}),
    )

    assert driver.value("select treadle.retry_delay(%s, %s)", Jsonb(full), attempt) == 2592000


def test_a_delay_that_the_handler_asks_for_wins_over_the_policy(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")

    driver.fail(claim, retry_after=1234)

    waits = driver.task(claim.id)["retry_at"] - driver.attempts(claim.id)[0]["ended_at"]
    assert waits.total_seconds() == 1234


def test_a_delay_of_zero_that_the_handler_asks_for_is_ready_at_once(driver: Driver) -> None:
    driver.enqueue()

    assert driver.fail(driver.claim_one("a"), retry_after=0) == "ready"


def test_a_policy_is_the_tasks_own_over_its_types_over_its_queues_key_by_key(
    driver: Driver,
) -> None:
    driver.rows(
        "select treadle.define_queue('q', %s)",
        Jsonb({"retry": {"strategy": "fixed", "initial_delay_s": 1, "max_delay_s": 11}}),
    )
    driver.rows(
        "select treadle.define_type('t', %s)",
        Jsonb({"retry": {"initial_delay_s": 2, "jitter": False}}),
    )
    task_id = driver.enqueue(queue="q", type="t", retry={"initial_delay_s": 3})

    policy = driver.value("select retry from treadle.task_details where id = %s", task_id)

    assert policy["initial_delay_s"] == 3
    assert policy["jitter"] is False
    assert (policy["strategy"], policy["max_delay_s"]) == ("fixed", 11)
    assert policy["multiplier"] == 2
    claim = driver.claim_one("a", queues=["q"])
    driver.fail(claim)
    waits = driver.task(task_id)["retry_at"] - driver.attempts(task_id)[0]["ended_at"]
    assert waits.total_seconds() == 3


def test_a_change_of_the_queues_policy_counts_from_the_next_failure_on(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.rows(
        "select treadle.define_queue('default', %s)", Jsonb({"retry": {"strategy": "immediate"}})
    )

    assert driver.fail(claim) == "ready"
