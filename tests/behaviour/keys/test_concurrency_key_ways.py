"""A task with a concurrency key needs a slot, however it becomes claimable."""

from collections.abc import Callable
from uuid import UUID

import pytest

from tests.drivers.dags import create
from tests.drivers.engine import Driver
from tests.drivers.keys import admit, keyed, limit, standing, wait_for_answer
from tests.drivers.waits import answer

pytestmark = pytest.mark.requirement("B6")


def node(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "type": "code", "concurrency_key": "k", **more}


def unheld(driver: Driver, task_id: UUID) -> UUID:
    driver.rows("select treadle.release_held_tasks(%s)", [task_id])
    return task_id


def due(driver: Driver, task_id: UUID) -> UUID:
    driver.fall_due(task_id)
    return task_id


def started(driver: Driver) -> UUID:
    graph = create(driver, [node("a")], hold=True)
    assert standing(driver, graph["a"]) == [("created", None)]
    driver.rows("select treadle.start_dag(%s)", graph.id)
    return graph["a"]


def met(driver: Driver) -> UUID:
    graph = create(driver, [{"name": "a", "type": "code"}, node("b", after=["a"])])
    assert standing(driver, graph["b"]) == [("pending", None)]
    driver.complete(graph.claim("a"))
    return graph["b"]


def revived(driver: Driver) -> UUID:
    [task_id] = keyed(driver, priority=0, queue="other")
    limit(driver, "k", 2)
    [claim] = driver.claim(queues=["other"])
    driver.fail(claim, action="fail")
    limit(driver, "k", 1)
    driver.retry(task_id)
    return task_id


def forked(driver: Driver) -> UUID:
    task_id = keyed(driver)[0]
    save = "select treadle.save_step(%s, %s, 'one', '1')"
    limit(driver, "k", 2)
    claim = next(each for each in driver.claim("a", 10) if each.id == task_id)
    driver.rows(save, claim.id, claim.token)
    driver.complete(claim)
    limit(driver, "k", 1)
    return UUID(str(driver.value("select treadle.fork_task(%s, 'one')", task_id)))


def answered(driver: Driver) -> UUID:
    task_id = keyed(driver)[0]
    limit(driver, "k", 2)
    claim = next(each for each in driver.claim("a", 10) if each.id == task_id)
    wait_id = wait_for_answer(driver, claim)
    limit(driver, "k", 1)
    answer(driver, wait_id, "yes")
    return task_id


WAYS_IN: dict[str, Callable[[Driver], UUID]] = {
    "enqueue": lambda driver: keyed(driver)[0],
    "plain insert": lambda driver: driver.value(
        "insert into treadle.tasks (type, concurrency_key) values ('code', 'k') returning id"
    ),
    "plain insert that claims to have a slot": lambda driver: driver.value(
        "insert into treadle.tasks (type, concurrency_key, slot) values ('code', 'k', 'held')"
        " returning id"
    ),
    "unhold": lambda driver: unheld(driver, keyed(driver, hold=True)[0]),
    "its time has come": lambda driver: due(driver, keyed(driver, delay_s=60)[0]),
    "a whole DAG": lambda driver: create(driver, [node("a")])["a"],
    "a DAG that is started": started,
    "a dependency that is met": met,
    "a retry of a dead letter": revived,
    "a fork": forked,
    "an answer": answered,
}


@pytest.mark.parametrize("way", WAYS_IN)
def test_a_task_waits_for_a_slot_however_it_becomes_claimable(driver: Driver, way: str) -> None:
    driver.rows("select treadle.define_queue('other')")
    [holder] = keyed(driver)
    before = driver.claim_one()
    assert before.id == holder

    task_id = WAYS_IN[way](driver)
    admit(driver)
    assert standing(driver, task_id) == [("pending", "waiting")]
    driver.complete(before)

    assert admit(driver) == 1
    assert standing(driver, task_id) == [("ready", "held")]
