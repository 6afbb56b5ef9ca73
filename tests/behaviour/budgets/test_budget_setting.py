"""Setting budgets: initial values, rejected values, and budgets of agents and DAGs."""

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.budgets import budget, kinds, money, pay, set_budget
from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged

pytestmark = pytest.mark.requirement("F25")


def spent(driver: Driver) -> None:
    """One dollar of type code by agent a, two of type test by agent b."""
    for agent, type, usd in (("a", "code", 1), ("b", "test", 2)):
        driver.enqueue(type=type)
        claim = driver.claim_one(agent)
        pay(driver, claim, usd)
        driver.complete(claim)


def test_a_new_budget_starts_with_what_was_spent(driver: Driver) -> None:
    spent(driver)

    assert money(driver, set_budget(driver, "agent", "a", 9))[0] == 1
    assert money(driver, set_budget(driver, "type", "test", 9))[0] == 2
    assert money(driver, set_budget(driver, "all", None, 9))[0] == 3
    assert money(driver, set_budget(driver, "all", "", 9, "day"))[0] == 3


def test_a_new_budget_of_a_period_counts_that_period_only(driver: Driver) -> None:
    spent(driver)
    driver.rows("update treadle.spend set at = at - interval '40 days' where type = 'code'")

    assert money(driver, set_budget(driver, "all", None, 9, "month"))[0] == 2


def test_a_project_is_found_by_its_id_and_by_its_name(driver: Driver) -> None:
    project = driver.value("insert into treadle.projects (name) values ('acme') returning id")
    driver.enqueue(project_id=str(project))
    pay(driver, driver.claim_one("a"), 3)

    by_name = set_budget(driver, "project", "acme", 9)

    assert set_budget(driver, "project", project, 10) == by_name
    row = budget(driver, by_name)
    assert (row["limit_usd"], row["spent_usd"]) == (10, 3)


def test_a_second_call_changes_the_limit_and_keeps_the_policy(driver: Driver) -> None:
    first = set_budget(driver, "agent", "a", 5, "day", on_exhausted="fail")

    assert set_budget(driver, "agent", "a", 7, "day") == first

    row = budget(driver, first)
    assert (row["limit_usd"], row["on_exhausted"]) == (7, "fail")
    assert set_budget(driver, "agent", "a", 7) != first
    assert kinds(driver) == ["budget.set"] * 3


def test_a_limit_below_what_is_spent_and_reserved_is_refused(driver: Driver) -> None:
    set_budget(driver, "all", None, 5)
    driver.enqueue(max_cost_usd=2)
    pay(driver, driver.claim_one("a"), "0.5")

    with unchanged(driver), refused("TR001", r"cannot be \$1.99: \$0.50 is spent and \$1.50 res"):
        set_budget(driver, "all", None, "1.99")
    set_budget(driver, "all", None, 2)


def test_a_new_limit_below_what_is_spent_is_refused(driver: Driver) -> None:
    spent(driver)

    with unchanged(driver), refused("TR001", r"\$3.00 is spent"):
        set_budget(driver, "all", None, 2)


BAD: dict[str, tuple[Any, ...]] = {
    "no scope": (None, "a", 1, None, "TR001"),
    "an unknown scope": ("team", "a", 1, None, "TR001"),
    "an unknown period": ("agent", "a", 1, "year", "TR001"),
    "an empty period": ("agent", "a", 1, "", "TR001"),
    "no limit": ("agent", "a", None, None, "TR001"),
    "less than nothing": ("agent", "a", "-0.01", None, "TR001"),
    "NaN": ("agent", "a", "NaN", None, "TR001"),
    "Infinity": ("agent", "a", "Infinity", None, "TR001"),
    "minus infinity": ("agent", "a", "-Infinity", None, "TR001"),
    "absurd": ("agent", "a", "1e20", None, "TR001"),
    "a key of all": ("all", "x", 1, None, "TR001"),
    "no agent": ("agent", None, 1, None, "TR204"),
    "an unknown agent": ("agent", "nobody", 1, None, "TR204"),
    "an unknown type": ("type", "nothing", 1, None, "TR203"),
    "an unknown DAG": ("dag", str(uuid4()), 1, None, "TR205"),
    "a DAG that is no id": ("dag", "nightly", 1, None, "TR205"),
    "an unknown project": ("project", "nobody", 1, None, "TR208"),
    "an unknown project id": ("project", str(uuid4()), 1, None, "TR208"),
}


