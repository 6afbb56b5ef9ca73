"""A worker that lost its claim can no longer change the task."""

from uuid import uuid4

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from treadle.models import Claim

pytestmark = pytest.mark.requirement("F8")


def superseded(driver: Driver) -> tuple[Claim, Claim]:
    """A claim of agent a that ran out, and the claim of agent b that took over."""
    driver.enqueue(retry={"strategy": "immediate"})
    first = driver.claim_one("a")
    driver.expire(first)
    second = driver.claim_one("b")
    assert (second.id, second.attempt) == (first.id, 2)
    return first, second


def test_a_superseded_claim_cannot_complete_the_task(driver: Driver) -> None:
    first, second = superseded(driver)

    with unchanged(driver):
        verdict = driver.complete(first, {"from": "a"})

    assert verdict == "stale"
    assert driver.complete(second, {"from": "b"}) == "completed"
    assert driver.task(first.id)["output"] == {"from": "b"}


def test_a_superseded_claim_cannot_fail_the_task(driver: Driver) -> None:
    first, _ = superseded(driver)

    with unchanged(driver):
        assert driver.fail(first) == "stale"


def test_a_superseded_claim_cannot_renew_the_lease_or_report_progress(driver: Driver) -> None:
    first, _ = superseded(driver)

    with unchanged(driver):
        assert driver.heartbeat(first, {"value": 0.9}) == "lost"


def test_a_superseded_claim_cannot_give_the_task_back(driver: Driver) -> None:
    first, _ = superseded(driver)

    with unchanged(driver):
        assert driver.release(first) == "stale"


def test_a_superseded_claim_cannot_start_the_task(driver: Driver) -> None:
    driver.enqueue(retry={"strategy": "immediate"})
    first = driver.claim_one("a", start=False)
    driver.expire(first)
    driver.claim_one("b", start=False)

    with unchanged(driver):
        assert driver.start(first) == "lost"


def test_the_same_agent_is_fenced_from_its_own_older_claim(driver: Driver) -> None:
    driver.enqueue(retry={"strategy": "immediate"})
    first = driver.claim_one("a")
    driver.expire(first)
    driver.claim_one("a")

    with unchanged(driver):
        verdicts = [
            driver.complete(first),
            driver.fail(first),
            driver.release(first),
            driver.heartbeat(first),
        ]

    assert verdicts == ["stale", "stale", "stale", "lost"]


def test_the_singular_calls_raise_claim_lost_for_a_superseded_claim(driver: Driver) -> None:
    first, _ = superseded(driver)

    with unchanged(driver):
        with refused("TR101", "is no longer valid"):
            driver.rows("select treadle.complete_task(%s, %s, '{}')", first.id, first.token)
        with refused("TR101", "is no longer valid"):
            driver.rows("select treadle.fail_task(%s, %s, 'boom')", first.id, first.token)


def test_a_token_that_never_was_a_claim_changes_nothing(driver: Driver) -> None:
    task_id = driver.enqueue()
    driver.claim_one("a")
    calls = ["complete_tasks", "fail_tasks", "release_tasks", "heartbeat_tasks", "start_tasks"]

    with unchanged(driver):
        for call in calls:
            [row] = driver.records(f"select * from treadle.{call}(%s, %s)", [task_id], [uuid4()])
            assert row["verdict"] in ("stale", "lost"), call


def test_the_token_of_one_task_is_not_valid_for_another(driver: Driver) -> None:
    driver.enqueue_batch([{}, {}])
    [first], [second] = driver.claim("a"), driver.claim("b")

    with unchanged(driver):
        rows = driver.rows(
            "select verdict from treadle.complete_tasks(%s, %s)",
            [first.id, second.id],
            [second.token, first.token],
        )

    assert rows == [("stale",), ("stale",)]


def test_a_stale_claim_in_a_batch_does_not_hinder_the_others(driver: Driver) -> None:
    first, second = superseded(driver)
    driver.enqueue()
    other = driver.claim_one("a")

    rows = driver.rows(
        "select id, verdict from treadle.complete_tasks(%s, %s)",
        [first.id, other.id],
        [first.token, other.token],
    )

    assert rows == [(first.id, "stale"), (other.id, "completed")]
    assert driver.task(first.id)["claim_token"] == second.token
