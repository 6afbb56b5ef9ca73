"""The result of a step is stored once, and later attempts reuse it."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.drivers.engine import Driver
from tests.drivers.races import together, while_held
from tests.drivers.refusals import refused, unchanged
from tests.drivers.steps import MIB, claimed, save_step, spend, step_names, steps, superseded

pytestmark = pytest.mark.requirement("B1")


def test_the_next_attempt_is_given_the_steps_of_the_ones_before(driver: Driver) -> None:
    claim = claimed(driver)
    assert claim.steps is None
    save_step(driver, claim, "outline", {"parts": 3}, input_hash="h", input="topic: x")
    driver.fail(claim)
    again = driver.claim_one("b")
    save_step(driver, again, "draft", "text", calls=[{"usd": 0.25}])
    driver.expire(again)

    third = driver.claim_one("a")

    assert third.steps is not None
    outline, draft = third.steps
    assert (outline["name"], outline["seq"], outline["kind"]) == ("outline", 1, "step")
    assert (outline["output"], outline["input_hash"]) == ({"parts": 3}, "h")
    assert outline["input"] == "topic: x"
    assert (draft["name"], draft["output"], draft["cost_usd"]) == ("draft", "text", 0.25)
    assert datetime.fromisoformat(draft["saved_at"]) >= datetime.fromisoformat(outline["saved_at"])


def test_the_first_result_wins_and_later_callers_get_it(driver: Driver) -> None:
    claim = claimed(driver)

    assert save_step(driver, claim, output={"n": 1}) == ({"n": 1}, True)
    assert save_step(driver, claim, output={"n": 2}) == ({"n": 1}, False)

    assert [step["output"] for step in steps(driver, claim.id)] == [{"n": 1}]


def test_a_result_of_nothing_is_a_result(driver: Driver) -> None:
    claim = claimed(driver)

    assert save_step(driver, claim, output=None) == (None, True)
    assert save_step(driver, claim, output=1) == (None, False)


def test_of_two_sessions_with_one_claim_the_second_gets_what_the_first_saved(
    driver: Driver,
) -> None:
    claim = claimed(driver)

    kept = while_held(
        driver,
        lambda first: save_step(first, claim, output="first"),
        lambda second: save_step(second, claim, output="second"),
    )

    assert kept == ("first", False)


def test_a_session_that_goes_back_leaves_the_step_to_the_other(driver: Driver) -> None:
    claim = claimed(driver)

    kept = while_held(
        driver,
        lambda first: save_step(first, claim, output="first"),
        lambda second: save_step(second, claim, output="second"),
        end="rollback",
    )

    assert kept == ("second", True)


def test_steps_saved_at_once_are_numbered_without_gaps(driver: Driver) -> None:
    claim = claimed(driver)

    together(driver, 6, lambda session, n: save_step(session, claim, f"part {n}", n))

    assert [step["seq"] for step in steps(driver, claim.id)] == [1, 2, 3, 4, 5, 6]


def test_a_step_of_a_superseded_claim_is_refused(driver: Driver) -> None:
    first, second = superseded(driver)

    with unchanged(driver), refused("TR101", "is no longer valid"):
        save_step(driver, first, output="late", calls=[{"call_id": "c", "usd": 1}])

    assert save_step(driver, second, output="in time") == ("in time", True)


def test_a_superseded_claim_does_not_get_a_saved_result(driver: Driver) -> None:
    first, second = superseded(driver)
    save_step(driver, second, output="theirs")

    with unchanged(driver), refused("TR101"):
        save_step(driver, first, output="mine")


def test_a_step_that_waits_while_the_task_is_taken_over_is_refused(driver: Driver) -> None:
    claim = claimed(driver)

    def take_over(session: Driver) -> None:
        session.expire(claim)
        session.claim_one("b")

    with refused("TR101"):
        while_held(driver, take_over, lambda second: save_step(second, claim, output="late"))

    assert steps(driver, claim.id) == []


@pytest.mark.parametrize("end", ["completed", "cancelled", "failed", "released", "reaped"])
def test_a_step_after_the_claim_has_ended_is_refused(driver: Driver, end: str) -> None:
    claim = claimed(driver)
    match end:
        case "completed":
            driver.complete(claim)
        case "cancelled":
            driver.cancel(claim.id)
        case "failed":
            driver.fail(claim)
        case "released":
            driver.release(claim)
        case "reaped":
            driver.expire(claim)

    with unchanged(driver), refused("TR101"):
        save_step(driver, claim, output="late")


def test_a_claim_that_ran_out_but_was_not_taken_back_still_saves(driver: Driver) -> None:
    claim = claimed(driver)
    driver.age_claim(claim.id, timedelta(hours=1))

    save_step(driver, claim, output="paid for")

    assert driver.reap() == []
    assert driver.state_of(claim.id) == "running"


def test_a_step_renews_the_lease(driver: Driver) -> None:
    claim = claimed(driver)
    driver.age_claim(claim.id, timedelta(hours=1))
    before = driver.task(claim.id)

    save_step(driver, claim)

    after = driver.task(claim.id)
    assert after["lease_until"] > datetime.now(UTC) > before["lease_until"]
    assert after["heartbeat_at"] > before["heartbeat_at"]


def test_a_step_starts_a_task_that_was_only_claimed(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a", start=False)

    save_step(driver, claim)

    assert driver.state_of(claim.id) == "running"


def test_a_step_outlives_a_dead_letter_and_its_retry(driver: Driver) -> None:
    claim = claimed(driver, max_attempts=1)
    save_step(driver, claim, "outline", 1)
    driver.fail(claim)
    driver.retry(claim.id)

    again = driver.claim_one("b")

    assert [step["name"] for step in again.steps or []] == ["outline"]
    assert save_step(driver, again, "outline", 2) == (1, False)


def test_a_step_and_what_it_cost_are_undone_with_the_transaction(driver: Driver) -> None:
    claim = claimed(driver)

    with unchanged(driver):
        driver.rows("begin")
        save_step(driver, claim, output=1, calls=[{"usd": 1}])
        assert (step_names(driver, claim.id), len(spend(driver, claim.id))) == (["draft"], 1)
        driver.rows("rollback")


def test_an_output_of_16_mib_is_stored_completely(driver: Driver) -> None:
    claim = claimed(driver)
    text = "x" * (16 * MIB - 100)

    assert save_step(driver, claim, output=text) == (text, True)


def test_a_step_is_listed_with_its_duration_and_agent(driver: Driver) -> None:
    claim = claimed(driver, title="a report")
    began = datetime.now(UTC) - timedelta(minutes=2)
    save_step(driver, claim, "draft", {"n": 1}, calls=[{"usd": 0.5}], started_at=began)

    [row] = driver.records("select * from treadle.task_steps where task_id = %s", claim.id)

    assert (row["name"], row["seq"], row["kind"], row["output"]) == ("draft", 1, "step", {"n": 1})
    assert (row["title"], row["status"], row["agent_id"], row["attempt"]) == (
        *("a report", "running", "a"),
        1,
    )
    assert 120 <= row["run_s"] < 180
    assert float(row["cost_usd"]) == 0.5
