"""Concurrency keys limit the running tasks of a key; each slot goes to the most urgent task."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.dags import depend, spawn, suspend
from tests.drivers.engine import Driver, Record
from tests.drivers.keys import admit, held, keyed, leftovers, standing, wait_for_answer
from tests.drivers.refusals import refused, unchanged
from treadle import Treadle
from treadle.models import Claim

pytestmark = pytest.mark.requirement("B6")


def test_as_many_tasks_of_a_key_as_it_has_slots_can_be_claimed(driver: Driver) -> None:
    first, second, third = keyed(driver, 3, slots=2)

    assert [claim.id for claim in driver.claim("a", 10)] == [first, second]
    assert driver.claim("b", 10) == []
    assert standing(driver, third) == [("pending", "waiting")]


def test_a_key_without_a_limit_has_one_slot(driver: Driver) -> None:
    first = driver.enqueue(concurrency_key="k")
    driver.enqueue(concurrency_key="k")

    assert [claim.id for claim in driver.claim("a", 10)] == [first]


def test_keys_do_not_hold_each_other_up_and_tasks_without_a_key_are_free(driver: Driver) -> None:
    ids = [driver.enqueue(concurrency_key=key) for key in "abc"] + [driver.enqueue()]

    assert {claim.id for claim in driver.claim("a", 10)} == set(ids)


ENDS: dict[str, Callable[[Driver, Claim], object]] = {
    "completed": lambda driver, claim: driver.complete(claim),
    "failed for good": lambda driver, claim: driver.fail(claim, action="fail"),
    "failed, to be retried": lambda driver, claim: driver.fail(claim, retry_after=60),
    "cancelled by its handler": lambda driver, claim: driver.fail(claim, action="cancel"),
    "cancelled": lambda driver, claim: driver.cancel(claim.id),
    "reaped": lambda driver, claim: driver.expire(claim),
    "suspended for a subtask": lambda driver, claim: suspend(
        driver, claim, spawn(driver, claim, [{"type": "code", "delay_s": 60}], "s")
    ),
    "suspended for an answer": wait_for_answer,
    "asleep": lambda driver, claim: driver.rows(
        "select treadle.suspend_task(%s, %s, p_run_at => treadle.clock() + '1 hour')",
        *(claim.id, claim.token),
    ),
    "waiting for one more after its release": lambda driver, claim: (
        driver.release(claim),
        depend(driver, claim.id, driver.enqueue(hold=True)),
    ),
}


@pytest.mark.parametrize("way", ENDS)
def test_a_slot_is_free_for_the_next_once_its_task_is(driver: Driver, way: str) -> None:
    keyed(driver, 2)
    claim = driver.claim_one()

    ENDS[way](driver, claim)

    assert admit(driver) == 1
    assert (held(driver), leftovers(driver)) == (1, (1, 0))
    assert claim.id not in [each.id for each in driver.claim("b", 10)]


def test_a_task_that_is_released_or_retried_at_once_keeps_its_slot(driver: Driver) -> None:
    first, second = keyed(driver, 2, retry={"strategy": "immediate"})

    driver.release(driver.claim_one())
    assert driver.fail(driver.claim_one()) == "ready"
    assert admit(driver) == 0

    assert standing(driver, first, second) == [("ready", "held"), ("pending", "waiting")]
    assert driver.claim_one().id == first


def test_a_retry_asks_for_a_slot_again(driver: Driver) -> None:
    first, second = keyed(driver, 2)
    driver.fail(driver.claim_one(), retry_after=60)
    other = driver.claim_one()
    assert other.id == second

    driver.fall_due(first)
    assert (standing(driver, first), driver.claim("b")) == ([("pending", "waiting")], [])
    driver.complete(other)

    assert driver.claim_one().id == first


def test_a_late_result_of_a_task_that_waits_for_a_slot_again_is_taken(driver: Driver) -> None:
    keyed(driver, 2)
    late = driver.claim_one()
    driver.expire(late)
    other = driver.claim_one()
    driver.fall_due(late.id)
    assert standing(driver, late.id) == [("pending", "waiting")]

    assert driver.complete(late) == "completed"
    driver.complete(other)

    assert (admit(driver), leftovers(driver)) == (0, (0, 0))


def test_a_slot_goes_to_the_best_effective_priority_over_lanes(driver: Driver) -> None:
    """A task that aged fast is ahead of one that began with the better priority."""
    keyed(driver)
    claim = driver.claim_one()
    slow = driver.enqueue(concurrency_key="k", priority=40, ageing_rate=0)
    fast = driver.enqueue(concurrency_key="k", priority=50, ageing_rate=1)
    other = driver.enqueue(concurrency_key="k", priority=45, ageing_rate=0.01)
    driver.set_clock(timedelta(minutes=12))

    order = []
    for _ in range(3):
        driver.complete(claim)
        claim = driver.claim_one()
        order.append(claim.id)

    assert order == [fast, slow, other]


def test_bad_keys_and_limits_are_refused(driver: Driver) -> None:
    bad: list[Record] = [
        {"concurrency_key": ""},
        {"concurrency_key": "x" * 201},
        {"concurrency_limit": 2},
        *({"concurrency_key": "k", "concurrency_limit": wrong} for wrong in (0, -1, 1.5, "two")),
    ]
    for options in bad:
        with unchanged(driver), refused("TR001"):
            driver.enqueue(**options)
    for key, wrong in [("k", -1), ("k", None), ("", 1), (None, 1), ("k", 1_000_001)]:
        with unchanged(driver), refused("TR001"):
            driver.rows("select treadle.set_concurrency_limit(%s, %s)", key, wrong)


async def test_python_and_nodes_of_a_dag_can_name_a_key(app: Treadle, driver: Driver) -> None:
    handle = await app.enqueue("code", {}, concurrency_key="k", concurrency_limit=3)
    nodes = [{"type": "code", "concurrency_key": "k", "concurrency_limit": 2}]
    driver.rows("select treadle.create_dag(%s)", Jsonb({"name": "d", "tasks": nodes}))

    admit(driver)

    assert driver.task(handle.id)["concurrency_key"] == "k"
    assert driver.rows("select key, max from treadle.concurrency_keys") == [("k", 2)]
