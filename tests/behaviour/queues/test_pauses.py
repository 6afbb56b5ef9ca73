"""A pause keeps its reason: pausing again without a reason does not remove it."""

import pytest

from tests.drivers import schedules, triggers
from tests.drivers.engine import Driver

# What is paused, where it is kept, and the column of the reason.
PAUSED = {
    "queue": ("default", "queues", "paused_reason"),
    "type": ("code", "task_types", "paused_reason"),
    "schedule": ("hourly", "schedules", "paused_reason"),
    "trigger": ("t", "triggers", "paused_reason"),
    "webhook": ("ops", "webhooks", "reason"),
}


@pytest.mark.parametrize("what", PAUSED)
def test_a_second_pause_keeps_the_reason(driver: Driver, what: str) -> None:
    name, table, column = PAUSED[what]
    schedules.define(driver)
    triggers.define(driver)
    driver.rows("""select treadle.define_webhook('ops', '{"url": "https://example.org/in"}')""")

    def after(call: str, *values: str) -> object:
        places = ", ".join(["%s"] * (1 + len(values)))
        driver.rows(f"select treadle.{call}_{what}({places})", name, *values)
        return driver.value(f"select {column} from treadle.{table} where name = %s", name)

    assert after("pause", "a move") == "a move"
    assert after("pause") == "a move"
    assert after("pause", "a storm") == "a storm"
    assert after("resume") is None
    assert after("pause") is None
