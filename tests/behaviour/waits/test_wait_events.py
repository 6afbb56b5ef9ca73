"""A task waits for an event by name and key; no event is missed or consumed twice."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.waits import answer, answers_of, claimed, emit, expect, suspend, wait_of
from treadle.models import Claim

pytestmark = pytest.mark.requirement("B2")


def waiting(driver: Driver, event: str = "paid", key: str = "") -> Claim:
    """A task that gave up its claim until the event comes."""
    claim = claimed(driver)
    row = expect(driver, claim, event, key=key)
    assert row["status"] == "open"
    assert suspend(driver, claim, row["wait_id"]) == "blocked"
    return claim


def test_the_event_wakes_the_task_and_its_payload_is_the_answer(driver: Driver) -> None:
    claim = waiting(driver, "paid", "4711")

    event_id = emit(driver, "paid", {"amount": 10}, "4711", actor="the bank")

    assert driver.state_of(claim.id) == "ready"
    found = answers_of(driver, claim.id)["ask"]
    assert (found["status"], found["value"]) == ("answered", {"amount": 10})
    assert found["by"] == "the bank"
    event = driver.events(claim.id)[-1]
    assert (event["kind"], event["data"]["event_id"]) == ("wait.answered", event_id)


def test_an_event_wakes_every_task_that_waits_for_it(driver: Driver) -> None:
    claims = [waiting(driver) for _ in range(20)]

    emit(driver, "paid", 1)

    assert {driver.state_of(claim.id) for claim in claims} == {"ready"}
    assert driver.value("select count(distinct event_id) from treadle.waits") == 1


def test_an_event_of_another_name_or_key_resumes_no_task(driver: Driver) -> None:
    claim = waiting(driver, "paid", "1")

    for event, key in (("paid", ""), ("paid", "2"), ("Paid", "1"), ("pai", "d1")):
        emit(driver, event, None, key)

    assert driver.state_of(claim.id) == "blocked"


def test_an_event_that_came_just_before_the_wait_is_taken_at_once(driver: Driver) -> None:
    claim = claimed(driver)
    emit(driver, "paid", "early")

    row = expect(driver, claim, "paid")

    assert (row["status"], row["answer"]["value"]) == ("answered", "early")
    assert answers_of(driver, claim.id)["ask"]["value"] == "early"
    assert suspend(driver, claim, row["wait_id"]) == "ready"


def test_an_event_that_came_before_the_task_was_made_is_not_for_it(driver: Driver) -> None:
    emit(driver, "paid", "long ago")

    claim = waiting(driver)

    emit(driver, "paid", "now")
    assert answers_of(driver, claim.id)["ask"]["value"] == "now"


def test_a_task_that_waits_twice_for_the_same_event_gets_two_events(driver: Driver) -> None:
    claim = claimed(driver)
    for payload in (1, 2, 3):
        emit(driver, "paid", payload)

    rows = [expect(driver, claim, "paid", name) for name in ("a", "b", "c", "d")]

    assert [row["status"] for row in rows] == ["answered"] * 3 + ["open"]
    assert [row["answer"]["value"] for row in rows[:3]] == [1, 2, 3]
    emit(driver, "paid", 4)
    assert answers_of(driver, claim.id)["d"]["value"] == 4


def test_two_open_waits_of_a_task_for_the_same_event_take_one_each(driver: Driver) -> None:
    claim = claimed(driver)
    rows = [expect(driver, claim, "paid", name) for name in ("first", "second")]
    assert suspend(driver, claim, *(row["wait_id"] for row in rows)) == "blocked"

    emit(driver, "paid", 1)
    assert driver.state_of(claim.id) == "blocked"
    emit(driver, "paid", 2)

    assert driver.state_of(claim.id) == "ready"
    found = answers_of(driver, claim.id)
    assert {name: each["value"] for name, each in found.items()} == {"first": 1, "second": 2}


def test_an_event_is_for_every_task_not_just_for_the_first(driver: Driver) -> None:
    first, second = claimed(driver), claimed(driver, "b")
    emit(driver, "paid", 1)

    for claim in (first, second):
        assert expect(driver, claim, "paid")["answer"]["value"] == 1


def test_the_same_name_for_another_event_is_refused(driver: Driver) -> None:
    claim = claimed(driver)
    row = expect(driver, claim, "paid", key="1")

    assert expect(driver, claim, "paid", key="1")["wait_id"] == row["wait_id"]
    for event, key in (("paid", "2"), ("sent", "1")):
        with unchanged(driver), refused("TR104", "already has a different"):
            expect(driver, claim, event, key=key)


def test_a_repeated_event_is_the_same_event_and_nothing_happens(driver: Driver) -> None:
    first = waiting(driver)
    event_id = emit(driver, "paid", 1, dedup_key="order 7")
    assert driver.claim_one("a").id == first.id
    second = waiting(driver, "paid", "x")

    with unchanged(driver):
        assert emit(driver, "paid", 2, dedup_key="order 7") == event_id
        assert emit(driver, "paid", 2, "x", dedup_key="order 7") == event_id

    assert driver.state_of(second.id) == "blocked"
    assert emit(driver, "sent", 1, dedup_key="order 7") > event_id


def test_an_event_is_stored_and_the_topic_has_the_latest(driver: Driver) -> None:
    emit(driver, "paid", 1)
    latest = emit(driver, "paid", {"n": 2}, dedup_key="d")

    [event] = driver.records("select * from treadle.events where id = %s", latest)
    assert (event["kind"], event["key"], event["data"]) == ("paid", "", {"n": 2})
    assert event["actor"] == "postgres"
    assert driver.value("select event_id from treadle.topics") == latest


def test_an_event_that_is_rolled_back_did_not_happen(driver: Driver) -> None:
    claim = waiting(driver)
    driver.rows("begin")
    emit(driver, "paid", 1)
    driver.rows("rollback")

    assert driver.state_of(claim.id) == "blocked"
    emit(driver, "paid", 2)
    assert answers_of(driver, claim.id)["ask"]["value"] == 2


def test_the_wait_of_a_task_that_has_ended_takes_no_event(driver: Driver) -> None:
    claim = waiting(driver)
    driver.cancel(claim.id)

    emit(driver, "paid", 1)

    assert driver.state_of(claim.id) == "cancelled"
    assert answers_of(driver, claim.id) == {}


def test_a_task_whose_memory_is_full_does_not_keep_the_event_from_the_others(
    driver: Driver,
) -> None:
    full, other = waiting(driver), waiting(driver)
    driver.rows(
        """
        insert into treadle.steps (task_id, name, seq, attempt)
        select %s, 'step ' || n, n, 1 from generate_series(1, 10000) as n
        """,
        full.id,
    )

    emit(driver, "paid", 1)

    assert (driver.state_of(full.id), driver.state_of(other.id)) == ("ready", "ready")
    again = next(claim for claim in driver.claim("a", 2) if claim.id == full.id)
    assert expect(driver, again, "paid")["answer"]["value"] == 1


def test_a_wait_for_an_event_cannot_be_answered_by_people(driver: Driver) -> None:
    row = expect(driver, claimed(driver), "paid", key="1")

    with unchanged(driver), refused("TR001", "is for the event 'paid'"):
        answer(driver, row["wait_id"], 1)
    assert wait_of(driver, row["wait_id"])["status"] == "open"


BAD = {
    "emit_event(null)": ("TR001", "name of an event"),
    "emit_event('')": ("TR001", "name of an event"),
    "emit_event(repeat('x', 201))": ("TR001", "name of an event"),
    "emit_event('task.completed')": ("TR001", "is reserved for built-in events"),
    "emit_event('dag.x')": ("TR001", "is reserved for built-in events"),
    "emit_event('wait.x')": ("TR001", "is reserved for built-in events"),
    "emit_event('queue.x')": ("TR001", "is reserved for built-in events"),
    "emit_event('agent.x')": ("TR001", "is reserved for built-in events"),
    "emit_event('x', null)": ("TR001", "payload is missing"),
    "emit_event('x', to_jsonb(repeat('x', 1048577)))": ("TR002", "payload has"),
    "emit_event('x', (repeat('[', 70) || repeat(']', 70))::jsonb)": ("TR001", "nested"),
    "emit_event('x', '1e10000')": ("TR001", "numbers"),
    "emit_event('x', '{}', null)": ("TR001", "key of an event"),
    "emit_event('x', '{}', repeat('x', 201))": ("TR001", "key of an event"),
    "emit_event('x', '{}', '', '')": ("TR001", "dedup_key must"),
    "emit_event('x', '{}', '', repeat('x', 201))": ("TR001", "dedup_key must"),
    "emit_event('x', p_actor => '')": ("TR001", "actor must"),
}


@pytest.mark.parametrize("call", BAD)
def test_an_event_that_makes_no_sense_is_refused_and_changes_nothing(
    driver: Driver, call: str
) -> None:
    with unchanged(driver), refused(*BAD[call]):
        driver.rows(f"select treadle.{call}")


def test_names_that_only_look_like_ours_are_fine(driver: Driver) -> None:
    for event in ("tasks.done", "task", "my.task.done", "Task.x"):
        assert emit(driver, event) > 0
