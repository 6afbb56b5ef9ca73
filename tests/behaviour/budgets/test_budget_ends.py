"""Reserved money that was not spent is released, however a claim ends."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest

from tests.drivers.budgets import admit, budget, kinds, money, pay, reserve, review, set_budget
from tests.drivers.engine import Driver
from tests.drivers.races import together, while_held
from tests.drivers.steps import save_step
from treadle.models import Claim

pytestmark = [pytest.mark.requirement("F25"), pytest.mark.requirement("B5")]


def complete(driver: Driver, claim: Claim) -> None:
    assert driver.complete(claim) == "completed"


def fail(driver: Driver, claim: Claim) -> None:
    assert driver.fail(claim) == "retrying"


def give_up(driver: Driver, claim: Claim) -> None:
    assert driver.fail(claim, action="fail") == "dead_lettered"


def release(driver: Driver, claim: Claim) -> None:
    assert driver.release(claim) == "released"


def cancel(driver: Driver, claim: Claim) -> None:
    assert driver.cancel(claim.id) == ["cancelled"]


def suspend(driver: Driver, claim: Claim) -> None:
    query = "select treadle.suspend_task(%s, %s, p_run_at => treadle.clock() + interval '1 day')"
    assert driver.value(query, claim.id, claim.token) == "pending"


def reap(driver: Driver, claim: Claim) -> None:
    assert driver.expire(claim).status == "retrying"


def never_started(driver: Driver, claim: Claim) -> None:
    driver.age_claim(claim.id, timedelta(hours=1))
    assert [each.id for each in driver.reap()] == [claim.id]


ENDS = [complete, fail, give_up, release, cancel, suspend, reap, never_started]


def ending_gives_back(driver: Driver, end: Callable[[Driver, Claim], None]) -> None:
    budget_id = set_budget(driver, "all", None, 1)
    driver.enqueue(max_cost_usd=1)
    waiting = driver.enqueue(max_cost_usd="0.75", priority=90)
    claim = driver.claim_one("a")
    assert driver.claim("b") == []
    assert driver.state_of(waiting) == "pending"
    pay(driver, claim, "0.25")
    assert money(driver, budget_id) == (Decimal("0.25"), Decimal("0.75"))

    end(driver, claim)

    assert money(driver, budget_id) == (Decimal("0.25"), 0)
    assert driver.value("select count(*) from treadle.reservations") == 0
    driver.cancel(claim.id)
    assert [each.id for each in driver.claim("b")] == [waiting]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_the_end_of_a_claim_releases_its_reservation_and_waiting_tasks_continue(
    driver: Driver, end: Callable[[Driver, Claim], None]
) -> None:
    ending_gives_back(driver, end)


def test_a_late_result_after_the_reaper_releases_nothing_twice(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 1)
    driver.enqueue(max_cost_usd=1)
    claim = driver.claim_one("a")
    driver.expire(claim)

    assert driver.complete(claim) == "completed"

    assert money(driver, budget_id) == (0, 0)


def test_spending_moves_money_from_reserved_to_spent(driver: Driver) -> None:
    budget_id = set_budget(driver, "type", "code", 5)
    driver.enqueue(max_cost_usd=2)
    claim = driver.claim_one("a")

    told = pay(driver, claim, "0.5")

    assert (told["cost_usd"], told["max_cost_usd"]) == (Decimal("0.5"), 2)
    assert (told["left_usd"], told["verdict"]) == (Decimal("1.5"), "ok")
    assert money(driver, budget_id) == (Decimal("0.5"), Decimal("1.5"))


def test_a_call_is_settled_once_by_its_id(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 5)
    driver.enqueue(max_cost_usd=2, retry={"strategy": "immediate"})
    claim = driver.claim_one("a")

    pay(driver, claim, 1, "one")
    pay(driver, claim, 1, "one")
    save_step(driver, claim, calls=[{"usd": 1, "call_id": "one"}])
    assert money(driver, budget_id) == (1, 1)

    driver.fail(claim)
    again = driver.claim_one("b")
    pay(driver, again, 1, "one")
    assert money(driver, budget_id) == (1, 1)


def test_a_step_settles_with_its_result(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 5)
    driver.enqueue(max_cost_usd=2)
    claim = driver.claim_one("a")

    save_step(driver, claim, calls=[{"usd": "1.25"}])

    assert money(driver, budget_id) == (Decimal("1.25"), Decimal("0.75"))


def test_money_that_was_paid_is_recorded_whatever_it_passes(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 1)
    driver.enqueue(max_cost_usd=1)
    claim = driver.claim_one("a")

    told = pay(driver, claim, 3)

    assert (told["cost_usd"], told["verdict"]) == (3, "ask")
    assert money(driver, budget_id) == (3, 0)
    [shown] = driver.records("select left_usd, overrun_usd from treadle.budget_status")
    assert (shown["left_usd"], shown["overrun_usd"]) == (0, 2)
    driver.enqueue()
    assert driver.claim("b") == []


def test_calls_of_many_sessions_are_all_settled(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 100)
    driver.enqueue(max_cost_usd=15)
    claim = driver.claim_one("a")

    together(driver, 6, lambda session, n: pay(session, claim, n))

    assert money(driver, budget_id) == (15, 0)


def test_a_budget_that_was_made_while_a_call_was_paid_for_counts_it(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")

    budget_id = while_held(
        driver,
        lambda first: pay(first, claim, 2),
        lambda session: set_budget(session, "all", None, 5),
    )

    assert money(driver, budget_id) == (2, 0)


def test_the_events_at_80_and_100_percent_are_emitted_once(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 10)
    driver.enqueue(max_cost_usd=10)
    claim = driver.claim_one("a")

    for usd in (7, 1, 1):
        pay(driver, claim, usd)
    assert kinds(driver) == ["budget.set", "budget.warned"]
    pay(driver, claim, 1)
    pay(driver, claim, 0)

    assert kinds(driver) == ["budget.set", "budget.warned", "budget.exhausted"]
    assert budget(driver, budget_id)["warned_at"] is not None


def test_a_reservation_can_be_topped_up_before_an_expensive_call(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 5)
    driver.enqueue()
    claim = driver.claim_one("a")

    assert reserve(driver, claim, 3)["verdict"] == "ok"
    assert money(driver, budget_id) == (0, 3)
    reserve(driver, claim, 2)
    assert money(driver, budget_id) == (0, 3)
    pay(driver, claim, 1)
    assert reserve(driver, claim, 3)["left_usd"] == 4
    assert money(driver, budget_id) == (1, 3)

    driver.complete(claim)
    assert money(driver, budget_id) == (1, 0)
    assert (admit(driver), review(driver)) == (0, [])
