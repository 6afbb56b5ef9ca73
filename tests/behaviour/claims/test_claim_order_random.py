"""Over many lanes, rates, ages, deadlines and chains, claims come in the order of the formula."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from tests.drivers.claims import claim_all
from tests.drivers.databases import EMPTY
from tests.drivers.deadlines import boost, exact, rerank, tolerance
from tests.drivers.engine import Driver
from tests.drivers.races import flat, together

pytestmark = [pytest.mark.requirement("F7"), pytest.mark.requirement("F8")]

END = 300
# The clock of the test advances for seconds while it enqueues.
SLACK = 0.5
RANDOM = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@dataclass(frozen=True)
class Plan:
    """A task to be: what its effective priority depends on, by minutes before the end."""

    priority: int
    rate: float
    age: int
    chain: int
    left: float | None
    options: tuple[tuple[str, Any], ...]

    def effective(self) -> float:
        """Its effective priority at the end, by the formula."""
        worth = 0.0 if self.left is None else boost(self.left)
        return self.priority - min(self.chain, 30) - self.rate * self.age - worth


def plans(deadlines: st.SearchStrategy[float | None]) -> st.SearchStrategy[list[Plan]]:
    options = st.fixed_dictionaries(
        {
            "type": st.sampled_from(["code", "test"]),
            "queue": st.sampled_from(["default", "other"]),
            "capabilities": st.sampled_from([(), ("x",), ("x", "y")]),
        }
    )
    plan = st.builds(
        Plan,
        priority=st.integers(0, 100),
        rate=st.sampled_from([0, 0.1, 0.5, 2]),
        age=st.sampled_from([0, 1, 30, 100, END]),
        chain=st.sampled_from([0, 0, 0, 1, 5, 40]),
        left=deadlines,
        options=options.map(lambda given: tuple(given.items())),
    )
    return st.lists(plan, min_size=2, max_size=30)


def make(driver: Driver, given: list[Plan], *, promote: bool) -> dict[UUID, Plan]:
    """Enqueue them, the oldest first, and stop the clock at the end."""
    with psycopg.connect(driver.url) as conn:
        conn.execute(EMPTY.encode())
    driver.agent("a", capabilities=["x", "y"])
    driver.rows("select treadle.define_queue('other', '{}')")
    driver.set_clock(timedelta(0), stopped=True)
    start = driver.value("select treadle.clock()")
    move = "update public.test_clock set stopped_at = %s"
    made = {}
    for plan in sorted(given, key=lambda each: -each.age):
        driver.rows(move, start + timedelta(minutes=END - plan.age))
        options = {**dict(plan.options), "priority": plan.priority, "ageing_rate": plan.rate}
        if plan.left is not None:
            options["deadline_at"] = str(start + timedelta(minutes=END + plan.left))
        tasks = [
            {**options, "capabilities": list(options["capabilities"]), "name": "0"},
            *({"type": "code", "name": f"{n}", "after": [f"{n - 1}"]} for n in range(1, 41)),
        ]
        dag = Jsonb({"name": "d", "tasks": tasks[: plan.chain + 1]})
        made[driver.value("select ids[1] from treadle.create_dag(%s)", dag)] = plan
        if promote:
            rerank(driver)
    driver.rows(move, start + timedelta(minutes=END))
    rerank(driver)
    return made


@RANDOM
@given(given=plans(st.none()), batch=st.integers(1, 40))
def test_without_deadlines_the_order_is_exact(
    driver: Driver, given: list[Plan], batch: int
) -> None:
    made = make(driver, given, promote=False)

    claimed = claim_all(driver, batch, queues=["default", "other"])

    assert sorted(claimed) == sorted(made)
    effective = [made[each].effective() for each in claimed]
    assert effective == pytest.approx(sorted(effective), abs=1e-4)


@RANDOM
@given(
    given=plans(st.one_of(st.none(), st.floats(-100, 100))),
    batch=st.integers(1, 40),
    promote=st.booleans(),
)
def test_with_deadlines_two_tasks_are_out_of_order_only_within_the_bound(
    driver: Driver, given: list[Plan], batch: int, promote: bool
) -> None:
    made = make(driver, given, promote=promote)
    for each, plan in made.items():
        assert exact(driver, each) == pytest.approx(plan.effective(), abs=1e-3)

    claimed = [made[each] for each in claim_all(driver, batch, queues=["default", "other"])]

    assert len(claimed) == len(made)
    for at, first in enumerate(claimed):
        for second in claimed[at + 1 :]:
            worth = [0.0 if each.left is None else boost(each.left) for each in (first, second)]
            allowed = tolerance(*worth) + 1e-3 if any(worth) else 1e-4
            assert first.effective() <= second.effective() + allowed


@pytest.mark.parametrize("rate", [0.5, 2])
def test_a_background_task_is_claimed_within_its_bound_while_urgent_ones_keep_coming(
    driver: Driver, rate: float
) -> None:
    driver.set_clock(timedelta(0))
    background = driver.enqueue(priority=100, ageing_rate=rate)
    # Nothing is more urgent than priority 45, a chain of three behind it, and overdue.
    bound = (100 - 45 + 3 + 128) / rate
    tasks = [{"type": "code", "name": "0", "priority": 45, "ageing_rate": rate}]
    tasks += [{"type": "code", "name": f"{n}", "after": [f"{n - 1}"]} for n in (1, 2, 3)]
    tasks[0]["deadline_at"] = "2025-06-01T00:00:00Z"
    minute, claimed = 0, None
    while claimed != background:
        minute += 5
        assert minute <= bound + 5 + SLACK
        driver.set_clock(timedelta(minutes=minute))
        driver.rows("select treadle.create_dag(%s)", Jsonb({"name": "d", "tasks": tasks}))
        claimed = driver.claim_one("a").id

    assert minute >= bound - 5


@pytest.mark.parametrize("batch", [1, 7])
def test_16_claimers_over_many_lanes_get_each_task_once(driver: Driver, batch: int) -> None:
    driver.set_clock(timedelta(0), stopped=True)
    now = driver.value("select treadle.clock()")
    for left in range(-10, 80, 5):
        for rate in (0, 0.5):
            deadline = (now + timedelta(minutes=left)).isoformat()
            driver.enqueue_batch([{}] * 20, deadline_at=deadline, ageing_rate=rate)

    def work(session: Driver, number: int) -> list[UUID]:
        agent = session.agent(f"agent-{number}")
        found = []
        while claims := session.claim(agent, batch):
            found += [claim.id for claim in claims]
        return found

    ids = flat(together(driver, 16, work))

    assert len(ids) == len(set(ids)) == 18 * 2 * 20
    assert driver.value("select count(*) from treadle.tasks where status = 'ready'") == 0
