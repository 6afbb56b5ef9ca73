"""Approvals: every decision resumes the task, and the requested number of people must agree."""

from uuid import UUID

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.roles import UNKNOWN_ID, become
from tests.drivers.waits import answer, answers_of, ask, blocked, claimed, wait_of

pytestmark = pytest.mark.requirement("B2")

TWO = {"question": "Ship it?", "approvers": 2}


@pytest.mark.parametrize("decision", ["approve", "reject", "revise"])
def test_every_decision_wakes_the_task(driver: Driver, decision: str) -> None:
    claim, wait_id = blocked(driver)

    assert answer(driver, wait_id, decision, note="because") == "answered"

    assert driver.state_of(claim.id) == "ready"
    found = answers_of(driver, claim.id)["ask"]
    assert (found["status"], found["value"], found["note"]) == ("answered", decision, "because")


def test_the_same_person_counts_once(driver: Driver) -> None:
    claim, wait_id = blocked(driver, TWO)
    assert answer(driver, wait_id, "approve") == "recorded"

    with unchanged(driver):
        assert answer(driver, wait_id, "approve") == "already"
    assert driver.state_of(claim.id) == "blocked"

    assert answer(driver, wait_id, "approve", "bob") == "answered"
    assert driver.state_of(claim.id) == "ready"


def test_a_repeated_approval_after_the_decision_returns_already(driver: Driver) -> None:
    _, wait_id = blocked(driver, TWO)
    answer(driver, wait_id, "approve", "alice")
    answer(driver, wait_id, "approve", "bob")

    with unchanged(driver):
        assert answer(driver, wait_id, "approve", "alice") == "already"
        assert answer(driver, wait_id, "approve", "bob") == "already"
    with unchanged(driver), refused("TR102", 'bob answered "approve"'):
        answer(driver, wait_id, "approve", "carol")


def test_a_repeated_approval_of_a_rejected_wait_reports_the_rejection(driver: Driver) -> None:
    _, wait_id = blocked(driver, TWO)
    answer(driver, wait_id, "approve", "alice")
    answer(driver, wait_id, "reject", "bob")

    with unchanged(driver), refused("TR102", 'bob answered "reject"'):
        answer(driver, wait_id, "approve", "alice")


@pytest.mark.parametrize("decision", ["reject", "revise"])
def test_a_single_rejection_decides_at_once(driver: Driver, decision: str) -> None:
    claim, wait_id = blocked(driver, {"question": "Ship it?", "approvers": 5})
    answer(driver, wait_id, "approve", "alice")

    assert answer(driver, wait_id, decision, "bob") == "answered"

    assert driver.state_of(claim.id) == "ready"
    assert wait_of(driver, wait_id)["answer"] == decision


def test_two_people_who_disagree_do_not_decide(driver: Driver) -> None:
    claim, wait_id = blocked(driver, {**TWO, "options": ["red", "green", "blue"]})

    assert answer(driver, wait_id, "red", "alice") == "recorded"
    assert answer(driver, wait_id, "green", "bob") == "recorded"
    assert driver.state_of(claim.id) == "blocked"
    assert answer(driver, wait_id, "green", "carol") == "answered"

    assert answers_of(driver, claim.id)["ask"]["value"] == "green"
    [row] = driver.records("select * from treadle.wait_details")
    assert [(each["actor"], each["value"]) for each in row["answers"]] == [
        ("alice", "red"),
        ("bob", "green"),
        ("carol", "green"),
    ]


def test_until_it_is_decided_a_person_may_change_their_mind(driver: Driver) -> None:
    _, wait_id = blocked(driver, {**TWO, "options": ["red", "green"]})
    answer(driver, wait_id, "red", "alice")
    assert answer(driver, wait_id, "green", "alice") == "recorded"

    assert answer(driver, wait_id, "red", "bob") == "recorded"
    assert answer(driver, wait_id, "green", "carol") == "answered"


