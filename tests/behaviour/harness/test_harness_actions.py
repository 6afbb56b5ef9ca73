"""The action log: a decision is logged before the action, and acted on once."""

from datetime import timedelta
from uuid import uuid4

import pytest

from tests.drivers.engine import Driver
from tests.drivers.harness import (
    ME,
    OTHER,
    age_actions,
    allow,
    decided,
    expire,
    fetched,
    finish,
    interrupted,
    nudges,
    put,
    shown,
    status,
    take,
    taken,
)
from tests.drivers.races import flat, together
from tests.drivers.refusals import refused, unchanged


@pytest.mark.requirement("H6")
def test_a_decision_is_logged_when_it_is_taken_and_done_afterwards(driver: Driver) -> None:
    task_id = decided(driver, {"label": "bug"})

    action = taken(driver)
    assert (action["id"], action["decision"], action["tries"]) == (task_id, {"label": "bug"}, 1)
    log = "select status, decision from treadle.harness_actions"
    assert driver.rows(log) == [("executing", {"label": "bug"})]
    assert status(driver, task_id) == ("completed", "executing")

    assert finish(driver, action) == "done"
    assert status(driver, task_id) == ("done", "done")
    assert take(driver) == []


@pytest.mark.requirement("H6")
def test_of_many_that_take_at_once_one_gets_each_decision(driver: Driver) -> None:
    tasks = {decided(driver) for _ in range(6)}

    got = flat(together(driver, 4, lambda session, _: take(session)))

    assert sorted(each["id"] for each in got) == sorted(tasks)


def test_taking_that_is_asked_for_again_gives_the_same_actions(driver: Driver) -> None:
    first = decided(driver)
    token = uuid4()
    assert [each["id"] for each in take(driver, token)] == [first]
    decided(driver)

    again = take(driver, token)

    assert [(each["id"], each["tries"]) for each in again] == [(first, 1)]


def test_no_more_are_taken_than_were_asked_for(driver: Driver) -> None:
    due = decided(driver)
    assert finish(driver, taken(driver), "failed", "boom") == "waiting"
    age_actions(driver)
    rest = [decided(driver) for _ in range(3)]

    got = take(driver, limit=2)

    assert sorted(each["id"] for each in got) == sorted([due, rest[0]])


@pytest.mark.requirement("H6")
def test_a_decision_that_is_in_the_log_is_not_acted_on_again(driver: Driver) -> None:
    task_id = decided(driver)
    finish(driver, taken(driver))
    driver.rows("update treadle.results set consumed_at = null, consumed_token = null")

    assert take(driver) == []
    assert status(driver, task_id)[1] == "done"


def test_an_ending_that_is_sent_again_changes_nothing(driver: Driver) -> None:
    decided(driver)
    action = taken(driver)
    assert finish(driver, action) == "done"

    with unchanged(driver):
        assert finish(driver, action) == "done"
        assert finish(driver, action, "failed", "late") == "done"


def test_a_callback_that_fails_is_tried_again_later_and_three_times_at_most(
    driver: Driver,
) -> None:
    driver.set_clock(timedelta(0), stopped=True)
    task_id = decided(driver)
    pauses = []
    for tries in (1, 2):
        action = taken(driver)
        assert action["tries"] == tries
        assert finish(driver, action, "failed", "Boom: no\ntrace") == "waiting"
        row = shown(driver, task_id)
        assert row["action_error"] == "Boom: no\ntrace"
        assert take(driver) == [], "not yet"
        query = "select next_try_at - treadle.clock() from treadle.harness_actions"
        pauses.append(driver.value(query))
        age_actions(driver)
    assert timedelta(seconds=9) < pauses[0] < timedelta(seconds=11)
    assert timedelta(seconds=19) < pauses[1] < timedelta(seconds=21)

    assert finish(driver, taken(driver), "failed", "boom") == "failed"

    age_actions(driver)
    assert take(driver) == []
    assert status(driver, task_id) == ("completed", "failed")
    kinds = [event["kind"] for event in driver.events(task_id)]
    assert kinds[-3:] == ["harness.retry_scheduled", "harness.retry_scheduled", "harness.failed"]


