"""A question has a schema for its answers, and others are rejected."""

from typing import Any

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.waits import answer, answers_of, ask, blocked, claimed, open_wait

pytestmark = pytest.mark.requirement("B2")

Schema = dict[str, Any]

PERSON: Schema = {
    "type": "object",
    "title": "Person",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5, "description": "in short"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "mail": {
            "anyOf": [{"type": "string", "pattern": "@", "format": "email"}, {"type": "null"}]
        },
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 2},
    },
    "required": ["name"],
    "additionalProperties": False,
}

# A schema, a value, and what the refusal says; None when the value fits.
CASES: list[tuple[Schema, Any, str | None]] = [
    ({}, {"any": ["thing", None]}, None),
    ({"type": "string"}, "x", None),
    ({"type": "string"}, 1, "answer must be of type string, not 1"),
    ({"type": "integer"}, 1, None),
    ({"type": "integer"}, 1.0, None),
    ({"type": "integer"}, 1.5, "must be of type integer"),
    ({"type": "integer"}, True, "must be of type integer"),
    ({"type": "number"}, 1.5, None),
    ({"type": "number"}, 1, None),
    ({"type": "number"}, "1", "must be of type number"),
    ({"type": "boolean"}, False, None),
    ({"type": "null"}, None, None),
    ({"type": "null"}, 0, "must be of type null"),
    ({"type": ["string", "null"]}, None, None),
    ({"type": ["string", "null"]}, [], "of type string or null"),
    ({"enum": ["a", 1, None]}, None, None),
    ({"enum": ["a", 1]}, "b", r'one of \["a", 1\]'),
    ({"enum": [["a", "b"]]}, ["a"], "one of"),
    ({"const": {"a": 1}}, {"a": 1.0}, None),
    ({"const": None}, None, None),
    ({"const": "a"}, "b", 'be "a"'),
    ({"minimum": 2}, 1.9, "at least 2, not 1.9"),
    ({"minimum": 2}, "a text", None),
    ({"maximum": 2}, 2, None),
    ({"maximum": 2}, 2.1, "at most 2"),
    ({"minLength": 2}, "é", "at least 2 characters"),
    ({"maxLength": 1}, "é", None),
    ({"maxLength": 1}, "ab", "at most 1 characters"),
    ({"pattern": "^a+$"}, "aaa", None),
    ({"pattern": "^a+$"}, "aab", r"match \^a\+\$"),
    ({"pattern": "b"}, "abc", None),
    ({"minItems": 1}, [], "at least 1 items"),
    ({"maxItems": 1}, [1, 2], "at most 1 items"),
    ({"items": {"type": "string"}}, ["a", "b"], None),
    ({"items": {"type": "string"}}, ["a", 2], r"answer\[1\] must be of type string"),
    ({"items": False}, [], None),
    ({"items": False}, [1], r"answer\[0\] is not allowed"),
    ({"required": ["a"]}, {"a": None}, None),
    ({"required": ["a"]}, {"b": 1}, "answer.a is missing"),
    ({"required": ["a"]}, "no object", None),
    ({"properties": {"a": {"type": "string"}}}, {"b": 1}, None),
    ({"properties": {"a": {"type": "string"}}}, {"a": 1}, "answer.a must be of type string"),
    ({"properties": {"a": True}, "additionalProperties": False}, {"a": 1}, None),
    ({"additionalProperties": False}, {"b": 1}, "answer.b is not allowed"),
    ({"additionalProperties": {"type": "integer"}}, {"b": 1}, None),
    ({"additionalProperties": {"type": "integer"}}, {"b": "x"}, "answer.b must be of type integer"),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, None),
    ({"anyOf": [{"type": "string"}, {"minimum": 5}]}, 1, "type string, not 1, or .* at least 5"),
    ({"anyOf": [True], "type": "string"}, 1, "of type string"),
    (PERSON, {"name": "Ada", "age": 36, "mail": None, "tags": ["a"]}, None),
    (PERSON, {"name": "A"}, "answer.name must have at least 2"),
    (PERSON, {"name": "Ada", "age": -1}, "answer.age must be at least 0"),
    (PERSON, {"name": "Ada", "mail": "nowhere"}, "answer.mail must match @"),
    (PERSON, {"name": "Ada", "tags": ["a", "c"]}, r"answer.tags\[1\] must be one of"),
    (PERSON, {"name": "Ada", "agee": 1}, "answer.agee is not allowed"),
    (PERSON, [], "of type object"),
]


