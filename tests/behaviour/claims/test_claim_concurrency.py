"""Any number of claimers at once: each task goes to one of them, and limits hold exactly."""

from uuid import UUID

import pytest

from tests.drivers.engine import Driver
from tests.drivers.races import flat, together, while_held

pytestmark = pytest.mark.requirement("F8")

CLAIMERS = 16


def test_16_connections_claim_each_of_20000_tasks_once_and_leave_none(driver: Driver) -> None:
    for _ in range(20):
        driver.enqueue_batch([{}] * 1000)

    def claim_all(session: Driver, number: int) -> list[tuple[UUID, UUID]]:
        agent, found = session.agent(f"agent-{number}"), []
        query = "select id, claim_token from treadle.claim_tasks(%s, p_limit => 40)"
        while rows := session.rows(query, agent):
            found += rows
        return found

    claims = flat(together(driver, CLAIMERS, claim_all))

    assert len(claims) == 20_000
    assert len({task_id for task_id, _ in claims}) == 20_000
    on_the_rows = driver.rows("select id, claim_token from treadle.tasks where status = 'running'")
    assert set(on_the_rows) == set(claims)
    assert driver.value("select count(distinct agent_id) from treadle.tasks") > CLAIMERS / 2
    assert driver.rows("select distinct attempt from treadle.tasks") == [(1,)]


def test_over_many_lanes_each_task_is_claimed_once(driver: Driver) -> None:
    for rate in range(10):
        driver.enqueue_batch([{}] * 100, ageing_rate=rate / 10)

    def claim_all(session: Driver, number: int) -> list[UUID]:
        agent, found = session.agent(f"agent-{number}"), []
        while claims := session.claim(agent, 7):
            found += [claim.id for claim in claims]
        return found

    ids = flat(together(driver, CLAIMERS, claim_all))

    assert len(ids) == len(set(ids)) == 1000


def test_a_task_that_another_session_is_claiming_is_skipped_not_waited_for(driver: Driver) -> None:
    first, second = driver.enqueue(), driver.enqueue()
    other = driver.another()
    other.rows("set lock_timeout = '1 s'")
    driver.rows("begin")
    assert driver.claim_one("a").id == first

    assert other.claim_one("b").id == second
    assert other.claim("b") == []

    driver.rows("rollback")
    assert other.claim_one("b").id == first


@pytest.mark.requirement("F9")
def test_the_limit_of_an_agent_is_exact_under_16_claimers(driver: Driver) -> None:
    driver.agent("busy", max_concurrent_tasks=10)
    driver.enqueue_batch([{}] * 200)

    def claim(session: Driver, number: int) -> list[UUID]:
        return flat([each.id for each in session.claim("busy", 3)] for _ in range(3))

    ids = flat(together(driver, CLAIMERS, claim))

    assert len(ids) == len(set(ids)) == 10
    assert driver.value("select count(*) from treadle.tasks where agent_id = 'busy'") == 10


@pytest.mark.requirement("F9")
def test_a_claim_waits_for_another_of_the_same_agent_before_it_counts(driver: Driver) -> None:
    driver.agent("busy", max_concurrent_tasks=1)
    driver.enqueue_batch([{}] * 2)

    late = while_held(driver, lambda held: held.claim("busy"), lambda late: late.claim("busy"))

    assert late == []


@pytest.mark.requirement("F9")
def test_an_agent_at_its_limit_gets_more_as_it_finishes(driver: Driver) -> None:
    driver.agent("busy", max_concurrent_tasks=2)
    driver.enqueue_batch([{}] * 5)
    first, second = driver.claim("busy", 10)
    assert driver.claim("busy", 10) == []

    driver.complete(first)
    driver.fail(second)

    assert len(driver.claim("busy", 10)) == 2


@pytest.mark.requirement("F9")
def test_an_agent_that_holds_more_than_its_new_limit_gets_nothing(driver: Driver) -> None:
    driver.agent("busy", max_concurrent_tasks=3)
    driver.enqueue_batch([{}] * 9)
    assert len(driver.claim("busy", 10)) == 3

    driver.agent("busy", max_concurrent_tasks=1)

    assert driver.claim("busy", 10) == []


def test_sessions_that_make_the_same_lane_at_once_all_get_it(driver: Driver) -> None:
    def enqueue(session: Driver, number: int) -> list[UUID]:
        return [session.enqueue(type="test", capabilities=["new", f"n{n}"]) for n in range(10)]

    ids = flat(together(driver, CLAIMERS, enqueue))

    assert len(set(ids)) == 160
    assert driver.value("select count(*) from treadle.lanes") == 10
