"""A task is more urgent by one point for each task in the longest chain behind it."""

import random
from datetime import timedelta
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.deadlines import enqueue_due, exact
from tests.drivers.engine import Driver

pytestmark = pytest.mark.requirement("F7")

Edges = dict[str, list[str]]


def create(driver: Driver, edges: Edges) -> dict[str, UUID]:
    """Make a DAG; the ids of its tasks by name."""
    tasks = [{"name": name, "type": "code", "after": after} for name, after in edges.items()]
    dag = Jsonb({"name": "d", "tasks": tasks})
    [[ids]] = driver.rows("select ids from treadle.create_dag(%s)", dag)
    return dict(zip(edges, ids, strict=True))


def paths(driver: Driver, ids: dict[str, UUID]) -> dict[str, int]:
    return {name: driver.task(each)["critical_path"] for name, each in ids.items()}


def longest(edges: Edges) -> dict[str, int]:
    """The same by looking at every chain."""
    behind: dict[str, list[str]] = {name: [] for name in edges}
    for name, after in edges.items():
        for each in after:
            behind[each].append(name)
    found: dict[str, int] = {}

    def measure(name: str) -> int:
        if name not in found:
            found[name] = max((1 + measure(each) for each in behind[name]), default=0)
        return found[name]

    return {name: min(30, measure(name)) for name in edges}


def add(driver: Driver, after: UUID, *, dag: UUID) -> UUID:
    task = Jsonb({"type": "code", "after": [str(after)]})
    made: UUID = driver.value("select treadle.add_task(%s, %s)", dag, task)
    return made


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shuffled", [False, True])
def test_it_is_the_longest_chain_behind_in_any_dag(
    driver: Driver, seed: int, shuffled: bool
) -> None:
    dice = random.Random(seed)
    names = [f"t{number}" for number in range(60)]
    edges = {
        name: dice.sample(names[max(0, at - 3) : at], min(at, dice.randint(0, 2)))
        for at, name in enumerate(names)
    }
    if shuffled:
        edges = dict(dice.sample(list(edges.items()), len(edges)))

    assert paths(driver, create(driver, edges)) == longest(edges)


@pytest.mark.parametrize("backwards", [False, True])
def test_the_critical_path_is_capped_at_thirty(driver: Driver, backwards: bool) -> None:
    edges: Edges = {"0": []} | {f"{n}": [f"{n - 1}"] for n in range(1, 100)}
    if backwards:
        edges = dict(reversed(edges.items()))

    found = paths(driver, create(driver, edges))

    assert found == {f"{n}": min(30, 99 - n) for n in range(100)}


def test_the_task_that_most_others_wait_for_is_claimed_first(driver: Driver) -> None:
    create(driver, {"alone": []})
    ids = create(driver, {"a": [], "b": ["a"], "c": ["b"]})

    claim = driver.claim_one("a")

    assert claim.id == ids["a"]
    driver.complete(claim)
    assert driver.claim_one("a").id == ids["b"]


def test_a_task_that_is_added_makes_all_before_it_more_urgent(driver: Driver) -> None:
    ids = create(driver, {"a": [], "b": ["a"], "c": ["b"], "x": [], "y": ["x", "b"]})
    dag = driver.task(ids["a"])["dag_id"]
    before = exact(driver, ids["a"])

    added = add(driver, ids["y"], dag=dag)

    assert paths(driver, ids) == {"a": 3, "b": 2, "c": 0, "x": 2, "y": 1}
    assert driver.task(added)["critical_path"] == 0
    assert exact(driver, ids["a"]) == pytest.approx(before - 1, abs=0.01)


def test_a_chain_that_grows_task_by_task_stops_at_thirty(driver: Driver) -> None:
    ids = create(driver, {"0": []})
    dag, last = driver.task(ids["0"])["dag_id"], ids["0"]
    made = [last]
    for _ in range(40):
        last = add(driver, last, dag=dag)
        made.append(last)

    found = [driver.task(each)["critical_path"] for each in made]
    assert found == [min(30, 40 - n) for n in range(41)]
    ranks = [driver.task(each)["rank"] for each in made[:2]]
    assert ranks[1] - ranks[0] < 1_000_000


def test_an_edge_that_is_added_counts(driver: Driver) -> None:
    ids = create(driver, {"a": [], "b": ["a"], "c": ["b"], "x": []})

    driver.rows("select treadle.add_dependency(%s, %s)", ids["a"], ids["x"])

    assert paths(driver, ids) == {"x": 3, "a": 2, "b": 1, "c": 0}


def test_a_subtask_that_is_waited_for_has_its_parent_behind_it(driver: Driver) -> None:
    ids = create(driver, {"parent": [], "next": ["parent"]})
    claim = driver.claim_one("a")
    children = Jsonb([{"type": "code"}] * 2)
    spawned = driver.rows(
        "select id from treadle.spawn_tasks(%s, %s, 's', %s)", claim.id, claim.token, children
    )
    child, other = (row[0] for row in spawned)
    assert driver.task(child)["critical_path"] == 0

    driver.rows("select treadle.suspend_task(%s, %s, %s)", claim.id, claim.token, [child])

    assert paths(driver, {**ids, "child": child, "other": other}) == {
        "parent": 1, "next": 0, "child": 2, "other": 0
    }  # fmt: skip


def test_it_never_shrinks(driver: Driver) -> None:
    ids = create(driver, {"a": [], "b": ["a"], "c": ["b"]})

    driver.cancel(ids["b"])

    assert driver.task(ids["a"])["critical_path"] == 2


def test_a_retried_task_keeps_it(driver: Driver) -> None:
    ids = create(driver, {"a": [], "b": ["a"], "c": ["b"]})
    rank = driver.task(ids["a"])["rank"]
    driver.fail(driver.claim_one("a"), action="fail")

    driver.retry(ids["a"])

    assert driver.task(ids["a"])["rank"] == rank


def test_a_task_that_somebody_holds_is_not_waited_for(driver: Driver) -> None:
    ids = create(driver, {"a": [], "b": ["a"]})
    dag, other = driver.task(ids["a"])["dag_id"], driver.another()
    other.rows("begin")
    other.rows("select from treadle.tasks where id = %s for update", ids["a"])
    driver.rows("set lock_timeout = '2 s'")

    add(driver, ids["b"], dag=dag)

    other.rows("rollback")
    driver.rows("reset lock_timeout")
    assert paths(driver, ids) == {"a": 1, "b": 1}


def test_with_a_deadline_a_chain_that_grows_takes_one_point_more(driver: Driver) -> None:
    driver.set_clock(timedelta(0), stopped=True)
    task = enqueue_due(driver, 25, priority=50, ageing_rate=0)
    before = exact(driver, task)
    behind = driver.enqueue()

    driver.rows("select treadle.add_dependency(%s, %s)", behind, task)

    assert exact(driver, task) == pytest.approx(before - 1, abs=1e-6)
