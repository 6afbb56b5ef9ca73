"""Once cancel returns, no claim starts and no result is accepted; the agent is notified."""

import pytest

from tests.drivers.engine import Driver, Record

pytestmark = pytest.mark.requirement("F2")


@pytest.mark.parametrize("state", ["created", "pending", "ready", "claimed", "running", "retrying"])
def test_a_task_that_has_not_ended_can_be_cancelled(driver: Driver, state: str) -> None:
    options: dict[str, Record] = {"created": {"hold": True}, "pending": {"delay_s": 60}}
    task_id = driver.enqueue(**options.get(state, {}))
    if state in ("claimed", "running", "retrying"):
        claim = driver.claim_one("a", start=state != "claimed")
        if state == "retrying":
            driver.fail(claim)
    assert driver.state_of(task_id) == state

    assert driver.cancel(task_id, reason="not needed") == ["cancelled"]

    task = driver.task(task_id)
    assert (task["status"], task["outcome"], task["failure_reason"]) == (
        "cancelled",
        "cancelled",
        "not needed",
    )
    event = driver.events(task_id)[-1]
    assert (event["kind"], event["actor"]) == ("task.cancelled", "tester")
    assert event["data"] == {"reason": "not needed", "was": state, "cascaded": False}
    assert driver.claim("a") == []
    assert driver.promote() == []


def test_the_heartbeat_of_a_cancelled_task_reports_the_cancellation(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.cancel(claim.id)

    assert driver.heartbeat(claim) == "cancelled"
    assert driver.complete(claim) == "stale"


def test_the_attempt_that_was_running_is_in_the_history(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.cancel(claim.id, reason="not needed")

    [attempt] = driver.attempts(claim.id)

    assert (attempt["outcome"], attempt["agent_id"], attempt["reason"]) == (
        "cancelled",
        "a",
        "not needed",
    )
    assert attempt["class"] is None


def test_the_agent_is_free_for_another_task(driver: Driver) -> None:
    driver.agent("busy", max_concurrent_tasks=1)
    driver.enqueue_batch([{}, {}])
    first = driver.claim_one("busy")
    assert driver.claim("busy") == []

    driver.cancel(first.id)

    assert len(driver.claim("busy")) == 1


def test_many_are_cancelled_at_once_and_each_gets_its_verdict(driver: Driver) -> None:
    ready, gone, done = driver.enqueue(), driver.enqueue(), driver.enqueue(priority=1)
    driver.cancel(gone)
    driver.complete(driver.claim_one("a"))
    unknown = driver.value("select gen_random_uuid()")

    verdicts = driver.cancel(ready, gone, done, unknown, ready)

    assert verdicts == ["cancelled", "already", "ended", "unknown", "cancelled"]
    assert len(driver.events(ready)) == 1


def test_a_person_cancels_from_psql(driver: Driver) -> None:
    task_id = driver.enqueue()

    assert driver.value("select treadle.cancel_task(%s, 'not needed')", task_id) == "cancelled"
    assert driver.value("select treadle.cancel_task(%s)", task_id) == "already"
    assert driver.events(task_id)[0]["actor"] == "postgres"