@pytest.mark.parametrize(("schema", "value", "words"), CASES)
def test_an_answer_has_to_fit_the_schema(
    driver: Driver, schema: Schema, value: object, words: str | None
) -> None:
    wait_id = ask(driver, claimed(driver), schema=schema)

    if words is None:
        assert answer(driver, wait_id, value) == "answered"
    else:
        with unchanged(driver), refused("TR001", words):
            answer(driver, wait_id, value)


BAD: list[tuple[Any, str]] = [
    ({"oneOf": []}, "schema has the keyword oneOf, which is not supported"),
    ({"properties": {"a": {"uniqueItems": True}}}, "schema.properties.a has the keyword unique"),
    ({"items": {"not": {}}}, "schema.items has the keyword not"),
    ({"anyOf": [{}, {"if": {}}]}, r"schema.anyOf\[1\] has the keyword if"),
    ({"additionalProperties": {"x": 1}}, "schema.additionalProperties has the keyword x"),
    ({"$defs": {"a": {}}}, r"schema has the keyword \$defs, which is not supported"),
    ({"items": {"$ref": "#/$defs/a"}}, r"schema.items has the keyword \$ref"),
    ({"type": "text"}, 'type cannot be "text"'),
    ({"type": []}, "type cannot be"),
    ({"type": 1}, "type cannot be 1"),
    ({"enum": []}, "enum cannot be"),
    ({"enum": "a"}, "enum cannot be"),
    ({"properties": []}, "properties cannot be"),
    ({"properties": {"a": 1}}, "schema.properties.a must be an object"),
    ({"required": "a"}, "required cannot be"),
    ({"required": [1]}, "required cannot be"),
    ({"required": [["a"]]}, "required cannot be"),
    ({"additionalProperties": 1}, "additionalProperties cannot be"),
    ({"items": [{}]}, "items cannot be"),
    ({"anyOf": []}, "anyOf cannot be"),
    ({"anyOf": [1]}, r"anyOf\[0\] must be an object"),
    ({"minimum": "1"}, "minimum cannot be"),
    ({"minItems": -1}, "minItems cannot be -1"),
    ({"maxLength": "1"}, "maxLength cannot be"),
    ({"pattern": "("}, "pattern cannot be"),
    ({"pattern": 1}, "pattern cannot be"),
]


@pytest.mark.parametrize(("schema", "words"), BAD)
def test_a_schema_that_would_not_be_checked_is_refused_when_asking(
    driver: Driver, schema: Schema, words: str
) -> None:
    claim = claimed(driver)

    with unchanged(driver), refused("TR001", words):
        open_wait(driver, claim, {"question": "Who?", "schema": schema})


def test_a_schema_that_is_too_large_is_refused(driver: Driver) -> None:
    claim = claimed(driver)

    with unchanged(driver), refused("TR002", "schema has"):
        open_wait(driver, claim, {"question": "Who?", "schema": {"title": "x" * 70_000}})


def test_people_who_give_the_same_structured_answer_agree(driver: Driver) -> None:
    claim, wait_id = blocked(driver, {"question": "Who?", "schema": PERSON, "approvers": 2})

    assert answer(driver, wait_id, {"name": "Ada", "age": 36}, "alice") == "recorded"
    assert answer(driver, wait_id, {"name": "Ada", "age": 37}, "bob") == "recorded"
    assert answer(driver, wait_id, {"age": 36, "name": "Ada"}, "carol") == "answered"

    assert answers_of(driver, claim.id)["ask"]["value"] == {"name": "Ada", "age": 36}
