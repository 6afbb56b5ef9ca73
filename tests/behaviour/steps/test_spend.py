"""Spend is counted once, whatever is repeated, and survives a crash."""

from decimal import Decimal
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.races import together, while_held
from tests.drivers.refusals import refused, unchanged
from tests.drivers.steps import claimed, cost, record_spend, save_step, spend, steps, superseded

CALL = {
    "call_id": "msg_1",
    "usd": 0.012,
    "model": "large",
    "input_tokens": 900,
    "output_tokens": 100,
}


def test_a_call_is_added_to_the_task_and_entered_in_the_ledger(driver: Driver) -> None:
    claim = claimed(driver)

    assert record_spend(driver, claim, [CALL]) == Decimal("0.012")

    assert cost(driver, claim.id) == (Decimal("0.012"), 900, 100)
    [entry] = spend(driver, claim.id)
    assert (entry["call_id"], entry["model"], entry["usd"]) == ("msg_1", "large", Decimal("0.012"))
    assert (entry["agent_id"], entry["type"], entry["attempt"]) == ("a", "code", 1)
    assert entry["step"] is None


def test_a_repeated_call_is_free(driver: Driver) -> None:
    claim = claimed(driver)
    record_spend(driver, claim, [CALL])

    assert record_spend(driver, claim, [CALL, CALL, {**CALL, "call_id": "msg_2"}]) == Decimal(
        "0.024"
    )
    assert cost(driver, claim.id) == (Decimal("0.024"), 1800, 200)
    assert len(spend(driver, claim.id)) == 2


def test_a_call_counts_once_over_attempts(driver: Driver) -> None:
    claim = claimed(driver)
    record_spend(driver, claim, [CALL])
    driver.fail(claim)
    again = driver.claim_one("b")

    assert record_spend(driver, again, [CALL]) == Decimal("0.012")


def test_calls_without_an_id_are_counted_each_time(driver: Driver) -> None:
    claim = claimed(driver)

    record_spend(driver, claim, [{"usd": 1}, {"usd": 1}])

    assert record_spend(driver, claim, [{"usd": 1}]) == 3


def test_the_same_call_from_two_sessions_counts_once(driver: Driver) -> None:
    claim = claimed(driver)

    total = while_held(
        driver,
        lambda first: record_spend(first, claim, [CALL]),
        lambda second: record_spend(second, claim, [CALL]),
    )

    assert total == Decimal("0.012")


def test_calls_of_many_sessions_are_all_counted(driver: Driver) -> None:
    claim = claimed(driver)

    together(driver, 6, lambda session, n: record_spend(session, claim, [{"usd": n}]))

    assert cost(driver, claim.id)[0] == 15


@pytest.mark.requirement("B1")
def test_a_step_settles_its_calls_and_records_its_cost(driver: Driver) -> None:
    claim = claimed(driver)

    save_step(driver, claim, "draft", 1, calls=[CALL, {**CALL, "call_id": "msg_2"}])

    assert cost(driver, claim.id) == (Decimal("0.024"), 1800, 200)
    assert [entry["step"] for entry in spend(driver, claim.id)] == ["draft", "draft"]
    assert [step["cost_usd"] for step in steps(driver, claim.id)] == [Decimal("0.024")]


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("call", [CALL, {"usd": 0.5}], ids=["with an id", "without"])
def test_a_step_repeated_after_a_lost_answer_costs_nothing_more(
    driver: Driver, call: dict[str, Any]
) -> None:
    claim = claimed(driver)
    save_step(driver, claim, output=1, calls=[call, {**call, "call_id": "other"}])
    before = cost(driver, claim.id)

    kept = save_step(driver, claim, output=1, calls=[call, {**call, "call_id": "other"}])

    assert kept == (1, False)
    assert cost(driver, claim.id) == before
    assert len(spend(driver, claim.id)) == 2


@pytest.mark.requirement("B1")
def test_a_call_recorded_before_its_step_is_not_counted_again(driver: Driver) -> None:
    claim = claimed(driver)
    record_spend(driver, claim, [CALL])

    save_step(driver, claim, calls=[CALL])

    assert cost(driver, claim.id)[0] == Decimal("0.012")


def test_money_paid_for_a_result_that_came_second_is_counted(driver: Driver) -> None:
    claim = claimed(driver)
    save_step(driver, claim, output=1, calls=[{"call_id": "one", "usd": 1}])

    assert save_step(driver, claim, output=2, calls=[{"call_id": "two", "usd": 2}]) == (1, False)

    assert cost(driver, claim.id)[0] == 3


