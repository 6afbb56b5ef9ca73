"""A claim reserves the maximum cost of its tasks, and no amount is reserved twice."""

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from tests.drivers.budgets import admit, budget, dag, money, pay, review, set_budget
from tests.drivers.engine import Driver
from tests.drivers.races import while_held
from tests.drivers.refusals import refused

pytestmark = [pytest.mark.requirement("F25"), pytest.mark.requirement("B5")]
SCOPES = ["agent", "dag", "project", "type", "all"]


def scoped(driver: Driver, scope: str, usd: object) -> tuple[int, dict[str, Any]]:
    """A budget of this scope, and the options of tasks that belong to it."""
    if scope == "project":
        key = driver.value("insert into treadle.projects (name) values ('acme') returning id::text")
        return set_budget(driver, "project", "acme", usd), {"project_id": key}
    key = {"agent": "a", "type": "code", "all": None}[scope]
    return set_budget(driver, scope, key, usd), {}


@pytest.mark.parametrize("scope", [each for each in SCOPES if each != "dag"])
def test_a_claim_reserves_and_the_rest_waits(driver: Driver, scope: str) -> None:
    budget_id, options = scoped(driver, scope, 1)
    tasks = [driver.enqueue(max_cost_usd=0.4, **options) for _ in range(3)]

    claims = driver.claim("a", limit=10)

    assert [claim.id for claim in claims] == tasks[:2]
    assert money(driver, budget_id) == (0, Decimal("0.8"))
    left = driver.task(tasks[2])
    expected = ("ready", None) if scope == "agent" else ("pending", budget_id)
    assert (left["status"], left["budget_id"]) == expected


def test_a_dag_never_passes_its_budget_and_other_dags_continue(driver: Driver) -> None:
    dag_id, budget_id = dag(driver, 5, 1, max_cost_usd=0.4)
    other = driver.enqueue(max_cost_usd=3, priority=90)

    claims = driver.claim("a", limit=10)

    assert len(claims) == 3
    assert claims[-1].id == other
    assert money(driver, budget_id) == (0, Decimal("0.8"))
    parked = "select count(*) from treadle.tasks where dag_id = %s and budget_id = %s"
    assert driver.value(parked, dag_id, budget_id) == 3


def test_a_parked_task_is_never_met_by_a_claim_again(driver: Driver) -> None:
    dag(driver, 3, 0.5, max_cost_usd=1)

    assert driver.claim("a", limit=10) == []
    states = driver.rows("select distinct status from treadle.tasks")
    assert states == [("pending",)]
    assert driver.claim("b", limit=10) == []


def test_many_unaffordable_tasks_do_not_delay_others(driver: Driver) -> None:
    dag(driver, 500, 0.5, max_cost_usd=1, priority=1)
    behind = driver.enqueue()

    assert [claim.id for claim in driver.claim("a", limit=2)] == [behind]
    assert driver.value("select count(*) from treadle.tasks where status = 'pending'") == 500


def test_a_cheaper_task_behind_a_dear_one_is_taken(driver: Driver) -> None:
    set_budget(driver, "all", None, 1)
    dear = driver.enqueue(max_cost_usd=2, priority=1)
    cheap = driver.enqueue(max_cost_usd=1, priority=2)

    assert [claim.id for claim in driver.claim("a", limit=1)] == [cheap]
    assert driver.state_of(dear) == "pending"


def test_a_task_counts_in_every_budget_it_belongs_to(driver: Driver) -> None:
    _, of_dag = dag(driver, 1, 5, max_cost_usd=2)
    ids = [
        set_budget(driver, "agent", "a", 5),
        set_budget(driver, "agent", "a", 5, "day"),
        set_budget(driver, "type", "code", 5),
        set_budget(driver, "all", None, 5, "month"),
        of_dag,
    ]

    claim = driver.claim_one("a")
    assert [money(driver, each) for each in ids] == [(0, 2)] * 5
    pay(driver, claim, "0.5")
    assert [money(driver, each) for each in ids] == [(Decimal("0.5"), Decimal("1.5"))] * 5
    driver.complete(claim)
    assert [money(driver, each) for each in ids] == [(Decimal("0.5"), 0)] * 5


def test_what_one_budget_refuses_takes_nothing_from_the_others(driver: Driver) -> None:
    wide = set_budget(driver, "all", None, 100)
    narrow = set_budget(driver, "type", "code", 1)
    driver.enqueue(max_cost_usd=2)

    assert driver.claim("a") == []
    assert money(driver, wide) == money(driver, narrow) == (0, 0)


