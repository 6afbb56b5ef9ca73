"""Releasing tasks, changing an age and allowing nudges are events, once for each change."""

from typing import Any

import pytest

from tests.drivers.engine import Driver

pytestmark = pytest.mark.requirement("B10")
AGENT = "http://agent-1:9000"


def told(driver: Driver, like: str) -> list[Any]:
    found = driver.rows(
        "select kind, actor, data from treadle.events where kind like %s order by id", like
    )
    return [tuple(row) for row in found]


@pytest.mark.parametrize("audit", ["compact", "full"])
def test_a_released_task_has_one_event_with_its_actor(driver: Driver, audit: str) -> None:
    driver.rows("update treadle.queues set audit = %s", audit)
    task_id = driver.enqueue(hold=True)
    other = driver.enqueue(hold=True, delay_s=60)
    me = driver.value("select session_user::text")

    for actor in ("ann", "bob"):
        driver.rows("select treadle.release_held_tasks(%s, %s)", [task_id], actor)
    driver.rows("select treadle.release_held_tasks(%s)", [other])

    assert told(driver, "task.hold_released") == [
        ("task.hold_released", "ann", {"status": "ready"}),
        ("task.hold_released", me, {"status": "pending"}),
    ]


def test_a_changed_age_has_one_event_with_its_actor(driver: Driver) -> None:
    for seconds, actor in [(60, "ann"), (60, "bob"), (90, "bob"), (None, "eve"), (None, "ann")]:
        driver.rows("select treadle.set_retention('runs', %s, %s)", seconds, actor)

    assert told(driver, "retention.set") == [
        ("retention.set", "ann", {"kind": "runs", "keep_s": 60}),
        ("retention.set", "bob", {"kind": "runs", "keep_s": 90}),
        ("retention.set", "eve", {"kind": "runs", "keep_s": None}),
    ]


def test_nudges_that_are_allowed_or_not_any_more_have_one_event_each(driver: Driver) -> None:
    steps = [(True, False), (True, False), (True, True), (False, False), (False, False)]
    for actor, (allow, private) in zip("abcde", steps, strict=True):
        driver.rows("select treadle.allow_nudges(%s, %s, %s, %s)", AGENT, allow, private, actor)

    assert told(driver, "harness.nudges%") == [
        ("harness.nudges_allowed", "a", {"agent_url": AGENT, "private": False}),
        ("harness.nudges_allowed", "c", {"agent_url": AGENT, "private": True}),
        ("harness.nudges_forbidden", "d", {"agent_url": AGENT, "private": False}),
    ]
