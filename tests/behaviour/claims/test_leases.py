"""A claim lasts while its agent sends heartbeats; then the task is reaped."""

from datetime import timedelta

import pytest

from tests.drivers.engine import Driver
from treadle.models import Reaped

pytestmark = pytest.mark.requirement("F10")


def ended_as(driver: Driver, reaped: list[Reaped]) -> tuple[str, str, str, str]:
    """Reason, class, outcome and error of the one attempt that was reaped."""
    [each] = reaped
    [attempt] = driver.attempts(each.id)
    assert attempt["reason"] == each.reason
    return each.reason, attempt["class"], attempt["outcome"], attempt["error"]


def test_a_claim_that_is_not_started_within_its_ttl_is_taken_back(driver: Driver) -> None:
    driver.agent("a", claim_ttl_s=60)
    driver.enqueue()
    claim = driver.claim_one("a", start=False)
    driver.age_claim(claim.id, timedelta(seconds=50))
    assert driver.reap() == []

    driver.age_claim(claim.id, timedelta(seconds=11))

    assert ended_as(driver, driver.reap()) == (
        "claim_expired",
        "crash",
        "failed",
        "claimed but not started in time",
    )
    assert driver.state_of(claim.id) == "retrying"


def test_a_task_without_a_heartbeat_for_three_intervals_is_reaped(driver: Driver) -> None:
    driver.agent("a", heartbeat_s=30)
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.age_claim(claim.id, timedelta(seconds=80))
    assert driver.reap() == []

    driver.age_claim(claim.id, timedelta(seconds=11))

    assert ended_as(driver, driver.reap()) == (
        "heartbeat_timeout",
        "crash",
        "failed",
        "no heartbeat: the worker has stopped or hangs",
    )


def test_a_task_that_runs_past_its_timeout_is_reaped_despite_heartbeats(
    driver: Driver,
) -> None:
    driver.enqueue(timeout_s=100)
    claim = driver.claim_one("a")
    driver.age_claim(claim.id, timedelta(seconds=90))
    assert driver.heartbeat(claim) == "ok"
    assert driver.reap() == []

    driver.age_claim(claim.id, timedelta(seconds=11))

    assert ended_as(driver, driver.reap()) == (
        "timeout",
        "timeout",
        "failed",
        "ran longer than its timeout",
    )


def test_the_attempt_records_the_agent_and_the_times(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    before = driver.task(claim.id)
    driver.expire(claim)

    [attempt] = driver.attempts(claim.id)

    assert (attempt["agent_id"], attempt["attempt"]) == ("a", 1)
    assert attempt["claim_token"] == claim.token
    assert attempt["started_at"] == before["started_at"] - timedelta(hours=1)
    assert attempt["ended_at"] > before["started_at"]


def test_the_clock_advances_inside_a_transaction(driver: Driver) -> None:
    driver.rows("begin")
    driver.rows("select now()")

    assert driver.value("select treadle.clock() > now()")
    driver.rows("commit")


def test_a_lease_counts_from_the_claim_not_from_the_start_of_its_transaction(
    driver: Driver,
) -> None:
    driver.enqueue()
    driver.rows("begin")
    began = driver.value("select now()")
    claim = driver.claim_one("a")
    driver.rows("commit")

    assert claim.lease_until > began + timedelta(seconds=90)


SIGNS_OF_LIFE = {
    "start": "start_tasks(array[%s], array[%s])",
    "step": "save_step(%s, %s, 'draft', '1')",
    "validation": "validate_tasks(array[%s], array[%s])",
    "spend": """record_spend(%s, %s, '[{"call_id": "c", "usd": 0.01}]')""",
    "note": "add_attempt_note(%s, %s, 'tried')",
    "spawn": """spawn_tasks(%s, %s, 'split', '[{"type": "code"}]')""",
}


@pytest.mark.parametrize("sign", SIGNS_OF_LIFE)
def test_every_sign_of_life_leaves_a_lease_of_three_heartbeats(driver: Driver, sign: str) -> None:
    """Also the first one, straight from claimed: the time to start is over then."""
    driver.agent("a", heartbeat_s=1, claim_ttl_s=60)
    driver.enqueue()
    claim = driver.claim_one("a", start=False)

    driver.rows(f"select * from treadle.{SIGNS_OF_LIFE[sign]}", claim.id, claim.token)

    task = driver.task(claim.id)
    assert task["lease_until"] - task["heartbeat_at"] == timedelta(seconds=3)


def test_a_heartbeat_does_not_shorten_a_longer_lease(driver: Driver) -> None:
    driver.agent("a", heartbeat_s=100)
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.agent("a", heartbeat_s=1)

    driver.heartbeat(claim)

    assert driver.task(claim.id)["lease_until"] == claim.lease_until


def test_starting_a_claim_gives_it_the_lease_of_a_running_task(driver: Driver) -> None:
    driver.agent("a", heartbeat_s=100, claim_ttl_s=10)
    driver.enqueue()
    claim = driver.claim_one("a", start=False)
    driver.age_claim(claim.id, timedelta(seconds=5))

    assert driver.start(claim) == "ok"

    driver.age_claim(claim.id, timedelta(seconds=280))
    assert driver.reap() == []


def test_starting_twice_keeps_the_first_start(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a", start=False)
    driver.start(claim)
    started = driver.task(claim.id)["started_at"]

    assert driver.start(claim) == "ok"
    assert driver.task(claim.id)["started_at"] == started


def test_the_next_moment_to_look_is_when_the_first_claim_can_run_out(driver: Driver) -> None:
    assert driver.value("select treadle.next_reap_at()") is None
    driver.enqueue(timeout_s=20)
    driver.enqueue()
    timed, other = driver.claim("a", 2)

    due = driver.value("select treadle.next_reap_at()")

    assert due == driver.task(timed.id)["started_at"] + timedelta(seconds=20)
    driver.complete(timed)
    assert driver.value("select treadle.next_reap_at()") == driver.task(other.id)["lease_until"]


def test_a_task_taken_back_after_its_last_attempt_is_a_dead_letter(driver: Driver) -> None:
    driver.enqueue(max_attempts=1)
    claim = driver.claim_one("a")

    assert driver.expire(claim).status == "dead_lettered"
    assert driver.task(claim.id)["failure_class"] == "crash"
