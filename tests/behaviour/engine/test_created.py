"""A definition reports whether it created the object, also in a race."""

from collections.abc import Callable

import pytest

from tests.drivers.engine import Driver
from tests.drivers.races import while_held

pytestmark = pytest.mark.requirement("B6")

# Two definitions of each object; each returns whether the object is new.
TASK = '"task": {"type": "code"}'
DEFINITIONS = {
    "queue": (
        "select treadle.define_queue('x')",
        """select treadle.define_queue('x', '{"priority": 7}')""",
    ),
    "type": (
        "select treadle.define_type('x')",
        """select treadle.define_type('x', '{"priority": 7}')""",
    ),
    "gate": (
        """select treadle.define_gate('x', '{"limit": 1, "per_s": 1}')""",
        """select treadle.define_gate('x', '{"limit": 2, "per_s": 1}')""",
    ),
    "project": (
        "select created from treadle.define_project('x')",
        """select created from treadle.define_project('x', '{"share": 7}')""",
    ),
    "schedule": (
        f"""select treadle.define_schedule('x', '{{"cron": "@daily", {TASK}}}') = 'created'""",
        f"""select treadle.define_schedule('x', '{{"cron": "@weekly", {TASK}}}') = 'created'""",
    ),
    "trigger": (
        f"""select created from treadle.define_trigger('x', '{{"on": "paid", {TASK}}}')""",
        f"""select created from treadle.define_trigger('x', '{{"on": "sent", {TASK}}}')""",
    ),
    "webhook": (
        """select created from treadle.define_webhook('x', '{"url": "https://example.org/"}')""",
        """select created from treadle.define_webhook('x', '{"url": "https://example.net/"}')""",
    ),
    "push agent": (
        "select treadle.define_push_agent('x', 'https://example.org')",
        "select treadle.define_push_agent('x', 'https://example.net')",
    ),
}


def calling(statement: str) -> Callable[[Driver], bool]:
    """A call of one statement."""

    def call(driver: Driver) -> bool:
        made = driver.value(statement)
        assert isinstance(made, bool)
        return made

    return call


@pytest.mark.parametrize("noun", DEFINITIONS)
def test_only_the_first_definition_creates(driver: Driver, noun: str) -> None:
    create, other = map(calling, DEFINITIONS[noun])

    made = [create(driver), create(driver), other(driver), other(driver)]

    assert made == [True, False, False, False]


@pytest.mark.parametrize(("end", "creates"), [("commit", False), ("rollback", True)])
@pytest.mark.parametrize("noun", DEFINITIONS)
def test_of_two_definitions_at_once_one_creates(
    driver: Driver, noun: str, end: str, creates: bool
) -> None:
    # Another trigger is active: the first one of all waits for its place among the events.
    driver.rows(f"""select treadle.define_trigger('other', '{{"on": "paid", {TASK}}}')""")
    create, other = map(calling, DEFINITIONS[noun])

    assert while_held(driver, create, other, end=end) is creates


def test_a_webhook_created_twice_at_once_is_added_once(driver: Driver) -> None:
    create = calling(DEFINITIONS["webhook"][0])

    while_held(driver, create, create)

    kinds = driver.rows("select kind from treadle.events where kind like 'webhook.%%' order by id")
    assert kinds == [("webhook.added",), ("webhook.changed",)]
