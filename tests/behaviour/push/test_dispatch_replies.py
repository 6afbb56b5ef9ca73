"""Responses of agents are parsed defensively: unknown states, unusual ids, invalid JSON."""

import json
from typing import Any

import pytest

from treadle.services.dispatcher.agent import MAX_ID, Health, Reply, _object


def reply(body: object, status: int = 200) -> Reply:
    return Reply(status, "", body=_object(json.dumps(body).encode()))


@pytest.mark.requirement("Q8")
@pytest.mark.parametrize(
    ("body", "state"),
    [
        ({"state": "working"}, "working"),
        ({"state": "COMPLETED"}, "completed"),
        ({"status": "queued"}, "queued"),
        ({"state": "failed", "status": "working"}, "failed"),
        ({"state": "dreaming"}, "dreaming"),
        ({"state": "canceled"}, "cancelled"),
        ({"state": ""}, None),
        ({"state": {"a": 1}}, None),
        ({"state": None}, None),
        ({}, None),
        ([], None),
        ("completed", None),
    ],
)
def test_an_unknown_state_is_kept_as_text(body: object, state: str | None) -> None:
    assert reply(body).state == state
    assert reply(body, status=500).state is None


@pytest.mark.parametrize(
    ("body", "has_it"),
    [
        ({"state": "working"}, True),
        ({"state": "canceled"}, True),
        ({"state": "dreaming", "task_id": "t-1"}, True),
        ({"status": "ok"}, False),
        ({"task_id": "t-1"}, False),
    ],
)
def test_a_generic_ok_response_does_not_mean_that_the_agent_has_the_task(
    body: object, has_it: bool
) -> None:
    assert reply(body).has_it is has_it


@pytest.mark.requirement("Q5")
@pytest.mark.parametrize(
    ("body", "idle", "said"),
    [
        ({"state": "idle"}, True, "idle"),
        ({"status": "Idle"}, True, "Idle"),
        ({"state": "working", "status": "idle"}, False, "working"),
        ({"state": "working", "idle": True}, False, "working"),
        ({"status": "ok", "idle": True}, True, "ok"),
        ({"status": "ok"}, False, "ok"),
        ({"status": "ok", "idle": "yes"}, False, "ok"),
        ({"state": None, "status": "idle"}, True, "idle"),
        ({"idle": True}, True, None),
        ({}, False, None),
    ],
)
def test_an_agent_is_idle_by_its_state_or_by_its_idle_flag(
    body: object, idle: bool, said: str | None
) -> None:
    assert Health.of(reply(body)) == Health(idle=idle, said=said)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("task-1", "task-1"),
        (17, "17"),
        ("a\x00b", "a\u2400b"),
        ("\ud800", "?"),
        ("x" * MAX_ID, "x" * MAX_ID),
        ("x" * (MAX_ID + 1), None),
        ("", None),
        (True, None),
        (None, None),
        ({"id": 1}, None),
    ],
)
def test_an_id_is_a_short_text_or_a_number(value: Any, text: str | None) -> None:
    assert reply({"task_id": value}).text("task_id") == text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": "no room"}, "no room"),
        ({"error": {"message": "no room", "code": 7}}, "no room"),
        ({"detail": "no room"}, "no room"),
        ({"error": ["no", "room"]}, "['no', 'room']"),
        ({"error": "a\x00b"}, "a\u2400b"),
        ({"error": ""}, None),
        ({}, None),
    ],
)
def test_a_complaint_is_text(body: object, words: str | None) -> None:
    assert reply(body, status=500).error_message() == words


@pytest.mark.parametrize("name", [".", "..", "", None, True, "x" * 501])
def test_an_id_that_cannot_be_used_in_a_path_is_ignored(name: object) -> None:
    assert reply({"task_id": name}).task_id is None
    assert reply({"task_id": "../.."}).task_id == "../.."


def test_a_complaint_is_kept_short() -> None:
    said = reply({"error": "x" * 1_000_000}).error_message()

    assert said is not None
    assert len(said) < 2000


@pytest.mark.parametrize("raw", [b"", b"\xff\xfe", b"{", b"[" * 100_000, b"null", b'{"a": 1e9999'])
def test_a_malformed_response_counts_as_no_response(raw: bytes) -> None:
    assert _object(raw) is None
