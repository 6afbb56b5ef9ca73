"""Events are read before they are pruned: a late reader finds the tasks of its events."""

from datetime import timedelta
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb

from tests.drivers import triggers
from tests.drivers.dags import create, node
from tests.drivers.engine import Driver
from tests.drivers.retention import complete_one, exists, keep, keep_events, prune, sweep_events
from tests.drivers.triggers import define, emit, fill_queue, fire, fire_one, make_room

pytestmark = pytest.mark.requirement("B9")


@pytest.mark.parametrize("how", ["remove_trigger", "pause_trigger"])
def test_without_an_active_trigger_events_go_by_their_age(driver: Driver, how: str) -> None:
    keep_events(driver, 0)
    define(driver)
    emit(driver, "early")
    fire(driver)
    driver.rows(f"select treadle.{how}('t')")
    emit(driver, "later")
    driver.set_clock(timedelta(seconds=5))

    assert sweep_events(driver) == 4
    assert triggers.kinds(driver, "%") == []


def test_a_trigger_that_is_resumed_begins_after_what_was_pruned(driver: Driver) -> None:
    define(driver)
    driver.rows("select treadle.pause_trigger('t')")
    emit(driver)
    driver.rows("select treadle.resume_trigger('t')")
    event = emit(driver)
    keep_events(driver, 0)
    driver.set_clock(timedelta(seconds=5))

    sweep_events(driver)

    assert fire_one(driver).event_id == event


def test_a_trigger_that_reads_late_finds_the_task_of_its_event(driver: Driver) -> None:
    keep(driver, keep_completed_s=0)
    output = {"text": {"$event": "output"}}
    define(driver, on="task.completed", filter={"type": "code"}, task={"type": "review",
           "spec": output})  # fmt: skip
    task = complete_one(driver, "done", type="code")

    assert prune(driver) == 0
    made = fire_one(driver).task_id
    assert made is not None
    assert driver.task(made)["spec"] == {"text": "done"}
    assert prune(driver) == 1
    assert not exists(driver, task)


def test_a_trigger_that_reads_late_finds_the_dag_of_its_event(driver: Driver) -> None:
    keep(driver, keep_completed_s=0)
    define(driver, on="dag.completed", filter={"dag": {"name": "crawl"}})
    graph = create(driver, [node("a"), node("b", ["a"])], name="crawl")
    graph.complete("a", "b")
    # As where the tasks of a DAG tell nothing of their own.
    driver.rows("delete from treadle.events where task_id is not null")

    assert prune(driver) == 0
    assert fire_one(driver).problem is None
    assert prune(driver) == 2


def test_a_webhook_that_reads_late_finds_the_type_of_the_task(driver: Driver) -> None:
    keep(driver, keep_completed_s=0)
    settings = {"url": "https://example.org/in", "kinds": ["task.completed"],
                "filter": {"task_type": "code"}}  # fmt: skip
    driver.rows("select treadle.define_webhook('ops', %s)", Jsonb(settings))
    complete_one(driver, type="code")

    assert prune(driver) == 0
    token = uuid4()
    driver.rows("select treadle.take_webhooks(%s)", token)
    [(found,)] = driver.rows("select document from treadle.read_webhook('ops', %s)", token)
    assert '"task_type": "code"' in found


def test_what_waits_for_a_full_queue_keeps_its_event_and_task(driver: Driver) -> None:
    fill_queue(driver)
    keep_events(driver, 0)
    keep(driver, keep_completed_s=0)
    task = complete_one(driver)
    emit(driver, task=task)
    fire(driver)
    emit(driver, "other")
    fire(driver)
    driver.set_clock(timedelta(seconds=5))

    assert prune(driver) == 0
    sweep_events(driver)
    make_room(driver)
    assert fire_one(driver).problem is None
    assert prune(driver) == 1
