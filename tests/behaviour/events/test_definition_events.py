"""Creating or changing a queue, a type or a gate is an event with its actor."""

from typing import Any

import pytest

from tests.drivers.engine import Driver

pytestmark = pytest.mark.requirement("B10")
# function -> what it defines, a setting, another value, what its event says beside the settings
DEFINED: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "queue": ("night", '{"priority": 80}', '{"priority": 81}', {}),
    "type": ("crawl", '{"timeout_s": 60}', '{"timeout_s": 61}', {"type": "crawl"}),
    "gate": ("llm", '{"limit": 5, "per_s": 60}', '{"limit": 6}', {"key": "llm"}),
}


def told(driver: Driver, what: str) -> list[Any]:
    found = driver.rows(
        "select actor, queue, data from treadle.events where kind = %s order by id",
        f"{what}.defined",
    )
    return [tuple(row) for row in found]


@pytest.mark.parametrize("what", DEFINED)
def test_each_creation_or_change_has_one_event_with_its_actor(driver: Driver, what: str) -> None:
    name, first, second, named = DEFINED[what]
    queue = name if what == "queue" else None
    me = driver.value("select session_user::text")
    call = f"select treadle.define_{what}(%s, %s, %s)"

    for settings, actor in [("{}", None), (first, "ann"), (first, "bob"), (second, "bob")]:
        driver.rows(call, name, settings, actor)

    changes = [("{}", me), (first, "ann"), (second, "bob")]
    assert told(driver, what) == [
        (actor, queue, {**named, "settings": driver.value("select %s::jsonb", settings)})
        for settings, actor in changes
    ]


def test_an_event_does_not_carry_the_schema_of_a_type(driver: Driver) -> None:
    driver.rows(
        "select treadle.define_type('crawl', %s)",
        '{"timeout_s": 5, "validation": [{"validator": "regex", "pattern": "x"}]}',
    )

    [(_, _, data)] = told(driver, "type")
    assert data == {"type": "crawl", "settings": {"timeout_s": 5}}


def test_a_repeated_declaration_of_a_worker_emits_no_event(driver: Driver) -> None:
    for _ in range(3):
        driver.rows("select treadle.declare_types('{\"crawl\": {\"timeout_s\": 5}}', '{night}')")

    assert len(told(driver, "type")) == 1
    assert len(told(driver, "queue")) == 1
