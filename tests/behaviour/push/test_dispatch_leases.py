"""A submission has one follower at a time, by its lease; one that lost it can change nothing."""

from datetime import timedelta
from uuid import uuid4

import pytest

from tests.drivers.dispatches import (
    accept,
    age,
    agent,
    dispatch,
    dispatched,
    end,
    give_up,
    renew,
    row,
    take,
)
from tests.drivers.engine import Driver
from tests.drivers.push import entry, submit
from tests.drivers.refusals import refused, unchanged


@pytest.mark.requirement("Q9")
def test_a_lease_that_ran_out_goes_to_the_next_and_the_first_can_change_nothing(
    driver: Driver,
) -> None:
    agent(driver, "a1")
    submit(driver)
    sent, other = dispatched(driver), uuid4()
    age(driver, sent, 60)

    assert take(driver, other) == [sent.token]

    with unchanged(driver):
        assert take(driver, uuid4()) == []
        assert accept(driver, sent) == "taken"
        assert end(driver, sent, "completed") is None
        assert end(driver, sent, "busy") is None
        assert give_up(driver, sent, unsure_s=0) is None
        assert renew(driver, sent.holder) == []
        assert driver.value("select treadle.release_dispatches(%s)", sent.holder) == 0
    sent.holder = other
    assert accept(driver, sent) == "ok"
    assert end(driver, sent, "completed") == "completed"


@pytest.mark.requirement("Q9")
def test_a_renewed_submission_is_not_taken_over(driver: Driver) -> None:
    agent(driver, "a1")
    submit(driver)
    sent = dispatched(driver)
    age(driver, sent, 14)
    assert take(driver, uuid4()) == []

    assert renew(driver, sent.holder) == [(sent.token, "ok")]

    age(driver, sent, 14)
    assert take(driver, uuid4()) == []


def test_two_that_take_at_the_same_moment_do_not_share_a_submission(driver: Driver) -> None:
    agent(driver, "a1")
    submit(driver)
    age(driver, dispatched(driver), 60)
    other = driver.another()
    other.rows("begin")
    assert len(take(other, uuid4())) == 1

    second = take(driver, uuid4())
    other.rows("commit")

    assert (second, take(driver, uuid4())) == ([], [])


@pytest.mark.requirement("Q9")
def test_a_dispatcher_that_takes_over_can_ask_before_it_gives_up(driver: Driver) -> None:
    agent(driver, "a1")
    submit(driver)
    sent, other = dispatched(driver), uuid4()
    age(driver, sent, 3600)
    take(driver, other)
    sent.holder = other

    assert give_up(driver, sent) is None


def test_an_agent_that_answers_is_not_given_up(driver: Driver) -> None:
    agent(driver, "a1")
    submit(driver)
    sent = dispatched(driver)
    accept(driver, sent)
    age(driver, sent, 700)

    renew(driver, sent.holder, sent.token)

    assert give_up(driver, sent) is None
    age(driver, sent, 700)
    renew(driver, sent.holder, uuid4())
    assert give_up(driver, sent) == "ready"


@pytest.mark.requirement("Q9")
@pytest.mark.parametrize("accepted", [False, True])
def test_the_reaper_does_not_reap_an_uncertain_submission_for_a_day(
    driver: Driver, accepted: bool
) -> None:
    agent(driver, "a1")
    submit(driver)
    sent = dispatched(driver)
    if accepted:
        accept(driver, sent)
    driver.age_claim(sent.task_id, timedelta(hours=23))
    assert driver.reap() == []

    renew(driver, sent.holder)
    driver.age_claim(sent.task_id, timedelta(hours=23))
    assert driver.reap() == []
    driver.age_claim(sent.task_id, timedelta(hours=2))

    assert [each.id for each in driver.reap()] == [sent.task_id]
    assert renew(driver, sent.holder) == [(sent.token, "lost")]


@pytest.mark.requirement("Q9")
def test_a_dispatcher_that_ends_leaves_its_submissions_at_once(driver: Driver) -> None:
    agent(driver, "a1", "a2")
    submit(driver)
    submit(driver)
    first, second = dispatched(driver), dispatched(driver, "a2")

    assert driver.value("select treadle.release_dispatches(%s)", first.holder) == 1

    assert take(driver, uuid4()) == [first.token]
    assert renew(driver, second.holder) == [(second.token, "ok")]


@pytest.mark.requirement("Q4")
@pytest.mark.parametrize("accepted", [False, True])
def test_a_cancellation_is_reported_to_the_follower_and_stays(
    driver: Driver, accepted: bool
) -> None:
    agent(driver, "a1")
    submit(driver)
    sent = dispatched(driver)
    if accepted:
        accept(driver, sent)

    driver.cancel(sent.task_id)

    assert renew(driver, sent.holder) == [(sent.token, "cancelled")]
    assert accept(driver, sent) == "cancelled"
    assert end(driver, sent, "completed", output="late") == "cancelled"
    assert entry(driver, sent.task_id)["state"] == "cancelled"
    assert (row(driver, sent)["outcome"], driver.task(sent.task_id)["output"]) == (
        "cancelled",
        None,
    )


def test_a_late_result_is_accepted_if_no_other_claim_was_made(driver: Driver) -> None:
    agent(driver, "a1", "a2")
    submit(driver)
    sent = dispatched(driver)
    accept(driver, sent)
    driver.age_claim(sent.task_id, timedelta(days=2))
    driver.reap()
    driver.rows("update treadle.tasks set retry_at = treadle.clock() where status = 'retrying'")
    driver.promote()

    other = dispatched(driver, "a2")

    assert end(driver, sent, "completed", output="late") == "claimed"
    assert row(driver, sent)["outcome"] == "superseded"
    assert accept(driver, other) == "ok"
    assert end(driver, other, "completed", output="right") == "completed"
    assert driver.task(sent.task_id)["output"] == "right"


def test_submissions_go_with_their_tasks(driver: Driver) -> None:
    agent(driver, "a1")
    submit(driver)
    sent = dispatched(driver)
    end(driver, sent, "completed")

    driver.rows("select treadle.prune_rows(array[%s::uuid])", sent.task_id)

    assert driver.rows("select * from treadle.push_dispatch_log") == []
    assert end(driver, sent, "completed") is None


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("", "https://example.org"),
        ("a b", "https://example.org"),
        ("a1", "ftp://example.org"),
        ("a1", "https://user:pass@example.org"),
        ("a1", "https://example.org/?a=1"),
        ("a1", "https://"),
        ("a1", "https://example.org/\n"),
        ("a", "https://example.org"),
    ],
)
def test_an_agent_that_could_not_be_sent_to_is_refused(driver: Driver, name: str, url: str) -> None:
    with unchanged(driver), refused("TR001"):
        driver.rows("select treadle.define_push_agent(%s, %s)", name, url)


def test_a_removed_agent_finishes_its_task_and_gets_no_other(
    driver: Driver,
) -> None:
    agent(driver, "a1")
    submit(driver)
    submit(driver)
    sent = dispatched(driver)

    driver.rows("select treadle.remove_push_agent('a1')")

    assert accept(driver, sent) == "ok"
    assert end(driver, sent, "completed") == "completed"
    assert dispatch(driver) is None
    with refused("TR204"):
        driver.rows("select treadle.remove_push_agent('a1')")