def test_a_superseded_claim_spends_nothing(driver: Driver) -> None:
    first, _ = superseded(driver)

    with unchanged(driver), refused("TR101"):
        record_spend(driver, first, [CALL])


def test_spending_renews_the_lease(driver: Driver) -> None:
    claim = claimed(driver)
    before = driver.task(claim.id)["lease_until"]

    record_spend(driver, claim, [])

    assert driver.task(claim.id)["lease_until"] > before


def test_what_a_failed_attempt_paid_is_kept_with_it(driver: Driver) -> None:
    claim = claimed(driver)
    record_spend(driver, claim, [{"usd": 2}])
    driver.expire(claim)

    [attempt] = driver.attempts(claim.id)
    assert attempt["cost_usd"] == 2
    assert cost(driver, claim.id)[0] == 2


def test_exact_decimals_may_come_as_text_and_tokens_without_dollars(driver: Driver) -> None:
    claim = claimed(driver)

    record_spend(driver, claim, [{"usd": "0.000001"}, {"input_tokens": 5}, {"usd": "1e-3"}])

    assert cost(driver, claim.id) == (Decimal("0.001001"), 5, 0)


BAD: dict[str, Any] = {
    "not a list": {"usd": 1},
    "null": None,
    "not an object": [1],
    "a list in the list": [[{"usd": 1}]],
    "nothing paid": [{}],
    "only a model": [{"model": "large"}],
    "null dollars": [{"usd": None}],
    "NaN": [{"usd": "NaN"}],
    "Infinity": [{"usd": "Infinity"}],
    "minus infinity": [{"usd": "-Infinity"}],
    "negative dollars": [{"usd": -0.01}],
    "negative dollars as text": [{"usd": "-1"}],
    "a word": [{"usd": "much"}],
    "a truth": [{"usd": True}],
    "a million and more": [{"usd": 1000000.01}],
    "absurd dollars": [{"usd": 10**300}],
    "absurd dollars as text": [{"usd": "9e99"}],
    "negative tokens": [{"usd": 1, "input_tokens": -1}],
    "half a token": [{"usd": 1, "output_tokens": 0.5}],
    "absurd tokens": [{"usd": 1, "input_tokens": 10**12}],
    "very absurd tokens": [{"usd": 1, "output_tokens": 10**30}],
    "tokens as text": [{"usd": 1, "input_tokens": "5"}],
    "an empty call id": [{"usd": 1, "call_id": ""}],
    "a long call id": [{"usd": 1, "call_id": "x" * 201}],
    "a number as call id": [{"usd": 1, "call_id": 7}],
    "a model that is no text": [{"usd": 1, "model": ["large"]}],
    "an unknown key": [{"usd": 1, "dollars": 1}],
    "a bad one after a good one": [{"usd": 1}, {"usd": -1}],
}


@pytest.mark.parametrize("calls", BAD.values(), ids=BAD.keys())
def test_calls_that_cannot_be_counted_are_refused(driver: Driver, calls: object) -> None:
    claim = claimed(driver)

    with unchanged(driver), refused("TR001"):
        record_spend(driver, claim, calls)
    with unchanged(driver), refused("TR001"):
        driver.rows(
            "select treadle.save_step(%s, %s, 'draft', '1', p_calls => %s)",
            *(claim.id, claim.token, Jsonb(calls)),
        )


def test_a_task_that_would_cost_more_than_can_be_written_down_is_refused(driver: Driver) -> None:
    claim = claimed(driver)
    record_spend(driver, claim, [{"usd": 1_000_000}] * 99)

    with unchanged(driver), refused("TR001", "would exceed the maximum"):
        record_spend(driver, claim, [{"usd": 1_000_000}])


@pytest.mark.parametrize("end", ["failed", "suspended", "cancelled"])
def test_an_attempt_that_ends_has_in_the_history_what_it_spent(driver: Driver, end: str) -> None:
    driver.enqueue(retry={"strategy": "immediate"})
    first = driver.claim_one("a")
    record_spend(driver, first, [{"call_id": "1", "usd": 0.25}])
    driver.fail(first)
    second = driver.claim_one("a")
    record_spend(driver, second, [{"call_id": "2", "usd": 0.5}])

    if end == "failed":
        driver.fail(second)
    elif end == "suspended":
        driver.rows("select treadle.suspend_task(%s, %s)", second.id, second.token)
    else:
        driver.cancel(second.id)

    costs = [(row["outcome"], float(row["cost_usd"])) for row in driver.attempts(second.id)]
    assert costs == [("failed", 0.25), (end, 0.5)]
