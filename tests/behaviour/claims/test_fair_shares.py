"""In a fair queue projects take turns by their shares, however much one of them has waiting."""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.races import flat, together
from treadle.models import Claim

pytestmark = pytest.mark.requirement("B6")


@pytest.fixture
def fair(driver: Driver) -> Driver:
    """The queue default, with turns for projects."""
    driver.rows("""select treadle.define_queue('default', '{"fair": true}')""")
    return driver


def project(driver: Driver, name: str, share: float = 1) -> UUID:
    made: UUID = driver.value(
        "select id from treadle.define_project(%s, %s)", name, Jsonb({"share": share})
    )
    return made


def fill(driver: Driver, name: str | None, count: int, **options: Any) -> None:
    given = options if name is None else {**options, "project": name}
    for first in range(0, count, 1000):
        driver.enqueue_batch([{}] * min(1000, count - first), **given)


def owners(claims: Sequence[Claim]) -> Counter[UUID | None]:
    return Counter(claim.project_id for claim in claims)


@pytest.mark.parametrize("batch", [1, 100])
def test_a_project_with_50000_tasks_does_not_starve_one_with_10(fair: Driver, batch: int) -> None:
    project(fair, "large")
    small = project(fair, "small")
    fill(fair, "large", 50_000, priority=0)
    fill(fair, "small", 10, priority=100)

    claims = flat(fair.claim("a", batch) for _ in range(20 if batch == 1 else 1))

    assert owners(claims)[small] == 10
    assert len(claims) == max(20, batch)


def test_a_worker_with_one_slot_serves_the_small_project_too(fair: Driver) -> None:
    project(fair, "large")
    small = project(fair, "small")
    fill(fair, "large", 5_000, priority=0)
    fill(fair, "small", 10, priority=100)
    served: Counter[UUID | None] = Counter()
    # By chance one after the other: not to be done with in 200 has a chance of 1e-40.
    for _ in range(200):
        claim = fair.claim_one("a")
        fair.complete(claim)
        served[claim.project_id] += 1

    assert served[small] == 10


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_shares_of_1_and_3_are_kept_within_one_task(fair: Driver, batch: int) -> None:
    one, three = project(fair, "one", 1), project(fair, "three", 3)
    fill(fair, "one", 300)
    fill(fair, "three", 300)
    running: Counter[UUID | None] = Counter()

    while running.total() < 200:
        running += owners(fair.claim("a", batch))

        assert abs(running[one] - running.total() / 4) <= 1
        assert abs(running[three] - running.total() * 3 / 4) <= 1


def test_running_tasks_count_against_the_limit(fair: Driver) -> None:
    early, late = project(fair, "early"), project(fair, "late")
    fill(fair, "early", 100)
    fair.claim("a", 30)
    fill(fair, "late", 100)

    assert owners(fair.claim("a", 20)) == {late: 20}
    assert owners(fair.claim("a", 20)) == {late: 15, early: 5}


def test_the_unused_share_of_a_project_goes_to_the_others(fair: Driver) -> None:
    ids = {name: project(fair, name) for name in ("few", "some", "many")}
    for name, count in (("few", 2), ("some", 20), ("many", 500)):
        fill(fair, name, count)

    claims = fair.claim("a", 100)

    assert owners(claims) == {ids["few"]: 2, ids["some"]: 20, ids["many"]: 78}
    assert len({claim.id for claim in claims}) == 100


def test_tasks_without_a_project_are_one_more_project(fair: Driver) -> None:
    owned = project(fair, "owned")
    fill(fair, None, 1000)
    fill(fair, "owned", 1000)

    assert owners(fair.claim("a", 50)) == {None: 25, owned: 25}


def test_inside_a_project_the_best_over_all_lanes_comes_first(fair: Driver) -> None:
    project(fair, "mine")
    project(fair, "other")
    fill(fair, "other", 10)
    wanted = [
        fair.enqueue(project="mine", type=kind, priority=priority, ageing_rate=rate)
        for priority, (kind, rate) in enumerate([("code", 0), ("test", 0.5), ("code", 2)] * 3)
    ]

    claims = flat(fair.claim("a", 1) for _ in range(12))

    mine = [claim.id for claim in claims if claim.id in wanted]
    assert mine == wanted[: len(mine)]
    assert 5 <= len(mine) <= 7


def test_tasks_of_a_dag_belong_to_its_project(fair: Driver) -> None:
    owner = project(fair, "owner")
    project(fair, "large")
    fill(fair, "large", 500, priority=0)
    dag = {"name": "d", "project_id": str(owner), "tasks": [{"type": "code"}] * 5}
    fair.rows("select treadle.create_dag(%s)", Jsonb(dag))

    assert owners(fair.claim("a", 10))[owner] == 5


def test_in_other_queues_projects_do_not_matter(driver: Driver) -> None:
    project(driver, "large")
    project(driver, "small")
    fill(driver, "large", 50, priority=0)
    fill(driver, "small", 10, priority=100)

    assert len(owners(driver.claim("a", 50))) == 1
    assert driver.value("select count(*) from treadle.lanes where project_id is not null") == 0


def test_16_claimers_share_out_each_task_once(fair: Driver) -> None:
    names = [f"p{number}" for number in range(5)]
    for name in names:
        project(fair, name)
        fill(fair, name, 200)

    def work(session: Driver, number: int) -> list[UUID]:
        agent = session.agent(f"agent-{number}")
        found = []
        while claims := session.claim(agent, 1 + number % 9):
            found += [claim.id for claim in claims]
        return found

    ids = flat(together(fair, 16, work))

    assert len(ids) == len(set(ids)) == 1000
