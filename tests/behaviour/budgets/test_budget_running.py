"""A task that exceeds its limit while it runs waits for a person, or fails."""

from decimal import Decimal

import pytest

from tests.drivers.budgets import budget, money, pay, question, reserve, review, set_budget
from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.steps import claimed, save_step, step_names
from tests.drivers.waits import answer, suspend
from treadle.models import Claim

pytestmark = [pytest.mark.requirement("F25"), pytest.mark.requirement("B5")]


def suspended(driver: Driver, claim: Claim) -> None:
    """Suspend a task, as a worker does when the verdict is ask."""
    told = reserve(driver, claim)
    assert told["verdict"] == "ask"
    assert suspend(driver, claim, told["wait_id"]) == "blocked"


def test_a_task_over_its_limit_asks_and_resumes_with_its_steps(
    driver: Driver,
) -> None:
    claim = claimed(driver, max_cost_usd=1)
    save_step(driver, claim, "draft", 1)
    assert pay(driver, claim, 1)["verdict"] == "ok"
    told = pay(driver, claim, "0.5")
    assert (told["verdict"], told["left_usd"]) == ("ask", Decimal("-0.5"))
    suspended(driver, claim)
    wait = question(driver, claim.id)
    assert wait["question"].startswith("The task has cost $1.50 and may cost $1.00.")

    answer(driver, wait["id"], 4)

    again = driver.claim_one("b")
    assert (again.id, again.attempt, again.max_cost_usd) == (claim.id, 1, Decimal(4))
    assert "draft" in step_names(driver, claim.id)
    assert pay(driver, again, 1)["verdict"] == "ok"


def test_no_ends_a_task_that_has_passed_its_limit(driver: Driver) -> None:
    claim = claimed(driver, max_cost_usd=1)
    pay(driver, claim, 2)
    suspended(driver, claim)

    answer(driver, question(driver, claim.id)["id"], False)

    task = driver.task(claim.id)
    assert (task["status"], task["failure_class"]) == ("dead_lettered", "budget_exceeded")
    [letter] = driver.records("select * from treadle.dead_letters")
    assert letter["total_cost_usd"] == 2


def test_a_limit_below_what_the_task_has_cost_is_refused(driver: Driver) -> None:
    claim = claimed(driver, max_cost_usd=1)
    pay(driver, claim, 2)
    suspended(driver, claim)
    wait_id = question(driver, claim.id)["id"]

    with unchanged(driver), refused("TR001", r"has already cost \$2.00, which is more than \$1.50"):
        answer(driver, wait_id, 1.5)


@pytest.mark.parametrize(
    ("of_task", "of_type", "of_budget", "verdict"),
    [
        (None, None, None, "ask"),
        (None, None, "fail", "fail"),
        (None, "ask", "fail", "ask"),
        ("fail", "ask", "ask", "fail"),
        ("ask", "fail", "fail", "ask"),
    ],
)
def test_the_policy_is_that_of_the_task_then_of_the_type_then_of_the_budget(
    driver: Driver, of_task: str | None, of_type: str | None, of_budget: str | None, verdict: str
) -> None:
    driver.rows("update treadle.task_types set on_budget = %s where name = 'code'", of_type)
    set_budget(driver, "all", None, 1, on_exhausted=of_budget)
    claim = claimed(driver, **({} if of_task is None else {"on_budget": of_task}))

    assert pay(driver, claim, 2)["verdict"] == verdict


def test_a_budget_that_is_passed_by_a_task_asks_and_a_raise_lets_it_continue(
    driver: Driver,
) -> None:
    budget_id = set_budget(driver, "type", "code", 1)
    claim = claimed(driver)
    assert pay(driver, claim, 3)["verdict"] == "ask"
    suspended(driver, claim)
    wait = question(driver, claim.id)
    assert wait["question"].startswith("$3.00 of $1.00 is spent of the budget of type code")

    set_budget(driver, "type", "code", 4)

    assert [each.id for each in driver.claim("b")] == [claim.id]
    assert driver.rows("select status from treadle.waits") == [("answered",)]
    assert money(driver, budget_id) == (3, 0)


def test_a_task_within_its_reservation_is_not_stopped_by_others(driver: Driver) -> None:
    set_budget(driver, "all", None, 10)
    priced = claimed(driver, max_cost_usd=8)
    free = claimed(driver, "b")

    assert pay(driver, free, 1)["verdict"] == "ok"
    assert pay(driver, free, 2)["verdict"] == "ask"
    assert pay(driver, priced, 7)["verdict"] == "ok"


