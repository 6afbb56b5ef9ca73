"""A task asks, releases its claim, and resumes with the answer exactly once."""

from typing import Any

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.waits import (
    answer,
    answers_of,
    ask,
    blocked,
    claimed,
    kinds,
    open_wait,
    suspend,
    wait_of,
)

pytestmark = pytest.mark.requirement("B2")


def test_a_waiting_task_holds_no_claim_and_resumes_with_the_answer(driver: Driver) -> None:
    driver.agent("busy", max_concurrent_tasks=1)
    claim, wait_id = blocked(driver, agent="busy")

    task = driver.task(claim.id)
    assert task["status"] == "blocked"
    assert {task[each] for each in ("agent_id", "claim_token", "lease_until")} == {None}
    other = claimed(driver, "busy")
    assert driver.complete(other) == "completed"
    assert driver.claim("busy") == []

    assert answer(driver, wait_id, "approve", note="go") == "answered"

    again = driver.claim_one("busy")
    assert again.id == claim.id
    [step] = again.steps or []
    assert (step["name"], step["kind"]) == ("ask", "wait")
    assert step["output"].pop("at") is not None
    expected = {"status": "answered", "value": "approve", "by": "alice", "note": "go"}
    assert step["output"] == expected


def test_an_answer_that_comes_before_the_task_gives_up_its_claim_is_not_lost(
    driver: Driver,
) -> None:
    claim = claimed(driver)
    wait_id = ask(driver, claim)
    assert answer(driver, wait_id, "yes") == "answered"
    assert driver.state_of(claim.id) == "running"
    assert answers_of(driver, claim.id)["ask"]["value"] == "yes"

    assert suspend(driver, claim, wait_id) == "ready"

    assert [step["output"]["value"] for step in driver.claim_one("b").steps or []] == ["yes"]


def test_the_same_name_is_the_same_wait_with_its_answer_once_it_has_one(driver: Driver) -> None:
    claim = claimed(driver)
    wait_id = ask(driver, claim)
    assert ask(driver, claim, question="Asked in other words?") == wait_id
    answer(driver, wait_id, "yes")

    again = open_wait(driver, claim, {"question": "Ship it?"})

    assert (again["wait_id"], again["status"]) == (wait_id, "answered")
    assert again["answer"]["value"] == "yes"
    assert driver.value("select count(*) from treadle.waits") == 1
    assert kinds(driver, claim.id) == ["wait.opened", "wait.answered"]


def test_the_answer_of_another_is_refused_with_the_decision_and_changes_nothing(
    driver: Driver,
) -> None:
    _, wait_id = blocked(driver)
    answer(driver, wait_id, "approve")

    with unchanged(driver), refused("TR102", 'alice answered "approve"'):
        answer(driver, wait_id, "reject", "bob")
    with unchanged(driver), refused("TR102", 'alice answered "approve"'):
        answer(driver, wait_id, "approve", "bob")
    with unchanged(driver), refused("TR102", 'alice answered "approve"'):
        answer(driver, wait_id, "reject", "alice")


def test_a_repeated_answer_is_not_counted_twice(driver: Driver) -> None:
    _, wait_id = blocked(driver)
    assert answer(driver, wait_id, "approve") == "answered"

    with unchanged(driver):
        assert answer(driver, wait_id, "approve") == "already"


def test_two_questions_at_once_get_their_own_answers_and_the_task_waits_for_both(
    driver: Driver,
) -> None:
    claim = claimed(driver)
    first, second = ask(driver, claim, "first"), ask(driver, claim, "second")
    assert suspend(driver, claim, first, second) == "blocked"

    assert answer(driver, second, 2) == "answered"
    assert driver.state_of(claim.id) == "blocked"
    assert driver.claim("a") == []
    assert answer(driver, first, 1) == "answered"

    assert driver.state_of(claim.id) == "ready"
    found = answers_of(driver, claim.id)
    assert {name: each["value"] for name, each in found.items()} == {"first": 1, "second": 2}


def test_a_question_that_is_not_waited_for_does_not_hold_the_task_back(driver: Driver) -> None:
    claim = claimed(driver)
    later, now = ask(driver, claim, "later"), ask(driver, claim, "now")
    suspend(driver, claim, now)

    answer(driver, now, "yes")

    assert driver.state_of(claim.id) == "ready"
    again = driver.claim_one("a")
    assert answer(driver, later, "no") == "answered"
    assert driver.state_of(claim.id) == "running"
    assert suspend(driver, again, later) == "ready"