def test_every_vote_is_written_down(driver: Driver) -> None:
    claim, wait_id = blocked(driver, TWO)
    answer(driver, wait_id, "approve", "alice")
    answer(driver, wait_id, "approve", "bob")

    votes = [each for each in driver.events(claim.id) if each["kind"] == "wait.answered"]

    assert [(each["actor"], each["data"]["decided"]) for each in votes] == [
        ("alice", False),
        ("bob", True),
    ]


def test_an_answer_that_is_not_an_option_is_rejected_and_changes_nothing(driver: Driver) -> None:
    _, wait_id = blocked(driver)

    for value in ("maybe", "Approve", "", None, 1, ["approve"], {"value": "approve"}):
        with unchanged(driver), refused("TR001", r'not one of \["approve", "reject", "revise"\]'):
            answer(driver, wait_id, value)


@pytest.mark.parametrize(
    ("value", "actor", "note", "sqlstate", "words"),
    [
        ("yes", "", None, "TR001", "actor must have"),
        ("yes", " ", None, "TR001", "actor must have"),
        ("yes", "x" * 201, None, "TR001", "actor must have"),
        ("yes", "bob", "x" * 10_001, "TR001", "note has 10001 characters"),
        ("x" * 1_048_577, "bob", None, "TR002", "bytes"),
    ],
)
def test_a_bad_answer_is_refused_and_changes_nothing(
    driver: Driver, value: object, actor: str, note: str | None, sqlstate: str, words: str
) -> None:
    wait_id = ask(driver, claimed(driver))

    with unchanged(driver), refused(sqlstate, words):
        answer(driver, wait_id, value, actor, note)


def test_an_answer_without_a_value_is_refused(driver: Driver) -> None:
    wait_id = ask(driver, claimed(driver))

    with unchanged(driver), refused("TR001", "answer is missing"):
        driver.rows("select treadle.answer_wait(%s, null)", wait_id)
    with unchanged(driver), refused("TR001", "nested"):
        driver.rows(
            "select treadle.answer_wait(%s, (repeat('[', 70) || repeat(']', 70))::jsonb)", wait_id
        )
    with unchanged(driver), refused("TR001", "numbers"):
        driver.rows("select treadle.answer_wait(%s, '1e10000')", wait_id)


def test_a_wait_that_does_not_exist_is_not_found(driver: Driver) -> None:
    with refused("TR206", "there is no wait"):
        answer(driver, UUID(UNKNOWN_ID), "yes")
    with refused("TR206", "there is no wait null"):
        driver.rows("select treadle.answer_wait(null, '1')")


def test_an_answer_without_an_actor_is_recorded_for_the_login(driver: Driver) -> None:
    wait_id = ask(driver, claimed(driver))

    driver.rows("select treadle.answer_wait(%s, '1')", wait_id)

    assert wait_of(driver, wait_id)["answered_by"] == "postgres"


CALLS = {
    "open_wait": f"open_wait('{UNKNOWN_ID}', '{UNKNOWN_ID}', 'x', '{{\"question\": \"x\"}}')",
    "answer_wait": f"answer_wait('{UNKNOWN_ID}', '1')",
    "emit_event": "emit_event('x')",
    "expire_waits": "expire_waits()",
}


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("treadle_producer", {"answer_wait", "emit_event"}),
        ("treadle_worker", {"open_wait", "emit_event", "expire_waits"}),
        ("treadle_operator", set(CALLS)),
        ("treadle_observer", set()),
    ],
)
def test_each_role_has_its_part(driver: Driver, role: str, allowed: set[str]) -> None:
    session = become(driver, role)
    answers = {"open_wait": "TR101", "answer_wait": "TR206"}

    for name, call in CALLS.items():
        if name in allowed and name not in answers:
            session.rows(f"select * from treadle.{call}")
            continue
        with refused(answers[name] if name in allowed else "42501"):
            session.rows(f"select * from treadle.{call}")
    for internal in ("close_waits('{}')", "lock_topic('x', '')", "check_schema('{}')"):
        with refused("42501"):
            session.rows(f"select treadle.{internal}")
    if role in ("treadle_observer", "treadle_operator"):
        session.rows("select * from treadle.wait_details")
    else:
        with refused("42501"):
            session.rows("select * from treadle.wait_details")
