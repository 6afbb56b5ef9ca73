"""A task is enqueued after others while those end: every dependency is counted once."""

from collections.abc import Callable

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.dag_faults import faults
from tests.drivers.dag_races import standoff
from tests.drivers.dags import after, create, depend, node
from tests.drivers.engine import Driver
from tests.drivers.races import while_held
from tests.drivers.refusals import refused

pytestmark = pytest.mark.requirement("F28")

Call = Callable[[Driver], object]
# What ends the dependency, the state of the new task if that ends first, and if it comes second.
ENDS: dict[str, tuple[str, str]] = {
    "complete": ("ready", "ready"),
    "cancel": ("TR102", "cancelled"),
    "give up": ("pending", "pending"),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("first", ["end", "enqueue"])
def test_a_dependency_that_ends_at_the_same_moment_is_counted_once(
    driver: Driver, end: str, first: str
) -> None:
    needed = driver.enqueue()
    claim = driver.claim_one()
    calls: dict[str, Call] = {
        "complete": lambda session: session.complete(claim),
        "cancel": lambda session: session.cancel(needed),
        "give up": lambda session: session.fail(claim, action="fail"),
    }

    def enqueue(session: Driver) -> object:
        return session.enqueue(key="k", **after(needed))

    order = [calls[end], enqueue] if first == "end" else [enqueue, calls[end]]
    [said] = standoff(driver, order[0], order[1])

    found = driver.rows("select status from treadle.tasks where idempotency_key = 'k'")
    expected = ENDS[end][first == "enqueue"]
    if expected == "TR102":
        assert (said, found) == ("TR102", [])
    else:
        assert found == [(expected,)]
    assert faults(driver) == []


def test_the_dependencies_of_a_list_are_locked_in_one_order(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('later')")
    first, second = driver.enqueue(), driver.enqueue()
    claims = driver.claim(limit=2)
    # The task of the queue that is filled first depends on the second.
    tasks = [{**after(first), "queue": "later"}, {**after(second), "queue": "default"}]

    said = standoff(
        driver,
        lambda session: session.rows(
            "select id from treadle.tasks where id = %s for update", first
        ),
        lambda session: session.rows(
            "select verdict from treadle.complete_tasks(%s, %s)",
            *([claim.id for claim in claims], [claim.token for claim in claims]),
        ),
        lambda session: session.rows(
            "select created from treadle.enqueue_tasks(%s)",
            Jsonb([{"type": "code", **task} for task in tasks]),
        ),
    )

    assert said == [[("completed",), ("completed",)], [(True,), (True,)]]


def test_two_edges_that_close_a_circle_together_are_not_both_added(driver: Driver) -> None:
    first = driver.enqueue()
    a, b = (driver.enqueue(**after(first)) for _ in range(2))
    c = create(driver, [node("c", [str(b)])])["c"]

    with refused("TR103"):
        depend(driver, b, c)
    with refused("TR103"):
        while_held(
            driver,
            lambda session: depend(session, a, c),
            lambda session: depend(session, b, a),
        )

    assert faults(driver) == []


def test_of_two_sessions_with_one_key_the_second_gets_the_task_of_the_first(
    driver: Driver,
) -> None:
    first = driver.enqueue()

    second = while_held(
        driver,
        lambda session: session.enqueue(key="k"),
        lambda session: session.enqueue_batch([{}], keys=["k"], **after(first)),
    )

    assert [each.created for each in second] == [False]
    assert driver.value("select count(*) from treadle.dependencies") == 0