@pytest.mark.requirement("H6")
def test_an_action_of_a_dead_harness_is_interrupted_and_not_repeated(driver: Driver) -> None:
    task_id = decided(driver)
    taken(driver)
    assert interrupted(driver) == []
    age_actions(driver)
    assert status(driver, task_id) == ("completed", "interrupted"), "also before anybody says so"

    assert interrupted(driver) == [task_id]
    assert interrupted(driver) == []

    assert take(driver) == []
    assert status(driver, task_id) == ("completed", "interrupted")
    assert [event["kind"] for event in driver.events(task_id)][-1] == "harness.interrupted"


def test_a_lease_that_is_renewed_lasts(driver: Driver) -> None:
    task_id = decided(driver)
    action = taken(driver)
    renew = "select * from treadle.renew_actions(array[%s], array[%s])"
    age_actions(driver, timedelta(seconds=55))
    assert driver.rows(renew, task_id, action["token"]) == [(task_id,)]
    age_actions(driver, timedelta(seconds=55))
    assert interrupted(driver) == []

    assert driver.rows(renew, task_id, uuid4()) == []
    age_actions(driver, timedelta(seconds=6))
    assert interrupted(driver) == [task_id]
    assert driver.rows(renew, task_id, action["token"]) == []


def test_a_harness_that_was_only_slow_may_still_report_its_action_as_done(driver: Driver) -> None:
    task_id = decided(driver)
    action = taken(driver)
    age_actions(driver)
    interrupted(driver)

    assert finish(driver, action) == "done"

    assert status(driver, task_id) == ("done", "done")


@pytest.mark.parametrize("how", ["failed", "interrupted", "waiting"])
def test_an_operator_has_an_action_executed_again(driver: Driver, how: str) -> None:
    task_id = decided(driver)
    first = taken(driver)
    assert finish(
        driver, first, how.replace("waiting", "failed"), "x", 3 if how == "waiting" else 1
    )
    assert status(driver, task_id) == ("completed", how)

    driver.rows("select treadle.rerun_action(%s, 'ann', 'not posted')", task_id)

    action = taken(driver)
    assert (action["id"], action["tries"]) == (task_id, 1)
    assert finish(driver, first) == "lost", "the first has no say any more"
    assert finish(driver, action) == "done"
    rerun = next(e for e in driver.events(task_id) if e["kind"] == "harness.rerun_requested")
    assert (rerun["actor"], rerun["data"]["note"]) == ("ann", "not posted")


def test_an_operator_leaves_an_action_as_it_is(driver: Driver) -> None:
    task_id = decided(driver)
    action = taken(driver)
    age_actions(driver)

    driver.rows("select treadle.skip_action(%s, 'ann')", task_id)

    assert status(driver, task_id) == ("done", "skipped")
    assert finish(driver, action) == "skipped"
    assert take(driver) == []


@pytest.mark.parametrize("call", ["rerun_action", "skip_action"])
def test_an_action_that_runs_or_is_done_is_not_decided_about(driver: Driver, call: str) -> None:
    task_id = decided(driver)
    with refused("TR201", "no action"):
        driver.rows(f"select treadle.{call}(%s)", task_id)
    action = taken(driver)
    with unchanged(driver), refused("TR102", "is executing"):
        driver.rows(f"select treadle.{call}(%s)", task_id)
    finish(driver, action)
    with unchanged(driver), refused("TR102", "is done"):
        driver.rows(f"select treadle.{call}(%s)", task_id)


@pytest.mark.requirement("H1")
def test_an_agent_is_nudged_once_for_each_time_a_task_becomes_pending(driver: Driver) -> None:
    allow(driver, private=True)
    task_id = put(driver)
    put(driver, url=OTHER)

    assert nudges(driver) == [(ME, task_id, True)]
    assert nudges(driver) == []
    task = fetched(driver)
    assert nudges(driver) == []
    expire(driver, task)

    assert nudges(driver, ME) == []
    assert nudges(driver) == [(ME, task_id, True)]


def test_an_agent_that_no_operator_allowed_is_not_nudged(driver: Driver) -> None:
    put(driver)
    fetched(driver)
    put(driver)
    assert nudges(driver) == []
    allow(driver)
    assert [each[0] for each in nudges(driver)] == [ME]

    driver.rows("select treadle.allow_nudges(%s, false)", ME)
    put(driver)

    assert nudges(driver) == []
    with unchanged(driver):
        driver.rows("select treadle.allow_nudges(%s, p_private => true, p_only_new => true)", ME)
