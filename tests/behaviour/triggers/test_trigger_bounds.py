"""Trigger loops end: chains have a maximum depth, and each hour has a limit."""

from datetime import timedelta
from uuid import UUID

import pytest

from tests.drivers import triggers
from tests.drivers.engine import Driver
from tests.drivers.triggers import define, emit, finish, fire, trigger


def test_a_loop_of_one_trigger_ends_at_its_depth(driver: Driver) -> None:
    define(driver, on="task.completed", filter={"type": "code"}, task={"type": "code"}, max_depth=4)
    driver.enqueue()

    for _ in range(10):
        if driver.value("select count(*) from treadle.tasks where status = 'ready'"):
            finish(driver)
            fire(driver)

    assert len(triggers.made(driver)) == 4
    row = trigger(driver)
    assert (row["fired"], row["refused"], row["failed"]) == (4, 1, 0)
    assert row["last_error"] == "4 triggers led to it; max_depth is 4"
    assert triggers.kinds(driver) == ["trigger.defined", "trigger.refused"]


@pytest.mark.requirement("F18")
def test_a_loop_over_two_triggers_and_a_dag_ends(driver: Driver) -> None:
    define(driver, "there", on="task.completed", filter={"type": "code"},
           dag={"name": "x", "tasks": [{"type": "test"}]})  # fmt: skip
    define(driver, "back", on="dag.completed", task={"type": "code"}, max_depth=3)
    driver.enqueue()

    for _ in range(20):
        if driver.value("select count(*) from treadle.tasks where status = 'ready'"):
            finish(driver)
            fire(driver)

    depths = driver.rows("select depth from treadle.trigger_fires where verdict = 'fired'")
    assert sorted(row[0] for row in depths) == [1, 2, 3]
    assert trigger(driver, "back")["refused"] == 1


def test_spawned_and_forked_tasks_and_their_events_have_the_depth(driver: Driver) -> None:
    define(driver, task={"type": "code"}, max_depth=1)
    emit(driver)
    fire(driver)
    claim = driver.claim_one()
    [[child]] = driver.rows(
        """select id from treadle.spawn_tasks(%s, %s, 's', '[{"type": "test"}]')""",
        *(claim.id, claim.token),
    )
    driver.rows("select * from treadle.save_step(%s, %s, 'one', '1')", claim.id, claim.token)
    driver.complete(claim)
    forked = driver.value("select treadle.fork_task(%s, 'one')", claim.id)

    for task in (claim.id, child, forked):
        emit(driver, task=task)
    assert [each.task_id for each in fire(driver)] == [None, None, None]
    emit(driver, task=driver.enqueue())
    assert [each.problem for each in fire(driver)] == [None]


def test_the_hourly_limit_is_enforced_and_reported_once(driver: Driver) -> None:
    define(driver, max_per_hour=3)
    for _ in range(6):
        emit(driver)

    problems = [each.problem for each in fire(driver)]

    assert problems == [None] * 3 + ["it has fired 3 times within an hour (max_per_hour)"] * 3
    assert len(triggers.made(driver)) == 3
    assert trigger(driver)["refused"] == 3
    assert triggers.kinds(driver) == ["trigger.defined", "trigger.refused"]

    driver.set_clock(timedelta(minutes=61))
    emit(driver)
    assert [each.problem for each in fire(driver)] == [None]


def test_no_limit_is_said_with_null(driver: Driver) -> None:
    define(driver, max_per_hour=None)
    assert trigger(driver)["max_per_hour"] is None
    define(driver, "bounded")
    assert trigger(driver, "bounded")["max_per_hour"] == 1000


def test_a_trigger_that_fails_stops_no_other_and_can_be_fired_by_hand(driver: Driver) -> None:
    define(driver, "bad", task={"type": "code", "spec": {"url": {"$event": "data.url"}}})
    define(driver, "good")
    without, with_one = emit(driver), emit(driver, data={"url": "u"})

    problems = {(each.event_id, each.id): each.problem for each in fire(driver)}

    bad, good = trigger(driver, "bad"), trigger(driver, "good")
    assert problems == {
        (without, bad["id"]): "the event has no data.url",
        (without, good["id"]): None,
        (with_one, bad["id"]): None,
        (with_one, good["id"]): None,
    }
    assert (bad["fired"], bad["failed"], bad["last_error"]) == (1, 1, "the event has no data.url")
    [event] = driver.records("select * from treadle.events where kind = 'trigger.failed'")
    assert event["key"] == "bad"
    assert event["data"] == {"event_id": without, "problem": "the event has no data.url"}

    define(driver, "bad", on=None, task={"type": "code"})
    [[made]] = driver.rows("select task_id from treadle.fire_trigger('bad', %s)", without)
    assert isinstance(made, UUID)
    with pytest.raises(Exception, match="does not fire on event"):
        driver.rows("select task_id from treadle.fire_trigger('bad', %s)", without)
    assert len(triggers.made(driver, "bad")) == 2


def test_the_key_of_a_template_makes_one_task_of_many_events(driver: Driver) -> None:
    define(driver, task={"type": "code", "idempotency_key": {"$event": "key"}})
    for key in ("a", "a", "b"):
        emit(driver, key=key)

    made = [each.task_id for each in fire(driver)]

    assert made[0] == made[1] != made[2]
    assert len(triggers.made(driver)) == 2


def test_a_failure_of_a_trigger_does_not_fire_triggers(driver: Driver) -> None:
    with pytest.raises(Exception, match="triggers cannot fire on events of triggers"):
        define(driver, on="trigger.failed")
