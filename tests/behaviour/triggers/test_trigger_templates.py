"""Templates are checked when they are defined; an event only supplies values."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.drivers import triggers
from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.triggers import define, emit, fire_one

HERE = {"$event": "data.x"}


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"task": {"type": "code", "nonsense": 1}}, "TR001", "unknown option 'nonsense'"),
        ({"task": {"type": "cod"}}, "TR203", "cod"),
        ({"task": {"type": "code", "queue": "nowhere"}}, "TR202", "nowhere"),
        ({"task": {"type": "code", "priority": 500}}, "TR001", "priority must be"),
        ({"task": {"type": "code", "max_attempts": 0}}, "TR001", "max_attempts"),
        ({"task": {"type": "code", "spec": 7}}, "TR001", "spec"),
        ({"task": "code"}, "TR001", "one object, task or dag"),
        ({"task": {}, "dag": {}}, "TR001", "either a task or a dag"),
        ({}, "TR001", "either a task or a dag"),
        ({"dag": {"name": "x"}}, "TR001", "a dag needs tasks"),
        ({"dag": {"name": "x", "tasks": []}}, "TR001", "at least one"),
        ({"dag": {"name": "x", "tasks": [{"type": "code", "after": ["b"]}]}}, "TR001", "b"),
        (
            {"dag": {"name": "x", "tasks": [
                {"name": "a", "type": "code", "after": ["b"]},
                {"name": "b", "type": "code", "after": ["a"]},
            ]}},
            "TR103", "a",
        ),
        ({"task": {"type": HERE}}, "TR001", "an event may set only spec, title"),
        ({"task": {"type": "code", "queue": HERE}}, "TR001", "an event may set only"),
        ({"task": {"type": "code", "validation": {"kind": HERE}}}, "TR001", "event may set only"),
        ({"task": {"type": "code", "retry": [HERE]}}, "TR001", "an event may set only"),
        (
            {"dag": {"name": "x", "tasks": [{"type": "code", "inputs": {"a": HERE}}]}},
            "TR001", "an event may set only",
        ),
        ({"dag": {"name": "x", "tasks": HERE}}, "TR001", "a dag needs tasks"),
        ({"dag": {"defaults": HERE, "tasks": [{"type": "code"}]}}, "TR001", "may set only"),
        ({"task": {"type": "code", "spec": {"a": {"$event": "dta.x"}}}}, "TR001", "no 'dta'"),
        ({"task": {"type": "code", "spec": {"a": {"$event": 7}}}}, "TR001", "a placeholder"),
        ({"task": {"type": "code", "spec": {"a": {"$event": "data..x"}}}}, "TR001", "names joined"),
        ({"task": {"type": "code", "spec": {"a": {**HERE, "b": 1}}}}, "TR001", "a placeholder"),
        ({"task": {"type": "code"}, "filter": [1]}, "TR001", "filter must be"),
        ({"task": {"type": "code"}, "max_depth": 0}, "TR001", "max_depth"),
        ({"task": {"type": "code"}, "max_depth": "x"}, "TR001", "max_depth"),
        ({"task": {"type": "code"}, "max_depth": 99999}, "TR001", "max_depth"),
        ({"task": {"type": "code"}, "max_per_hour": 0}, "TR001", "max_per_hour"),
        ({"task": {"type": "code"}, "colour": "red"}, "TR001", "unknown setting"),
        ({"task": {"type": "code"}, "on": ""}, "TR001", "needs an event kind"),
        ({"task": {"type": "code"}, "on": "trigger.fired"}, "TR001", "cannot fire on events"),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, dict) else "",
)  # fmt: skip
def test_what_cannot_work_is_refused_at_once(
    driver: Driver, settings: dict[str, Any], code: str, words: str
) -> None:
    with unchanged(driver), refused(code, words), driver.conn.transaction():
        driver.rows("select treadle.define_trigger('t', %s)", Jsonb({"on": "paid", **settings}))


@pytest.mark.parametrize("name", ["", "a b", "x" * 101, None])
def test_a_name_must_be_usable(driver: Driver, name: str | None) -> None:
    with refused("TR001", "its name must be"):
        driver.rows(
            """select treadle.define_trigger(%s, '{"on": "x", "task": {"type": "code"}}')""", name
        )


def test_checking_a_template_leaves_nothing_behind(driver: Driver) -> None:
    define(driver, dag={"name": HERE, "tasks": [{"type": "code", "gates": ["type:test"]}]})

    for table in ("tasks", "dags", "dependencies"):
        assert driver.value(f"select count(*) from treadle.{table}") == 0
    assert triggers.kinds(driver, "dag.%") == []


def test_values_of_an_event_are_never_looked_at_again(driver: Driver) -> None:
    define(
        driver,
        task={
            "type": "code",
            "title": {"$event": "data.title"},
            "spec": {"x": {"$event": "data.x"}, "text": "$event: data.x"},
        },
    )
    hostile = {"$event": "data.secret", "type": "test", "queue": "other"}
    emit(driver, data={"x": hostile, "secret": "s", "title": "'; drop table treadle.tasks; --"})

    task = fire_one(driver).task_id

    assert task is not None
    row = driver.task(task)
    assert row["spec"] == {"x": hostile, "text": "$event: data.x"}
    assert row["title"] == "'; drop table treadle.tasks; --"
    assert (row["type"], row["queue"]) == ("code", "default")


def test_a_default_replaces_a_missing_value_but_not_null(driver: Driver) -> None:
    define(
        driver,
        task={
            "type": "code",
            "priority": {"$event": "data.urgency"},
            "spec": {
                "a": {"$event": "data.a", "default": [1]},
                "b": {"$event": "data.b", "default": 2},
                "c": {"$event": "data.list.1"},
            },
        },
    )
    emit(driver, data={"b": None, "urgency": None, "list": ["x", "y"]})

    task = fire_one(driver).task_id

    assert task is not None
    assert driver.task(task)["spec"] == {"a": [1], "b": None, "c": "y"}
    assert driver.task(task)["priority"] == 50


def test_a_dry_run_shows_what_would_be_created_or_why_not(driver: Driver) -> None:
    define(
        driver,
        filter={"key": "a"},
        task={"type": "code", "spec": {"x": HERE}},
    )
    event, other = emit(driver, data={"x": 7}, key="a"), emit(driver, "lost", key="a")
    empty, beside = emit(driver, key="a"), emit(driver, data={"x": 7}, key="b")

    def tried(number: int | None, sample: object = None) -> tuple[bool, Any, Any]:
        found = driver.value(
            "select treadle.test_trigger('t', %s, %s)",
            number,
            None if sample is None else Jsonb(sample),
        )
        return found["fires"], found["problem"], found["makes"]

    before = driver.contents()
    made = {"task": {"type": "code", "spec": {"x": 7}}}
    assert tried(event) == (True, None, made)
    assert tried(other) == (False, "it fires on paid", None)
    assert tried(empty) == (False, "the event has no data.x", None)
    assert tried(beside) == (False, "the event does not match the filter", None)
    assert tried(None, {"kind": "paid", "key": "a", "data": {"x": 7}}) == (True, None, made)
    assert driver.contents() == before
    with refused("TR001", "there is no event 999"):
        tried(999)
    with refused("TR001", "pass the id of an event, or a sample"):
        tried(None)
    with refused("TR212", "there is no trigger 'nobody'"):
        driver.rows("select treadle.test_trigger('nobody', 1)")
