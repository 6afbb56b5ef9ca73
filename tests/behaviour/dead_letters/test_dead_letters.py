"""A dead letter keeps its whole history for the reviewer."""

from datetime import timedelta

import pytest

from tests.drivers.engine import Driver
from treadle.models import Claim

pytestmark = pytest.mark.requirement("F15")

AT_ONCE = {"strategy": "immediate"}


def test_a_dead_letter_keeps_agent_error_duration_and_cost_of_every_attempt(
    driver: Driver,
) -> None:
    task_id = driver.enqueue({"url": "x"}, title="fetch x", retry={**AT_ONCE, "poison": False})
    for number, agent in enumerate(["a", "b", "a"], start=1):
        claim = driver.claim_one(agent)
        driver.age_claim(task_id, timedelta(seconds=10 * number))
        driver.rows("update treadle.tasks set cost_usd = cost_usd + %s", 0.25 * number)
        driver.fail(claim, f"error {number}", failure_class="timeout")

    [letter] = driver.records("select * from treadle.dead_letter_details")

    assert (letter["task_id"], letter["title"], letter["spec"]) == (
        task_id,
        "fetch x",
        {"url": "x"},
    )
    assert (letter["class"], letter["reason"], letter["attempts"]) == ("timeout", "error 3", 3)
    assert float(letter["total_cost_usd"]) == 1.5
    assert (letter["reviewed"], letter["poison_pill"]) == (False, False)
    history = letter["history"]
    assert [each["agent"] for each in history] == ["a", "b", "a"]
    assert [each["error"] for each in history] == ["error 1", "error 2", "error 3"]
    assert [each["cost_usd"] for each in history] == [0.25, 0.5, 0.75]
    assert [each["duration_s"] // 10 for each in history] == [1, 2, 3]


def test_a_dead_letter_raises_an_event(driver: Driver) -> None:
    driver.enqueue(max_attempts=1)
    claim = driver.claim_one("a")
    driver.fail(claim, "no luck")

    [event] = driver.events(claim.id)

    assert (event["kind"], event["queue"], event["actor"]) == (
        "task.dead_lettered",
        "default",
        "a",
    )
    assert (event["data"]["reason"], event["data"]["class"]) == ("no luck", "error")


def test_a_dead_letter_waits_for_ever(driver: Driver) -> None:
    driver.enqueue(max_attempts=1)
    claim = driver.claim_one("a")
    driver.fail(claim)
    driver.set_clock(timedelta(days=3650))

    driver.promote()
    driver.reap()

    assert driver.state_of(claim.id) == "dead_lettered"


def test_three_attempts_that_failed_on_two_agents_make_a_poison_pill(driver: Driver) -> None:
    driver.enqueue(max_attempts=10, retry=AT_ONCE)

    verdicts = [driver.fail(driver.claim_one(agent)) for agent in ("a", "b", "a")]

    assert verdicts == ["ready", "ready", "dead_lettered"]
    [letter] = driver.records("select * from treadle.dead_letter_details")
    assert letter["poison_pill"] is True
    assert driver.events(letter["task_id"])[-1]["data"]["poison_pill"] is True


def test_failures_on_one_agent_make_no_poison_pill(driver: Driver) -> None:
    driver.enqueue(max_attempts=5, retry=AT_ONCE)

    verdicts = [driver.fail(driver.claim_one("a")) for _ in range(5)]

    assert verdicts == ["ready"] * 4 + ["dead_lettered"]
    assert driver.rows("select poison_pill from treadle.dead_letters") == [(False,)]


def test_two_agents_and_two_attempts_make_no_poison_pill(driver: Driver) -> None:
    driver.enqueue(max_attempts=10, retry=AT_ONCE)

    assert [driver.fail(driver.claim_one(agent)) for agent in ("a", "b")] == ["ready", "ready"]


def test_rate_limits_make_no_poison_pill(driver: Driver) -> None:
    driver.enqueue(max_attempts=10, retry=AT_ONCE)

    def limited(claim: Claim) -> str:
        return driver.fail(claim, failure_class="rate_limit", retry_after=0)

    assert {limited(driver.claim_one(agent)) for agent in ("a", "b") * 3} == {"ready"}


def test_a_policy_may_switch_the_poison_pill_off(driver: Driver) -> None:
    driver.enqueue(max_attempts=4, retry={**AT_ONCE, "poison": False})

    verdicts = [driver.fail(driver.claim_one(agent)) for agent in ("a", "b", "a", "b")]

    assert verdicts == ["ready", "ready", "ready", "dead_lettered"]


def test_the_next_attempt_is_given_what_happened_before(driver: Driver) -> None:
    driver.set_clock(timedelta(0), stopped=True)
    driver.enqueue(max_attempts=5, retry={**AT_ONCE, "poison": False})
    first = driver.claim_one("a")
    assert first.previous is None
    driver.fail(first, "first error", failure_class="invalid_output")
    second = driver.claim_one("b")
    driver.age_claim(second.id, timedelta(seconds=100))
    driver.reap()

    previous = driver.claim_one("a").previous or []

    assert [each["attempt"] for each in previous] == [1, 2]
    assert [each["agent"] for each in previous] == ["a", "b"]
    assert [each["class"] for each in previous] == ["invalid_output", "crash"]
    assert [each["reason"] for each in previous] == ["handler", "heartbeat_timeout"]
    assert previous[0]["error"] == "first error"
    assert previous[1]["duration_s"] == 100


def test_the_next_attempt_also_gets_the_rate_limited_attempt(driver: Driver) -> None:
    driver.enqueue()
    driver.fail(driver.claim_one("a"), "429", failure_class="rate_limit", retry_after=0)

    [previous] = driver.claim_one("a").previous or []

    assert (previous["outcome"], previous["error"]) == ("rate_limited", "429")


def test_at_most_the_last_twenty_attempts_are_passed_on(driver: Driver) -> None:
    driver.enqueue(max_attempts=100, retry=AT_ONCE)
    for number in range(25):
        driver.fail(driver.claim_one("a"), f"error {number}")

    previous = driver.claim_one("a").previous or []

    assert [each["error"] for each in previous] == [f"error {number}" for number in range(5, 25)]
