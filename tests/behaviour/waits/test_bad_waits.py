"""An invalid wait is rejected when it is opened, and nothing changes."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.waits import claimed, open_wait

Q = {"question": "Ship it?"}
BAD: list[tuple[Any, str, str]] = [
    ([], "TR001", "must be a JSON object"),
    ("Ship it?", "TR001", "must be a JSON object"),
    ({}, "TR001", "question must be a text"),
    ({"question": ""}, "TR001", "question must be a text"),
    ({"question": "  "}, "TR001", "question must be a text"),
    ({"question": 1}, "TR001", "question must be text, not 1"),
    ({"question": "x" * 10_001}, "TR001", "question must be a text"),
    ({**Q, "answer": 1}, "TR001", "a wait for an answer cannot have 'answer'"),
    ({**Q, "key": "x"}, "TR001", "a wait for an answer cannot have 'key'"),
    ({**Q, "event": "x"}, "TR001", "a wait for an event cannot have 'question'"),
    ({"event": "x", "approvers": 1}, "TR001", "a wait for an event cannot have 'approvers'"),
    ({**Q, "context": "x" * 1_048_577}, "TR002", "context has"),
    ({**Q, "options": "yes"}, "TR001", "options must be a list"),
    ({**Q, "options": []}, "TR001", "options must be 1 to 100"),
    ({**Q, "options": ["a", "a"]}, "TR001", "options must be 1 to 100 different"),
    ({**Q, "options": [["a"]]}, "TR001", "options must be 1 to 100"),
    ({**Q, "options": [{}]}, "TR001", "options must be 1 to 100"),
    ({**Q, "options": [None]}, "TR001", "options must be 1 to 100"),
    ({**Q, "options": list(range(101))}, "TR001", "options must be 1 to 100"),
    ({**Q, "options": ["x" * 10_000]}, "TR001", "options must be 1 to 100"),
    ({**Q, "options": ["a"], "schema": {}}, "TR001", "not be combined with a schema"),
    ({**Q, "schema": []}, "TR001", "schema must be a JSON schema"),
    ({**Q, "approvers": 0}, "TR001", "approvers must be 1 to 100, not 0"),
    ({**Q, "approvers": -1}, "TR001", "approvers must be 1 to 100"),
    ({**Q, "approvers": 101}, "TR001", "approvers must be 1 to 100"),
    ({**Q, "approvers": 1.5}, "TR001", "approvers must be 1 to 100"),
    ({**Q, "approvers": "2"}, "TR001", "approvers must be a number"),
    ({**Q, "approvers": 10**30}, "TR001", "approvers must be 1 to 100"),
    ({**Q, "expires_s": 0}, "TR001", "expires_s must be above 0"),
    ({**Q, "expires_s": -1}, "TR001", "expires_s must be above 0"),
    ({**Q, "expires_s": 1e300}, "TR001", "expires_s must be above 0"),
    ({**Q, "expires_s": "60"}, "TR001", "expires_s must be a number of seconds"),
    ({**Q, "expires_at": 60}, "TR001", "expires_at must be a time"),
    ({**Q, "expires_at": "soon"}, "TR001", "invalid input syntax"),
    ({**Q, "expires_at": "infinity"}, "TR001", "within ten years"),
    ({**Q, "expires_at": "9999-01-01"}, "TR001", "within ten years"),
    ({**Q, "expires_s": 1, "expires_at": "2030-01-01"}, "TR001", "not both"),
    ({**Q, "on_expiry": "explode"}, "TR001", "on_expiry must be deny"),
    ({**Q, "on_expiry": 1}, "TR001", "on_expiry must be text"),
    ({**Q, "on_expiry": "deny"}, "TR001", "only for approvals"),
    ({**Q, "options": ["reject"], "on_expiry": "deny"}, "TR001", "only for approvals"),
    ({**Q, "approvers": 1, "options": ["ok"], "on_expiry": "deny"}, "TR001", "option reject"),
    ({**Q, "approvers": 1, "schema": {}, "on_expiry": "deny"}, "TR001", "option reject"),
    ({"event": "x", "on_expiry": "deny"}, "TR001", "only for approvals"),
    ({**Q, "on_expiry": "default"}, "TR001", "default must be given"),
    ({**Q, "default": "yes"}, "TR001", "default must not be given unless"),
    (
        {**Q, "options": ["a"], "on_expiry": "default", "default": "b"},
        "TR001",
        r'default "b" is not one of \["a"\]',
    ),
    (
        {**Q, "options": ["a"], "on_expiry": "default", "default": None},
        "TR001",
        "default null is not one of",
    ),
    (
        {**Q, "schema": {"type": "string"}, "on_expiry": "default", "default": 1},
        "TR001",
        "default must be of type string",
    ),
    ({"event": ""}, "TR001", "name of an event"),
    ({"event": 1}, "TR001", "event must be text"),
    ({"event": "x" * 201}, "TR001", "name of an event"),
    ({"event": "task.completed"}, "TR001", "is reserved for built-in events"),
    ({"event": "x", "key": 1}, "TR001", "key must be text"),
    ({"event": "x", "key": "x" * 201}, "TR001", "key of an event"),
]


@pytest.mark.parametrize(("wait", "sqlstate", "words"), BAD)
def test_a_bad_wait_is_refused_and_nothing_changes(
    driver: Driver, wait: object, sqlstate: str, words: str
) -> None:
    claim = claimed(driver)

    with unchanged(driver), refused(sqlstate, words):
        open_wait(driver, claim, wait)


@pytest.mark.parametrize("name", ["", None, "x" * 201])
def test_a_wait_needs_a_name(driver: Driver, name: str | None) -> None:
    claim = claimed(driver)
    query = "select treadle.open_wait(%s, %s, %s, %s)"

    with unchanged(driver), refused("TR001", "name of 1 to 200 bytes"):
        driver.rows(query, claim.id, claim.token, name, Jsonb(Q))


@pytest.mark.parametrize("wait", [None, "null"])
def test_a_wait_needs_to_be_for_something(driver: Driver, wait: str | None) -> None:
    claim = claimed(driver)

    with unchanged(driver), refused("TR001", "must be a JSON object"):
        driver.rows("select treadle.open_wait(%s, %s, 'x', %s)", claim.id, claim.token, wait)


def test_a_null_argument_counts_as_absent(driver: Driver) -> None:
    names = ("context", "options", "schema", "approvers", "expires_s", "expires_at", "on_expiry")
    given = {**Q, **dict.fromkeys(names), "default": None, "event": None, "key": None}

    assert open_wait(driver, claimed(driver), given)["status"] == "open"
