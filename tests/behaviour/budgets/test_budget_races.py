"""Sixteen claimers never exceed tight budgets, and no task is left behind."""

import random
from collections.abc import Callable
from decimal import Decimal

import psycopg
import pytest

from tests.drivers.budgets import admit, dag, pay, review, set_budget, watched
from tests.drivers.engine import Driver, Record
from tests.drivers.races import together
from treadle.models import Claim

pytestmark = [pytest.mark.requirement("F25"), pytest.mark.requirement("B5")]

CLAIMERS = 16
LONGEST_S = 90
# What fails is tried again, however often.
AGAIN: Record = {"max_attempts": 1000, "retry": {"poison": False}}


def unfinished(session: Driver) -> bool:
    """Whether there is work left; with an error when that takes too long to be true."""
    query = """
        select count(*) > 0, bool_or(clock_timestamp() > created_at + make_interval(secs => %s))
        from treadle.tasks where status <> 'completed'
    """
    [(left, late)] = session.rows(query, LONGEST_S)
    if late:
        stuck = "select status, budget_id, attempt from treadle.tasks where status <> 'completed'"
        pytest.fail(f"the work is not getting done: {session.rows(stuck)}")
    return bool(left)


def finish(session: Driver, claim: Claim, chance: random.Random) -> None:
    """Spend no more than was reserved, in some calls, and end in one of the ways there are."""
    left = (claim.max_cost_usd or Decimal(0)) - (claim.cost_usd or Decimal(0))
    for _ in range(chance.randint(0, 2)):
        usd = (left * chance.randint(0, 2) / 4).quantize(Decimal("0.000001"))
        told = pay(session, claim, usd)
        assert told["verdict"] == "ok", told
        left -= usd
    end = chance.choices(["complete", "release", "fail", "suspend"], [7, 1, 1, 1])[0]
    if end == "complete":
        session.complete(claim)
    elif end == "release":
        session.release(claim)
    elif end == "fail":
        session.fail(claim, action="retry", retry_after=0)
    else:
        session.rows("select treadle.suspend_task(%s, %s)", claim.id, claim.token)


def drain(agent: Callable[[int], str], *, seed: int = 1) -> Callable[[Driver, int], int]:
    """Claim and finish until nothing is left; what one of the sixteen does."""

    def run(session: Driver, number: int) -> int:
        chance = random.Random(seed * 100 + number)
        done = 0
        while unfinished(session):
            for claim in session.claim(agent(number), chance.randint(1, 4)):
                finish(session, claim, chance)
                done += 1
        return done

    return run


def settled(driver: Driver) -> None:
    """After a drain nothing is reserved, and the ledger agrees with every budget."""
    assert driver.value("select coalesce(sum(reserved_usd), 0) from treadle.budgets") == 0
    assert driver.value("select count(*) from treadle.reservations") == 0
    assert (
        driver.rows(
            """
        select scope, spent_usd, treadle.ledger_total(scope, scope_key, period_start)
        from treadle.budgets
        where spent_usd <> treadle.ledger_total(scope, scope_key, period_start)
        """
        )
        == []
    )


def test_sixteen_claimers_never_pass_a_tight_budget_and_finish_the_work(driver: Driver) -> None:
    """So tight that most wait for others to give money back, and for a person to give more."""
    set_budget(driver, "all", None, "3.5", "month")
    for agent in "ab":
        set_budget(driver, "agent", agent, 3)
    for _ in range(3):
        dag(driver, 25, 2, max_cost_usd=1, **AGAIN)
    driver.enqueue_batch([{}] * 25, max_cost_usd="0.7", **AGAIN)

    def work(session: Driver, number: int) -> int:
        if number < CLAIMERS:
            return drain(lambda n: "ab"[n % 2])(session, number)
        raised = 0
        while unfinished(session):
            rows = session.rows("select scope, scope_key, period, spent_usd from treadle.budgets")
            for scope, key, period, spent in rows:
                usd = spent + Decimal("3.5")
                set_budget(session, scope, key, usd, period)
            review(session)
            admit(session)
            raised += 1
        return raised

    with watched(driver) as wrong:
        done = together(driver, CLAIMERS + 1, work)

    assert wrong == []
    assert done[-1] > 0
    assert sum(done[:-1]) >= 100
    settled(driver)
    assert driver.value("select count(*) from treadle.waits where status = 'open'") == 0


@pytest.mark.parametrize("scope", ["agent", "dag", "type"])
def test_a_task_over_budget_is_not_claimed_by_any_of_sixteen(driver: Driver, scope: str) -> None:
    """Only as many tasks run as the budget pays; the others start when those end."""
    if scope == "dag":
        dag(driver, 60, 60, max_cost_usd=1)
    else:
        driver.enqueue_batch([{}] * 60, max_cost_usd=1)
        set_budget(driver, scope, {"agent": "a", "type": "code"}[scope], 60)
    driver.rows("update treadle.budgets set limit_usd = spent_usd + 4")

    def work(session: Driver, _: int) -> int:
        most = 0
        while unfinished(session):
            claims = session.claim("a", 3)
            most = max(most, len(claims))
            for claim in claims:
                session.complete(claim)
            review(session)
        return most

    with watched(driver) as wrong:
        most = together(driver, CLAIMERS, work)

    assert wrong == []
    assert max(most) == 3
    settled(driver)


def test_raising_and_cutting_while_sixteen_claim_keeps_every_state_right(driver: Driver) -> None:
    dag_id, budget_id = dag(driver, 80, 2, max_cost_usd=1, **AGAIN)

    def work(session: Driver, number: int) -> int:
        if number < CLAIMERS:
            return drain(lambda n: "ab"[n % 2], seed=2)(session, number)
        chance, done = random.Random(7), 0
        while unfinished(session):
            query = "select spent_usd + reserved_usd from treadle.budgets where id = %s"
            try:
                usd = session.value(query, budget_id) + chance.randint(0, 3)
                set_budget(session, "dag", dag_id, usd)
                done += 1
            except psycopg.Error as error:
                # A claim came in between: what it reserved may not be cut off.
                if error.sqlstate != "TR001":
                    raise
            review(session)
        return done

    with watched(driver) as wrong:
        done = together(driver, CLAIMERS + 1, work)

    assert wrong == []
    assert done[-1] > 5
    settled(driver)