@pytest.mark.parametrize("given", BAD.values(), ids=BAD.keys())
def test_a_budget_that_makes_no_sense_is_refused(driver: Driver, given: tuple[Any, ...]) -> None:
    *call, code = given

    with unchanged(driver), refused(code):
        set_budget(driver, *call)


def test_an_unknown_policy_is_refused(driver: Driver) -> None:
    with unchanged(driver), refused("TR001", "on_exhausted"):
        set_budget(driver, "all", None, 1, on_exhausted="panic")


def test_removing_a_missing_budget_is_rejected(driver: Driver) -> None:
    set_budget(driver, "agent", "a", 1)

    for call in ("'agent', 'a', 'day'", "'agent', 'b'", "'all'", "'project', 'x'"):
        with unchanged(driver), refused("TR210"):
            driver.rows(f"select treadle.remove_budget({call})")
    driver.rows("select treadle.remove_budget('agent', 'a')")
    assert driver.value("select count(*) from treadle.budgets") == 0


@pytest.mark.parametrize("usd", ["-1", "NaN", "Infinity"])
def test_money_that_makes_no_sense_is_refused_when_reserved(driver: Driver, usd: str) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")

    with unchanged(driver), refused("TR001"):
        driver.rows("select treadle.reserve_spend(%s, %s, %s)", claim.id, claim.token, usd)


def test_an_agent_that_starts_again_keeps_what_a_person_has_set(driver: Driver) -> None:
    driver.agent("coder", budget_usd=5)
    driver.agent("coder", budget_usd=6)
    [row] = driver.records("select * from treadle.agent_load where agent_id = 'coder'")
    assert row["budget_usd"] == 6

    set_budget(driver, "agent", "coder", 20)
    driver.agent("coder", budget_usd=6)

    [row] = driver.records("select * from treadle.agent_load where agent_id = 'coder'")
    assert row["budget_usd"] == 20


def test_an_agent_that_has_spent_its_budget_can_start_again(driver: Driver) -> None:
    driver.agent("coder", budget_usd=5)
    driver.enqueue(max_cost_usd=5)
    pay(driver, driver.claim_one("coder"), 7)

    driver.agent("coder", budget_usd=5)

    assert driver.value("select limit_usd from treadle.budgets") == 7
    driver.enqueue()
    assert driver.claim("coder") == []


def test_a_producer_may_give_its_dag_a_budget_and_no_other(driver: Driver) -> None:
    document = {"name": "mine", "budget_usd": 5, "tasks": [{"type": "code"}]}
    driver.rows("set role treadle_producer")
    driver.rows("select treadle.create_dag(%s)", Jsonb(document))

    with refused("42501"):
        driver.rows("select treadle.set_budget('all', null, 1)")

    driver.rows("reset role")
    assert driver.rows("select scope, limit_usd from treadle.budgets") == [("dag", Decimal(5))]


def test_the_views_show_what_is_left_and_what_each_day_cost(driver: Driver) -> None:
    set_budget(driver, "all", None, 5, "day")
    spent(driver)

    [row] = driver.records("select * from treadle.budget_status")
    assert (row["limit_usd"], row["spent_usd"], row["left_usd"]) == (5, 3, 2)
    assert (row["scope"], row["period"], row["parked_tasks"], row["open_wait"]) == (
        *("all", "day", 0, None),
    )
    assert row["period_end"] > row["period_start"]
    days = driver.rows("select agent, type, calls, usd from treadle.daily_spend order by agent")
    assert days == [("a", "code", 1, Decimal(1)), ("b", "test", 1, Decimal(2))]
