"""Code owns what it declares: a setting removed from the code goes away, an operator's stays."""

from typing import Any

import pytest

from tests.drivers.engine import Driver
from tests.drivers.races import while_held
from treadle import Treadle
from treadle.json import encode

EVERYTHING: dict[str, Any] = {
    "description": "Crawl a site",
    "priority": 10,
    "max_attempts": 9,
    "timeout_s": 60,
    "ageing_rate": 0.5,
    "retry": {"strategy": "fixed"},
    "gates": ["anthropic"],
    "breaker": {"threshold": 7},
    "max_cost_usd": 2,
    "max_tokens": 1000,
    "on_budget": "fail",
    "validation": [{"validator": "regex", "pattern": "^ok"}],
    "report": "required",
    "output_type": "json",
    "models": ["opus"],
    "fallback_models": ["haiku"],
}


def declare(driver: Driver, **settings: Any) -> None:
    """Declare the type crawl as a worker does when it starts."""
    driver.rows("select treadle.declare_types(%s)", encode({"crawl": settings}).decode())


def setting(driver: Driver, name: str) -> Any:
    """Read a setting of the type crawl."""
    return driver.value(f"select {name} from treadle.type_status where type = 'crawl'")


def written(driver: Driver) -> Any:
    """Identify the version of the row of the type, and the number of events about types."""
    return driver.rows(
        "select xmin::text, ctid::text, (select count(*) from treadle.events) "
        "from treadle.task_types where name = 'crawl'"
    )


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_setting_removed_from_the_code_returns_to_its_default(driver: Driver, name: str) -> None:
    declare(driver)
    before = setting(driver, name)
    declare(driver, **EVERYTHING)
    assert setting(driver, name) != before

    declare(driver, **{key: value for key, value in EVERYTHING.items() if key != name})

    assert setting(driver, name) == before
    others = [other for other in EVERYTHING if other != name]
    assert all(setting(driver, other) is not None for other in others)


def test_every_setting_of_a_type_is_covered_here(driver: Driver) -> None:
    internal = {"type", "state", "paused_at", "paused_by", "paused_reason"}
    columns = driver.rows(
        "select attname from pg_attribute "
        "where attrelid = 'treadle.type_status'::regclass and attnum > 0"
    )

    assert {name for (name,) in columns} - internal == EVERYTHING.keys()


async def test_a_worker_that_starts_without_a_setting_removes_it(
    app: Treadle, driver: Driver
) -> None:
    def version(**settings: Any) -> Treadle:
        made = Treadle(settings=app.settings)

        @made.task(**settings)
        async def crawl() -> None: ...

        return made

    await version(max_attempts=9, timeout_s=60).run_worker(until_empty=True)
    await version(timeout_s=60).run_worker(until_empty=True)

    assert (setting(driver, "max_attempts"), setting(driver, "timeout_s")) == (None, 60)


def test_what_only_an_operator_set_stays(driver: Driver) -> None:
    declare(driver, max_attempts=9)
    driver.rows("select treadle.define_type('crawl', '{\"timeout_s\": 5}')")

    declare(driver, priority=10)

    assert setting(driver, "timeout_s") == 5
    assert setting(driver, "max_attempts") is None


def test_an_operator_takes_a_setting_over_until_code_declares_it_again(driver: Driver) -> None:
    declare(driver, max_attempts=9, timeout_s=60)
    driver.rows("select treadle.define_type('crawl', '{\"max_attempts\": 20, \"timeout_s\": 5}')")

    declare(driver, timeout_s=60)
    assert (setting(driver, "max_attempts"), setting(driver, "timeout_s")) == (20, 60)

    declare(driver)
    assert (setting(driver, "max_attempts"), setting(driver, "timeout_s")) == (20, None)


def test_a_declared_null_is_not_a_declaration(driver: Driver) -> None:
    driver.rows("select treadle.define_type('crawl', '{\"max_attempts\": 20}')")

    declare(driver, max_attempts=None, retry=None)

    assert setting(driver, "max_attempts") == 20


def test_declaring_the_same_again_writes_nothing(driver: Driver) -> None:
    declare(driver, **EVERYTHING)
    before = written(driver)

    declare(driver, **EVERYTHING)

    assert written(driver) == before


def test_the_event_names_the_settings_that_were_reset(driver: Driver) -> None:
    declare(driver, max_attempts=9)
    declare(driver)

    data = driver.value(
        "select data from treadle.events where kind = 'type.defined' order by id desc limit 1"
    )
    assert data == {"type": "crawl", "settings": {}, "reset": ["max_attempts"]}


def test_of_two_versions_that_start_at_once_the_last_one_decides(driver: Driver) -> None:
    declare(driver, priority=5)

    while_held(
        driver,
        lambda first: declare(first, max_attempts=9, timeout_s=9),
        lambda second: declare(second, max_attempts=5),
    )

    names = ("max_attempts", "timeout_s", "priority")
    assert [setting(driver, name) for name in names] == [5, None, None]


def test_a_declaration_keeps_what_an_operator_changes_at_the_same_time(driver: Driver) -> None:
    declare(driver)

    while_held(
        driver,
        lambda first: first.rows("select treadle.define_type('crawl', '{\"timeout_s\": 5}')"),
        lambda second: declare(second, max_attempts=9),
    )

    assert (setting(driver, "max_attempts"), setting(driver, "timeout_s")) == (9, 5)
