"""A completion is an event only if a trigger or webhook selects it."""

import pytest
from psycopg.types.json import Jsonb

from tests.drivers import triggers
from tests.drivers.engine import Driver
from tests.drivers.triggers import define, finish, fire


def test_without_a_trigger_a_completion_writes_no_event(driver: Driver) -> None:
    define(driver, on="task.completed", filter={"type": "test"})
    driver.rows("select treadle.pause_trigger('t')")
    driver.enqueue(type="test")
    finish(driver)
    assert triggers.kinds(driver, "task.%") == []

    driver.rows("select treadle.resume_trigger('t')")
    driver.enqueue(type="code")
    finish(driver)
    assert triggers.kinds(driver, "task.%") == []
    driver.enqueue(type="test")
    finish(driver)
    assert triggers.kinds(driver, "task.%") == ["task.completed"]


@pytest.mark.parametrize(
    ("kind", "events"), [("task.completed", 1), ("task.*", 1), ("*", 0), ("dag.*", 0)]
)
def test_a_webhook_that_names_completions_gets_them(driver: Driver, kind: str, events: int) -> None:
    settings = Jsonb({"url": "https://example.org/in", "kinds": [kind]})
    driver.rows("select treadle.define_webhook('ops', %s)", settings)
    driver.enqueue()
    finish(driver)

    assert len(triggers.kinds(driver, "task.%")) == events


def test_a_queue_with_a_full_audit_has_the_event_once(driver: Driver) -> None:
    driver.rows("""select treadle.define_queue('default', '{"audit": "full"}')""")
    define(driver, on="task.completed")
    driver.enqueue()
    finish(driver)

    assert triggers.kinds(driver, "task.completed") == ["task.completed"]
    assert len(fire(driver)) == 1


def test_a_listener_that_names_completions_gets_them(driver: Driver) -> None:
    listen = "select treadle.listen_events('me', %s, %s)"
    for seconds, kinds, events in [
        (60, None, 0), (60, ["dag.completed"], 0), (60, ["task.completed"], 1), (0, None, 1),
    ]:  # fmt: skip
        driver.rows(listen, seconds, kinds)
        driver.enqueue()
        finish(driver)
        assert len(triggers.kinds(driver, "task.%")) == events


def test_the_listening_of_triggers_makes_no_other_completions_events(driver: Driver) -> None:
    define(driver, on="task.completed", filter={"type": "test"})
    fire(driver)
    driver.enqueue(type="code")
    finish(driver)

    assert triggers.kinds(driver, "task.%") == []
