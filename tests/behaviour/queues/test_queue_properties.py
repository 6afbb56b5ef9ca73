"""How tasks reach their agents is a property of the queue, not of its name."""

import json
from typing import Any

import pytest

from tests.drivers.dags import add as add_node
from tests.drivers.dags import node, opened, start
from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.work import add

PROPERTIES = (
    "select assignment, hold, on_lease_expiry, keep_changes from treadle.queues where name = %s"
)
PLAIN = ("claim", False, "fail", False)
WORK = ("manual", True, "block", True)


def define(driver: Driver, name: str, **settings: Any) -> None:
    driver.rows("select treadle.define_queue(%s, %s)", name, json.dumps(settings))


def make_manual(driver: Driver, name: str) -> None:
    """As if a protocol had this queue too."""
    define(driver, name)
    driver.rows(
        """
        update treadle.queues
        set assignment = 'manual', hold = true, on_lease_expiry = 'block', keep_changes = true
        where name = %s
        """,
        name,
    )


@pytest.mark.parametrize(
    ("name", "properties"),
    [("work", WORK), ("push", ("dispatch", False, "fail", False)), ("harness", PLAIN)],
)
def test_a_queue_of_a_protocol_has_its_properties_however_it_is_made(
    driver: Driver, name: str, properties: tuple[Any, ...]
) -> None:
    define(driver, name, priority=5)
    assert driver.rows(PROPERTIES, name) == [properties]

    driver.rows("delete from treadle.queues where name = %s", name)
    driver.rows("select treadle.declare_types('{\"mail\": {}}', array[%s])", name)
    assert driver.rows(PROPERTIES, name) == [properties]


def test_any_other_queue_is_claimed_by_agents(driver: Driver) -> None:
    define(driver, "desk")

    assert driver.rows(PROPERTIES, "desk") == driver.rows(PROPERTIES, "default") == [PLAIN]


@pytest.mark.parametrize("queue", ["work", "desk", "default"])
@pytest.mark.parametrize(
    "setting", [{"assignment": "manual"}, {"on_lease_expiry": "block"}, {"keep_changes": True}]
)
def test_no_caller_can_turn_a_queue_into_one_of_a_protocol(
    driver: Driver, queue: str, setting: dict[str, Any]
) -> None:
    with unchanged(driver), refused("TR001", "cannot be changed"):
        define(driver, queue, **setting)


def test_a_queue_with_a_dispatcher_always_holds_its_tasks(driver: Driver) -> None:
    add(driver)

    with unchanged(driver), refused("TR001", "hold"):
        define(driver, "work", hold=False)

    assert driver.rows(PROPERTIES, "work") == [WORK]


def test_the_engine_goes_by_the_property_and_not_by_the_name(driver: Driver) -> None:
    make_manual(driver, "desk")
    driver.agent("a", queues=["desk"])
    item = driver.enqueue(queue="desk")

    assert driver.state_of(item) == "created"
    with refused("TR102", f"{item} cannot be released"):
        driver.rows("select * from treadle.release_held_tasks(%s)", [item])
    driver.rows("update treadle.tasks set status = 'ready' where id = %s", item)
    assert driver.claim("a", queues=["desk"]) == []
    assert driver.value("select reason from treadle.why(%s)", item) == "dispatched"
    [[shut]] = driver.rows("select closed_reason from treadle.claim_order('desk')")
    assert "queue desk" in (shut or "")
    assert driver.rows("select * from treadle.stuck") == []
    driver.cancel(item)
    assert driver.value("select to_status from treadle.work_log") == "cancelled"


def test_a_name_alone_makes_no_work_items(driver: Driver) -> None:
    driver.rows("insert into treadle.queues (name) values ('work')")
    driver.agent("a", queues=["work"])

    task_id = driver.enqueue(queue="work")

    assert driver.claim_one("a", queues=["work"]).id == task_id


def test_a_queue_may_hold_its_new_tasks_until_they_are_released(driver: Driver) -> None:
    before = driver.enqueue()
    define(driver, "default", hold=True)
    held, other = driver.enqueue(), driver.enqueue()

    assert [claim.id for claim in driver.claim("a", 5)] == [before]
    assert driver.value("select reason from treadle.why(%s)", held) == "held"

    driver.rows("select treadle.release_held_tasks(%s)", [held])
    assert [claim.id for claim in driver.claim("a", 5)] == [held]

    define(driver, "default", hold=False)
    after = driver.enqueue()
    assert [claim.id for claim in driver.claim("a", 5)] == [after]
    assert driver.state_of(other) == "created"


def test_a_dag_that_starts_leaves_its_tasks_to_a_queue_that_holds_them(driver: Driver) -> None:
    define(driver, "checked", hold=True)
    graph = opened(driver)
    first = add_node(graph, node("a", queue="checked"))
    add_node(graph, node("b", ["a"]))

    start(graph)

    assert graph.states() == {"a": "created", "b": "pending"}
    driver.rows("select treadle.release_held_tasks(%s)", [first])
    assert graph.states() == {"a": "ready", "b": "pending"}


@pytest.mark.parametrize(
    "properties",
    [
        "assignment = 'manual'",
        "on_lease_expiry = 'block'",
        "keep_changes = true",
        "assignment = 'dispatch', hold = true, on_lease_expiry = 'block'",
    ],
)
def test_properties_that_would_leave_tasks_stuck_are_impossible(
    driver: Driver, properties: str
) -> None:
    with refused("23514", "queues_manual_check"):
        driver.rows(f"update treadle.queues set {properties} where name = 'default'")


def test_an_agent_of_the_harness_that_registers_as_a_worker_takes_what_workers_take(
    driver: Driver,
) -> None:
    url = "http://localhost:9000"
    driver.rows("select treadle.claim_harness_task(%s, gen_random_uuid())", url)
    task_id = driver.enqueue(queue="harness")
    assert driver.claim(url, queues=["harness"]) == []

    driver.agent(url, queues=["harness"])

    assert driver.claim_one(url, queues=["harness"]).id == task_id