def test_a_task_reserves_what_it_may_still_cost(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 10)
    driver.enqueue(max_cost_usd=4, retry={"strategy": "immediate"})
    first = driver.claim_one("a")
    pay(driver, first, 3)
    driver.fail(first)

    driver.claim_one("b")

    assert money(driver, budget_id) == (3, 1)


def test_an_agent_can_take_a_task_that_needs_only_the_rest_of_its_limit(driver: Driver) -> None:
    driver.enqueue(max_cost_usd=4, retry={"strategy": "immediate"})
    first = driver.claim_one("a")
    pay(driver, first, 3)
    driver.fail(first)
    driver.agent("poor", budget_usd=1)

    assert [claim.id for claim in driver.claim("poor")] == [first.id]


def test_a_task_without_a_limit_starts_while_something_is_left(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 1)
    driver.enqueue()
    later = driver.enqueue()

    claim = driver.claim_one("a")
    assert money(driver, budget_id) == (0, 0)
    pay(driver, claim, 1)

    assert driver.claim("a") == []
    assert driver.task(later)["budget_id"] == budget_id


def test_a_keyed_task_that_is_parked_gives_its_slot_to_another(driver: Driver) -> None:
    _, budget_id = dag(driver, 1, 0.5, max_cost_usd=1, concurrency_key="one")
    other = driver.enqueue(concurrency_key="one", priority=90)
    admit(driver)

    assert driver.claim("a", limit=5) == []
    assert [claim.id for claim in driver.claim("a", limit=5)] == [other]
    assert driver.value("select budget_id from treadle.tasks where dag_id is not null") == budget_id


def test_two_claims_never_promise_the_same_dollar(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 1)
    driver.enqueue_batch([{}] * 2, max_cost_usd=1)

    second = while_held(
        driver, lambda first: first.claim_one("a"), lambda session: session.claim("b")
    )

    assert second == []
    assert money(driver, budget_id) == (0, 1)


def test_a_claim_that_waits_for_a_budget_does_so_with_requests_open(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 1)
    dear = driver.enqueue(max_cost_usd=2)
    assert driver.claim("a") == []
    driver.rows("insert into treadle.admissions (kind, key) values ('budget', %s)", str(budget_id))
    cheap = driver.enqueue(max_cost_usd=1)

    claims = while_held(
        driver,
        lambda first: set_budget(first, "type", "code", 5) and set_budget(first, "all", None, 1),
        lambda session: session.claim("b"),
    )

    assert [claim.id for claim in claims] == [cheap]
    assert driver.state_of(dear) == "pending"


def test_a_raise_that_commits_while_a_claim_waits_is_seen_by_it(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 1)
    driver.enqueue(max_cost_usd=2)

    claims = while_held(
        driver,
        lambda first: set_budget(first, "all", None, 2),
        lambda session: session.claim("b"),
    )

    assert len(claims) == 1
    assert money(driver, budget_id) == (0, 2)


def test_a_claim_that_commits_while_a_cut_waits_is_seen_by_it(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 2)
    driver.enqueue(max_cost_usd=2)

    with refused("TR001", r"\$0.00 is spent and \$2.00 reserved"):
        while_held(
            driver,
            lambda first: first.claim_one("a"),
            lambda session: set_budget(session, "all", None, 1),
        )

    assert budget(driver, budget_id)["limit_usd"] == 2


def test_a_repeated_claim_reserves_once(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 5)
    driver.enqueue(max_cost_usd=1)
    token = uuid4()

    first = driver.claim("a", token=token)
    again = driver.claim("a", token=token)

    assert [claim.id for claim in again] == [claim.id for claim in first]
    assert money(driver, budget_id) == (0, 1)


def test_a_parked_task_that_gets_a_dependency_waits_for_both(driver: Driver) -> None:
    _, budget_id = dag(driver, 1, 0.5, max_cost_usd=1)
    assert driver.claim("a") == []
    task_id = driver.value("select id from treadle.tasks")
    other = driver.enqueue()
    driver.rows("select treadle.add_dependency(%s, %s)", task_id, other)

    driver.complete(driver.claim_one("a"))
    assert driver.task(task_id)["budget_id"] == budget_id

    review(driver)
    assert driver.state_of(task_id) == "blocked"
