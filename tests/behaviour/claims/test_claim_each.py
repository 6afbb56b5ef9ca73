"""Several agents claim in one call, and each is served as if it had called alone."""

from collections.abc import Callable
from uuid import UUID

import pytest

from tests.drivers.budgets import set_budget
from tests.drivers.engine import Driver
from tests.drivers.gates import define_gate, opened
from tests.drivers.keys import keyed
from tests.drivers.refusals import refused, unchanged
from treadle.models import Claim

pytestmark = pytest.mark.requirement("F8")
EACH = "select agent, id, claim_token from treadle.claim_tasks_for_agents(%s, %s)"


def claim_each(driver: Driver, **limits: int) -> dict[str, list[UUID]]:
    """What each agent got; agents that were not asked are left out."""
    found: dict[str, list[UUID]] = {}
    for agent, task, _ in driver.rows(EACH, list(limits), list(limits.values())):
        found.setdefault(agent, []).extend([task] if task else [])
    return found


def test_each_agent_gets_as_many_as_it_asked_for_and_has_a_token_of_its_own(
    driver: Driver,
) -> None:
    first, second, third = (driver.enqueue() for _ in range(3))

    rows = driver.rows(EACH, ["b", "a"], [2, 2])

    assert [(agent, task) for agent, task, _ in rows] == [
        *(("b", first), ("b", second), ("a", third)),
    ]
    tokens = {agent: {token for who, _, token in rows if who == agent} for agent in "ab"}
    assert len(tokens["a"]) == len(tokens["b"]) == 1
    assert tokens["a"] != tokens["b"]
    for agent, task, token in rows:
        assert driver.task(task)["agent_id"] == agent
        [(told,)] = driver.rows("select claim_token from treadle.tasks where id = %s", task)
        assert told == token


def test_an_agent_without_a_task_gets_an_empty_list(driver: Driver) -> None:
    task = driver.enqueue(assigned_agent="b")

    assert claim_each(driver, a=1, b=1) == {"a": [], "b": [task]}


def test_the_limit_of_an_agent_holds(driver: Driver) -> None:
    driver.rows("select treadle.register_agent('one', p_max_concurrent_tasks => 1)")
    for _ in range(4):
        driver.enqueue()

    found = claim_each(driver, one=3, a=1)

    assert {agent: len(tasks) for agent, tasks in found.items()} == {"one": 1, "a": 1}
    assert claim_each(driver, one=3, a=1)["one"] == []


def test_an_agent_that_somebody_holds_is_not_waited_for(driver: Driver) -> None:
    driver.rows("select treadle.register_agent('one', p_max_concurrent_tasks => 1)")
    tasks = [driver.enqueue() for _ in range(2)]
    other = driver.another()
    other.rows("begin")
    other.rows("select from treadle.agents where id = 'one' for no key update")

    driver.rows("set lock_timeout = '5s'")
    assert claim_each(driver, one=1, a=1) == {"a": tasks[:1]}

    other.rows("rollback")
    assert claim_each(driver, one=1, b=1) == {"one": tasks[1:], "b": []}


def limited(driver: Driver) -> None:
    define_gate(driver, "llm", limit=5, per_s=60)


def budgeted(driver: Driver) -> None:
    set_budget(driver, "all", None, 5)


def waiting_for_a_slot(driver: Driver) -> None:
    """A slot is free, and somebody is to be let in."""
    first, _ = keyed(driver, 2)
    [claim] = driver.claim("b")
    assert claim.id == first
    driver.complete(claim)
    assert driver.value("select exists (select from treadle.admissions)")


@pytest.mark.parametrize("about", [limited, budgeted, opened, waiting_for_a_slot])
def test_an_agent_after_a_claim_that_may_hold_other_locks_is_skipped(
    driver: Driver, about: Callable[[Driver], object]
) -> None:
    about(driver)
    driver.enqueue(type="test", priority=0)
    driver.enqueue(type="test", priority=0)

    found = claim_each(driver, a=1, b=1)

    assert {agent: len(tasks) for agent, tasks in found.items()} == {"a": 1}


def test_an_unknown_agent_is_left_out(driver: Driver) -> None:
    task = driver.enqueue()

    assert claim_each(driver, nobody=1, a=1) == {"a": [task]}


def test_an_unknown_queue_is_refused(driver: Driver) -> None:
    with unchanged(driver), refused("TR202", "nowhere"):
        driver.rows("select * from treadle.claim_tasks_for_agents('{a,b}', '{1,1}', '{nowhere}')")


@pytest.mark.parametrize("limits", [[1], [1, 2, 3], None])
def test_a_limit_for_each_agent_is_wanted(driver: Driver, limits: list[int] | None) -> None:
    driver.enqueue()
    with unchanged(driver), refused("TR001", "one entry for each agent"):
        driver.rows(EACH, ["a", "b"], limits)


def test_a_claim_of_this_kind_is_a_claim(driver: Driver) -> None:
    driver.enqueue()
    [row] = driver.records("select * from treadle.claim_tasks_for_agents('{a}', '{1}')")

    assert row.pop("agent") == "a"
    claim = Claim(token=row.pop("claim_token"), **row)

    assert driver.complete(claim) == "completed"
