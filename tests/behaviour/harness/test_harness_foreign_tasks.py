"""Tasks that enter the harness queue outside its protocol do no harm."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.harness import (
    ME,
    OTHER,
    decided,
    expire,
    fetch,
    fetched,
    finish,
    put,
    requeue,
    shown,
    status,
    take,
)
from tests.drivers.refusals import refused, unchanged


def stray(driver: Driver, kind: str = "code") -> UUID:
    """A task of the queue that belongs to no agent."""
    fetch(driver)
    found: UUID = driver.value("select treadle.enqueue_task('harness', %s)", kind)
    return found


@pytest.mark.requirement("H3")
@pytest.mark.parametrize("kind", ["code", "harness"])
def test_a_task_without_an_agent_goes_to_no_agent_of_the_harness(driver: Driver, kind: str) -> None:
    task_id = stray(driver, kind)

    assert fetch(driver) is None
    mine = put(driver)
    assert fetched(driver)["id"] == mine

    assert driver.rows("select from treadle.harness_tasks where task_id = %s", task_id) == []
    assert [each.id for each in driver.claim("a", queues=["harness"])] == [task_id]


@pytest.mark.requirement("H3")
def test_an_agent_that_was_registered_as_another_has_its_own_tasks_only(driver: Driver) -> None:
    stray(driver)
    driver.rows("select treadle.register_agent(%s, p_queues => '{harness}')", ME)

    assert fetch(driver) is None


@pytest.mark.requirement("H3")
def test_the_probe_of_a_breaker_goes_to_no_agent_of_the_harness(driver: Driver) -> None:
    task_id = stray(driver)
    driver.rows(
        """
        insert into treadle.breakers (type, state, failures, opened_at, probe_at)
        values ('code', 'open', 5, treadle.clock(), treadle.clock())
        """
    )

    assert fetch(driver) is None
    assert [each.id for each in driver.claim("a", queues=["harness"])] == [task_id]


def test_a_silent_claim_of_a_task_without_an_agent_is_left_to_the_reaper(driver: Driver) -> None:
    task_id = stray(driver)
    driver.claim("a", queues=["harness"])
    driver.age_claim(task_id, timedelta(hours=1))

    assert requeue(driver) == []
    assert [each.id for each in driver.reap()] == [task_id]


def test_a_result_of_a_task_without_an_agent_is_not_acted_on(driver: Driver) -> None:
    stray(driver)
    driver.rows("update treadle.tasks set has_options = true")
    driver.rows(
        """
        insert into treadle.task_options (task_id, consumer)
        select id, 'harness' from treadle.tasks
        """
    )
    [task] = driver.claim("a", queues=["harness"])
    driver.rows("select treadle.complete_task(%s, %s, '{}')", task.id, task.token)

    assert take(driver) == []


@pytest.mark.parametrize("output", [None, 7, [], "text"])
def test_an_output_that_is_not_a_decision_does_not_stop_the_others(
    driver: Driver, output: object
) -> None:
    task_id = put(driver)
    task = fetched(driver)
    given = None if output is None else Jsonb(output)
    driver.rows("select treadle.complete_task(%s, %s, %s)", task_id, task["token"], given)
    good = decided(driver, {"n": 1})

    actions = {each["id"]: each for each in take(driver)}

    assert shown(driver, task_id)["result"] is None
    assert [actions[each]["decision"] for each in (task_id, good)] == [output, {"n": 1}]
    assert finish(driver, actions[task_id], "failed", "no decision", 1) == "failed"
    assert status(driver, task_id) == ("completed", "failed")
    assert finish(driver, actions[good]) == "done"


@pytest.mark.parametrize("also", [0, 1])
def test_a_token_whose_claim_expired_must_be_replaced(driver: Driver, also: int) -> None:
    task_id = put(driver)
    task = fetched(driver)
    for _ in range(also):
        expire(driver, task)
        expire(driver, fetched(driver))
    if not also:
        expire(driver, task)
    put(driver)

    with unchanged(driver), refused("TR101", "has expired"):
        fetch(driver, token=task["token"])

    assert fetched(driver)["id"] == task_id


def test_a_token_is_not_refused_because_of_another_agent_s_task(driver: Driver) -> None:
    put(driver)
    task = fetched(driver)
    expire(driver, task)

    assert fetch(driver, OTHER, token=task["token"]) is None


def test_a_claim_reports_whether_it_is_a_repeat(driver: Driver) -> None:
    put(driver)
    token = uuid4()

    assert [fetched(driver, token=token)["already"] for _ in range(3)] == [False, True, True]


@pytest.mark.parametrize("url", ["http://triage_agent:9000", "http://_x/a", "https://a_b.c"])
def test_a_host_may_have_an_underscore(driver: Driver, url: str) -> None:
    task_id = put(driver, url=url)
    assert fetched(driver, url)["id"] == task_id
