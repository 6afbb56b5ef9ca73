"""A dead letter is edited and retried; an invalid edit changes nothing."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.dags import shaped
from tests.drivers.dead_letters import dead, decisions, resolve, resolve_where
from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged

pytestmark = [pytest.mark.requirement("F16"), pytest.mark.requirement("R3")]

SPEC = {"url": "x", "options": {"depth": 3, "tags": ["a", "b"]}, "n": 1}


@pytest.mark.parametrize(
    ("changes", "after"),
    [
        ({"spec": {"url": "y"}}, {**SPEC, "url": "y"}),
        ({"spec": {"options": {}}}, {**SPEC, "options": {}}),
        ({"set": {"n": None}}, {**SPEC, "n": None}),
        ({"set": {"options.depth": 5}}, {**SPEC, "options": {"depth": 5, "tags": ["a", "b"]}}),
        (
            {"set": {"options.tags.1": "c"}},
            {**SPEC, "options": {"depth": 3, "tags": ["a", "c"]}},
        ),
        ({"set": {"new.deep.value": [1]}}, {**SPEC, "new": {"deep": {"value": [1]}}}),
        ({"unset": ["url", "options.depth"]}, {"options": {"tags": ["a", "b"]}, "n": 1}),
        ({"unset": ["missing.thing"]}, SPEC),
        (
            {"spec": {"url": "y"}, "set": {"url": "z"}, "unset": ["n"]},
            {"url": "z", "options": SPEC["options"]},
        ),
    ],
)
def test_arguments_are_replaced_set_and_removed(
    driver: Driver, changes: dict[str, Any], after: dict[str, Any]
) -> None:
    task = dead(driver, spec=SPEC)

    done = resolve(driver, [task], "modify_and_retry", changes=changes)[task]

    assert done["verdict"] == "retried", done["why"]
    assert driver.claim_one().spec == after
    assert decisions(driver, task)[0]["changes"] == changes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"set": {"url.x": 1}}, "the spec has no path url.x"),
        ({"set": {"options.tags.5": 1}}, "the spec has no path options.tags.5"),
        ({"set": {"options.tags.x": 1}}, "the spec has no path options.tags.x"),
        ({"set": {"": 1}}, "the spec has no path"),
        ({"set": {"a..b": 1}}, "the spec has no path a..b"),
        ({"set": [1]}, "must be JSON objects"),
        ({"spec": "text"}, "must be JSON objects"),
        ({"unset": "url"}, "unset a list"),
        ({"unset": [1]}, "unset a list"),
        ({"queue": "nowhere"}, "there is no queue 'nowhere'"),
        ({"type": "nothing"}, "there is no task type 'nothing'"),
        ({"spec": {"big": "x" * 2_000_000}}, "bytes"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_and_changes_nothing(
    driver: Driver, changes: dict[str, Any], words: str
) -> None:
    task = dead(driver, spec=SPEC)

    with unchanged(driver):
        done = resolve(driver, [task], "modify_and_retry", changes=changes)[task]

    assert done["verdict"] == "refused"
    assert words in done["why"]


@pytest.mark.parametrize("value", [1000, "high", 1.5, [1]])
def test_a_value_that_no_task_can_have_is_refused_for_all(driver: Driver, value: object) -> None:
    task = dead(driver, spec=SPEC)

    with unchanged(driver), refused("TR001", "priority must be a whole number from 0 to 100"):
        resolve(driver, [task], "modify_and_retry", changes={"priority": value})


def test_a_bulk_edit_skips_letters_that_it_does_not_fit(driver: Driver) -> None:
    fits = dead(driver, spec={"options": {"depth": 3}})
    other = dead(driver, spec={"options": 7})

    found = resolve_where(
        driver,
        {"queue": "default"},
        "modify_and_retry",
        changes={"set": {"options.depth": 1}, "timeout_s": 60},
    )

    assert found == {"retried": 1, "refused": 1}
    again = driver.claim_one()
    assert (again.id, again.spec, again.timeout_s) == (fits, {"options": {"depth": 1}}, 60)
    left = driver.task(other)
    assert (left["status"], left["spec"]) == ("dead_lettered", {"options": 7})
    assert left["timeout_s"] != 60
    assert decisions(driver, other) == []


def test_the_new_round_has_its_attempts_and_the_old_ones_continue_counting(driver: Driver) -> None:
    task = dead(driver)

    resolve(driver, [task], "modify_and_retry", changes={"max_attempts": 2})

    again = driver.claim_one()
    assert (again.attempt, again.max_attempts) == (2, 3)
    assert [each["error"] for each in again.previous or []] == ["boom"]


def test_an_argument_that_is_edited_is_no_longer_taken_from_another_task(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"]})
    refs = Jsonb({"text": "a.output", "more.x": "a.output"})
    driver.rows("update treadle.tasks set inputs = %s where id = %s", refs, graph["b"])
    driver.complete(graph.claim("a"), "from a")
    driver.fail(driver.claim_one(), action="fail")

    resolve(driver, [graph["b"]], "modify_and_retry", changes={"set": {"text": "by hand"}})

    task = driver.task(graph["b"])
    assert (task["spec"]["text"], task["inputs"]) == ("by hand", {"more.x": "a.output"})