def test_a_task_that_waits_can_be_cancelled_and_its_question_is_closed(driver: Driver) -> None:
    claim, wait_id = blocked(driver)

    assert driver.cancel(claim.id) == ["cancelled"]

    assert wait_of(driver, wait_id)["status"] == "cancelled"
    with unchanged(driver), refused("TR102", "its task has ended"):
        answer(driver, wait_id, "approve")


@pytest.mark.parametrize("end", ["complete", "dead_letter"])
def test_the_questions_of_a_task_that_has_ended_are_closed(driver: Driver, end: str) -> None:
    claim = claimed(driver, max_attempts=1)
    wait_id = ask(driver, claim)

    if end == "complete":
        assert driver.complete(claim) == "completed"
    else:
        assert driver.fail(claim) == "dead_lettered"

    assert wait_of(driver, wait_id)["status"] == "cancelled"
    with refused("TR102", "its task has ended"):
        answer(driver, wait_id, "yes")


def test_a_task_that_fails_and_is_tried_again_still_has_its_question(driver: Driver) -> None:
    claim = claimed(driver, retry={"strategy": "immediate"})
    wait_id = ask(driver, claim)
    assert driver.fail(claim) == "ready"

    again = driver.claim_one("a")

    assert ask(driver, again) == wait_id


def test_a_retried_task_asks_again(driver: Driver) -> None:
    claim, closed = blocked(driver, {"question": "Ship it?", "approvers": 2})
    assert answer(driver, closed, "approve") == "recorded"
    driver.cancel(claim.id)
    driver.retry(claim.id)

    wait_id = ask(driver, driver.claim_one("a"), approvers=2)

    assert wait_id != closed
    assert answer(driver, wait_id, "approve", "bob") == "recorded"
    with refused("TR206"):
        answer(driver, closed, "approve", "carol")


def test_a_claim_that_was_superseded_opens_nothing(driver: Driver) -> None:
    claim = claimed(driver, retry={"strategy": "immediate"})
    driver.expire(claim)
    driver.claim_one("b")

    with unchanged(driver), refused("TR101"):
        ask(driver, claim)


def test_what_was_answered_for_a_task_is_answered_for_its_fork(driver: Driver) -> None:
    claim = claimed(driver)
    answer(driver, ask(driver, claim), "yes")
    query = "select treadle.save_step(%s, %s, 'after', '1')"
    driver.rows(query, claim.id, claim.token)
    driver.complete(claim)
    driver.rows("select treadle.fork_task(%s, 'after')", claim.id)

    again = open_wait(driver, driver.claim_one("a"), {"question": "Ship it?"})

    assert (again["wait_id"], again["status"]) == (None, "answered")
    assert again["answer"]["value"] == "yes"


def test_a_step_and_a_wait_cannot_have_the_same_name(driver: Driver) -> None:
    claim = claimed(driver)
    driver.rows("select treadle.save_step(%s, %s, 'ask', '1')", claim.id, claim.token)

    with unchanged(driver), refused("TR104", "already has a different"):
        ask(driver, claim)


def test_a_task_whose_memory_is_full_still_gets_its_answer(driver: Driver) -> None:
    claim, wait_id = blocked(driver)
    driver.rows(
        """
        insert into treadle.steps (task_id, name, seq, attempt)
        select %s, 'step ' || n, n, 1 from generate_series(1, 10000) as n
        """,
        claim.id,
    )

    assert answer(driver, wait_id, "approve") == "answered"

    again = open_wait(driver, driver.claim_one("a"), {"question": "Ship it?", "approvers": 1})
    assert again["answer"]["value"] == "approve"


def test_answers_are_recorded_with_actor_and_note(driver: Driver) -> None:
    claim, wait_id = blocked(driver)
    answer(driver, wait_id, "reject", "bob", "too early")

    events: list[Any] = [each for each in driver.events(claim.id) if "wait" in each["kind"]]

    assert [(each["kind"], each["actor"]) for each in events] == [
        ("wait.opened", "a"),
        ("wait.answered", "bob"),
    ]
    assert events[0]["data"]["question"] == "Ship it?"
    assert events[1]["data"]["wait_id"] == str(wait_id)
    assert (events[1]["data"]["value"], events[1]["data"]["note"]) == ("reject", "too early")
    [row] = driver.records("select * from treadle.wait_details")
    assert (row["status"], row["answer"], row["answered_by"]) == ("answered", "reject", "bob")
    assert (row["type"], row["queue"], row["answers"][0]["actor"]) == ("code", "default", "bob")