def test_the_step_that_passed_the_limit_is_kept(driver: Driver) -> None:
    claim = claimed(driver, max_cost_usd=1)
    query = "select verdict from treadle.save_step(%s, %s, 'draft', '1', p_calls => %s::jsonb)"

    assert driver.value(query, claim.id, claim.token, '[{"usd": 2}]') == "ask"

    assert step_names(driver, claim.id) == ["draft"]


def test_a_reservation_that_exceeds_the_budget_asks(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 5)
    claim = claimed(driver)

    told = reserve(driver, claim, 6)

    assert (told["verdict"], told["left_usd"]) == ("ask", 5)
    assert "the task needs $6.00" in question(driver, claim.id)["question"]
    assert money(driver, budget_id) == (0, 0)
    suspend(driver, claim, told["wait_id"])
    answer(driver, told["wait_id"], 6)
    assert reserve(driver, driver.claim_one("a"), 6)["verdict"] == "ok"
    assert money(driver, budget_id) == (0, 6)


def test_released_money_answers_a_task_that_ran_out(driver: Driver) -> None:
    set_budget(driver, "all", None, 5)
    other = claimed(driver, max_cost_usd=4)
    claim = claimed(driver, "b")
    told = reserve(driver, claim, 2)
    suspend(driver, claim, told["wait_id"])

    review(driver)
    assert question(driver, claim.id)["id"] == told["wait_id"]
    driver.complete(other)
    review(driver)

    assert reserve(driver, driver.claim_one("b"), 2)["verdict"] == "ok"


def test_a_reservation_beyond_the_limit_of_the_task_asks(driver: Driver) -> None:
    claim = claimed(driver, max_cost_usd=2)
    pay(driver, claim, 1)

    told = reserve(driver, claim, "1.5")

    assert told["verdict"] == "ask"
    assert told["reason"] == "The task has cost $1.00 and may cost $2.00; it needs $1.50 more"


def test_looking_asks_nothing_and_reserves_nothing(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 5)
    claim = claimed(driver)

    assert reserve(driver, claim, 6, ask=False)["verdict"] == "ask"
    assert reserve(driver, claim, 5, ask=False)["verdict"] == "ok"

    assert money(driver, budget_id) == (0, 0)
    assert driver.value("select count(*) from treadle.waits") == 0


def test_asked_again_it_is_the_same_question(driver: Driver) -> None:
    claim = claimed(driver, max_cost_usd=1)
    pay(driver, claim, 2)

    first = reserve(driver, claim)["wait_id"]
    driver.expire(claim)
    again = driver.claim_one("b")

    assert reserve(driver, again)["wait_id"] == first


def test_no_to_a_task_that_runs_again_ends_its_attempt(driver: Driver) -> None:
    claim = claimed(driver, max_cost_usd=1)
    pay(driver, claim, 2)
    wait_id = reserve(driver, claim)["wait_id"]

    answer(driver, wait_id, False)

    task = driver.task(claim.id)
    assert (task["status"], task["failure_class"]) == ("dead_lettered", "budget_exceeded")
    assert driver.complete(claim) == "stale"


def test_tokens_have_a_limit_too(driver: Driver) -> None:
    claim = claimed(driver, max_tokens=100)
    query = "select verdict from treadle.record_spend(%s, %s, %s::jsonb)"
    call = '[{"input_tokens": 60, "output_tokens": 41}]'

    assert driver.value(query, claim.id, claim.token, call) == "ask"
    suspended(driver, claim)
    wait = question(driver, claim.id)
    assert wait["question"].startswith("The task has used 101 tokens and may use 100.")
    answer(driver, wait["id"], 500)

    assert driver.task(claim.id)["max_tokens"] == 500
    assert reserve(driver, driver.claim_one("a"))["verdict"] == "ok"


def test_a_task_claimed_over_an_empty_budget_asks_no_second_time(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 1)
    claim = claimed(driver)
    pay(driver, claim, 2)
    suspended(driver, claim)
    other = driver.enqueue()
    assert driver.claim("b") == []

    assert review(driver) == []
    answer(driver, question(driver, claim.id)["id"], 3)

    assert {each.id for each in driver.claim("b", limit=5)} == {claim.id, other}
    assert budget(driver, budget_id)["limit_usd"] == 3
