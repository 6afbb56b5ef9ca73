"""An agent with a budget claims only tasks that it can afford."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest

from tests.drivers.engine import Driver

pytestmark = pytest.mark.requirement("F8")


def test_a_task_that_costs_more_than_the_budget_is_left_to_others(driver: Driver) -> None:
    dear = driver.enqueue(max_cost_usd=5, priority=0)
    cheap = driver.enqueue(max_cost_usd=0.4)
    driver.agent("poor", budget_usd=1)

    claimed = driver.claim("poor", limit=10)

    assert [claim.id for claim in claimed] == [cheap]
    assert [claim.id for claim in driver.claim("a", limit=10)] == [dear]


def test_claims_in_hand_count_against_the_budget_until_they_end(driver: Driver) -> None:
    driver.agent("poor", budget_usd=1)
    driver.enqueue_batch([{}] * 3, max_cost_usd=0.4)

    first = driver.claim("poor", limit=10)
    assert len(first) == 2
    assert driver.claim("poor", limit=10) == []

    driver.complete(first[0])
    assert len(driver.claim("poor", limit=10)) == 1


def test_over_several_lanes_the_best_affordable_tasks_are_taken(driver: Driver) -> None:
    driver.agent("poor", budget_usd=1)
    driver.enqueue(type="code", priority=1, max_cost_usd=2)
    best = driver.enqueue(type="test", priority=2, max_cost_usd=0.6)
    driver.enqueue(type="code", priority=3, max_cost_usd=0.6)
    free = driver.enqueue(type="test", priority=4)

    assert [claim.id for claim in driver.claim("poor", limit=2)] == [best, free]


def test_sixteen_sessions_of_one_agent_never_pass_its_budget(driver: Driver) -> None:
    driver.agent("poor", budget_usd=Decimal("2.0"))
    driver.enqueue_batch([{}] * 40, max_cost_usd=0.3)
    sessions = [driver.another() for _ in range(16)]

    with ThreadPoolExecutor(16) as threads:
        claimed = list(threads.map(lambda session: session.claim("poor", limit=3), sessions))

    assert sum(len(each) for each in claimed) == 6
    held = driver.value("select sum(max_cost_usd) from treadle.tasks where agent_id = 'poor'")
    assert held == Decimal("1.8")


def test_a_task_without_a_price_reserves_nothing_and_needs_something_left(driver: Driver) -> None:
    driver.agent("broke", budget_usd=0)
    driver.agent("poor", budget_usd=Decimal("0.01"))
    free = driver.enqueue()
    driver.enqueue(max_cost_usd=0.02)

    assert driver.claim("broke", limit=5) == []
    assert [claim.id for claim in driver.claim("poor", limit=5)] == [free]
    assert driver.value("select sum(reserved_usd) from treadle.budgets") == 0
