"""A budget per hour, day, week or month is reset at the start of each period, in UTC."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.drivers.budgets import budget, money, pay, question, reserve, review, set_budget
from tests.drivers.engine import Driver
from tests.drivers.steps import claimed
from tests.drivers.waits import suspend

pytestmark = pytest.mark.requirement("F25")

NOON = datetime(2031, 3, 12, 12, 30, tzinfo=UTC)  # a Wednesday


def at(driver: Driver, moment: datetime) -> None:
    """Let the clock of the database stand at this moment."""
    # In a session of its own: where a day is not 24 hours, another moment would come out.
    session = driver.another()
    session.rows("set timezone = 'UTC'")
    session.set_clock(moment - session.value("select clock_timestamp()"), stopped=True)


@pytest.mark.parametrize(
    ("period", "start", "following"),
    [
        ("hour", datetime(2031, 3, 12, 12, tzinfo=UTC), datetime(2031, 3, 12, 13, tzinfo=UTC)),
        ("day", datetime(2031, 3, 12, tzinfo=UTC), datetime(2031, 3, 13, tzinfo=UTC)),
        ("week", datetime(2031, 3, 10, tzinfo=UTC), datetime(2031, 3, 17, tzinfo=UTC)),
        ("month", datetime(2031, 3, 1, tzinfo=UTC), datetime(2031, 4, 1, tzinfo=UTC)),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_new_period_begins_with_nothing_spent(
    driver: Driver, period: str, start: datetime, following: datetime, zone: str
) -> None:
    driver.rows(f"set timezone = '{zone}'")
    at(driver, NOON)
    budget_id = set_budget(driver, "all", None, 1, period)
    assert budget(driver, budget_id)["period_start"] == start
    claim = claimed(driver, max_cost_usd=1)
    pay(driver, claim, 1)
    driver.complete(claim)
    waiting = driver.enqueue(max_cost_usd=1)
    assert driver.claim("a") == []
    assert driver.value("select treadle.next_due_at()") == following

    at(driver, following - timedelta(seconds=1))
    review(driver)
    assert driver.claim("a") == []
    at(driver, following + timedelta(seconds=1))
    review(driver)

    assert [each.id for each in driver.claim("a")] == [waiting]
    assert money(driver, budget_id) == (0, 1)
    assert budget(driver, budget_id)["period_start"] == following


def test_what_is_reserved_stays_reserved_in_the_new_period(driver: Driver) -> None:
    at(driver, NOON)
    budget_id = set_budget(driver, "all", None, 5, "day")
    claim = claimed(driver, max_cost_usd=4)
    pay(driver, claim, 1)

    at(driver, NOON + timedelta(days=1))
    driver.enqueue(max_cost_usd=3)
    assert driver.claim("b") == []
    assert money(driver, budget_id) == (0, 3)
    pay(driver, claim, 2)

    assert money(driver, budget_id) == (2, 1)


def test_a_claim_finds_the_new_period_by_itself(driver: Driver) -> None:
    at(driver, NOON)
    set_budget(driver, "agent", "a", 1, "hour")
    claim = claimed(driver, max_cost_usd=1)
    pay(driver, claim, 1)
    driver.complete(claim)
    driver.enqueue(max_cost_usd=1)
    assert driver.claim("a") == []

    at(driver, NOON + timedelta(hours=1))

    assert len(driver.claim("a")) == 1


def test_a_new_period_answers_the_questions_of_the_old_one(driver: Driver) -> None:
    at(driver, NOON)
    set_budget(driver, "all", None, 1, "day")
    claim = claimed(driver)
    pay(driver, claim, 2)
    suspend(driver, claim, reserve(driver, claim)["wait_id"])
    parked = driver.enqueue()
    assert driver.claim("b") == []
    assert question(driver, claim.id)["question"].startswith(
        "$2.00 of $1.00 is spent of the budget of all tasks for this day"
    )

    at(driver, NOON + timedelta(days=1))
    review(driver)

    assert {each.id for each in driver.claim("b", limit=5)} == {claim.id, parked}


def test_a_clock_that_goes_back_opens_no_old_period(driver: Driver) -> None:
    at(driver, NOON)
    budget_id = set_budget(driver, "all", None, 5, "day")
    claim = claimed(driver)
    pay(driver, claim, 1)

    at(driver, NOON - timedelta(days=1))
    pay(driver, claim, 1)

    assert money(driver, budget_id) == (2, 0)


def test_it_warns_again_in_a_new_period(driver: Driver) -> None:
    at(driver, NOON)
    set_budget(driver, "all", None, 10, "day")
    claim = claimed(driver)
    pay(driver, claim, 8)
    at(driver, NOON + timedelta(days=1))
    pay(driver, claim, 8)

    query = "select count(*) from treadle.events where kind = 'budget.warned'"
    assert driver.value(query) == 2


def test_a_budget_without_a_period_is_never_reset(driver: Driver) -> None:
    at(driver, NOON)
    budget_id = set_budget(driver, "all", None, 1)
    claim = claimed(driver)
    pay(driver, claim, 1)

    at(driver, NOON + timedelta(days=400))
    driver.enqueue()

    assert driver.claim("b") == []
    assert money(driver, budget_id) == (1, 0)
    assert driver.value("select treadle.next_due_at()") is None
