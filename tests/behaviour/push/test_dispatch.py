"""What SQL decides about submissions to agents: the order, and the meaning of each outcome."""

from uuid import uuid4

import pytest

from tests.drivers.dispatches import (
    URL,
    accept,
    age,
    agent,
    dispatch,
    dispatched,
    end,
    give_up,
    row,
)
from tests.drivers.engine import Driver
from tests.drivers.push import entry, line, submit
from tests.drivers.refusals import refused, unchanged

COUNTED = ("error", "unreachable", "unsure", "lost", "silent")


@pytest.mark.requirement("Q5")
def test_an_agent_gets_the_next_prompt_and_has_one_at_a_time(driver: Driver) -> None:
    agent(driver, "a1", "a2")
    for prompt in ("one", "two", "three"):
        submit(driver, prompt)

    first = dispatched(driver)

    assert entry(driver, first.task_id)["prompt"] == "one"
    assert entry(driver, first.task_id)["state"] == "dispatching"
    with unchanged(driver):
        assert dispatch(driver) is None
    assert line(driver) == ["two", "three"]
    assert entry(driver, dispatched(driver, "a2").task_id)["prompt"] == "two"
    assert end(driver, first, "completed") == "completed"
    assert entry(driver, dispatched(driver).task_id)["prompt"] == "three"


def test_two_dispatchers_do_not_send_to_one_agent_at_the_same_moment(driver: Driver) -> None:
    agent(driver, "a1")
    submit(driver)
    submit(driver)
    # Somebody registers under its name as one that takes any number.
    driver.agent("a1", queues=["push"])
    driver.rows("select treadle.mark_idle('{push}')")
    other = driver.another()
    other.rows("begin")
    first = dispatch(other)
    driver.rows("set statement_timeout = '300ms'")

    with refused("57014"):
        dispatch(driver)
    other.rows("commit")
    driver.rows("reset statement_timeout")

    assert first is not None
    assert dispatch(driver) is None


@pytest.mark.requirement("Q9")
def test_a_repeated_call_returns_the_same_submission(driver: Driver) -> None:
    agent(driver, "a1")
    submit(driver)
    submit(driver)
    holder, token = uuid4(), uuid4()

    first = dispatch(driver, "a1", holder, token)

    assert dispatch(driver, "a1", holder, token) == first
    assert driver.value("select count(*) from treadle.dispatches") == 1


def test_prompts_are_sent_only_to_agents_that_an_operator_added(driver: Driver) -> None:
    submit(driver)
    driver.agent("w", queues=["push"], url="http://169.254.169.254", type="push")

    assert dispatch(driver, "w") is None
    assert dispatch(driver, "nobody") is None
    assert driver.rows("select * from treadle.dispatch_targets()") == []
    agent(driver, "a1")
    driver.agent("a1", queues=["push"], url="http://169.254.169.254")
    assert row(driver, dispatched(driver))["agent_url"] == URL


@pytest.mark.parametrize("status", ["draining", "offline"])
def test_an_agent_that_should_not_work_is_not_asked(driver: Driver, status: str) -> None:
    agent(driver, "a1", "a2")
    submit(driver)

    driver.rows("select treadle.set_agent_status('a1', %s)", status)

    assert driver.rows("select agent_id from treadle.dispatch_targets()") == [("a2",)]
    assert dispatch(driver) is None


def test_a_silent_agent_is_checked_and_its_response_reactivates_it(driver: Driver) -> None:
    agent(driver, "a1")
    driver.rows("update treadle.agents set heartbeat_at = heartbeat_at - interval '1 hour'")
    driver.rows("select treadle.mark_agents_offline()")
    assert driver.rows("select agent_id from treadle.dispatch_targets()") == [("a1",)]

    driver.rows("select treadle.record_push_heartbeats('{a1,b}')")

    assert driver.rows("select status, silent from treadle.agents where id = 'a1'") == [
        ("active", False)
    ]
    # An agent that was pruned while offline is accepted too; an unknown one is not.
    driver.rows("delete from treadle.agents where id in ('a1', 'b')")
    driver.rows("select treadle.record_push_heartbeats('{a1,b}')")
    assert driver.rows("select id, type from treadle.agents where id in ('a1', 'b')") == [
        ("a1", "push")
    ]


@pytest.mark.requirement("Q7")
def test_busy_goes_to_the_end_of_the_queue_and_counts_no_attempt(driver: Driver) -> None:
    agent(driver, "a1")
    for prompt in ("one", "two", "three"):
        submit(driver, prompt)
    first = dispatched(driver)

    assert end(driver, first, "busy", "agent busy") == "ready"

    assert line(driver) == ["two", "three", "one"]
    assert entry(driver, first.task_id)["attempts"] == 0
    submit(driver, "four")
    assert line(driver) == ["two", "three", "one", "four"]
    assert row(driver, first)["outcome"] == "busy"


@pytest.mark.requirement("Q7")
@pytest.mark.parametrize("outcome", COUNTED)
def test_a_failure_of_the_agent_requeues_the_prompt_in_place_up_to_three_attempts(
    driver: Driver, outcome: str
) -> None:
    agent(driver, "a1", "a2", "a3")
    submit(driver, "one")
    submit(driver, "two")

    for name, state in (("a1", "ready"), ("a2", "ready"), ("a3", "dead_lettered")):
        sent = dispatched(driver, name)
        assert entry(driver, sent.task_id)["prompt"] == "one"
        assert end(driver, sent, outcome, "no luck") == state

    found = entry(driver, sent.task_id)
    assert (found["state"], found["attempts"], found["last_error"]) == ("failed", 3, "no luck")


@pytest.mark.requirement("Q7")
@pytest.mark.parametrize("outcome", ["error", "lost"])
def test_agents_use_up_all_the_attempts_that_there_are(driver: Driver, outcome: str) -> None:
    agent(driver, "a1", "a2")
    submit(driver, attempts=5)

    states = [
        end(driver, dispatched(driver, name), outcome) for name in ("a1", "a2", "a1", "a2", "a1")
    ]

    assert states == ["ready"] * 4 + ["dead_lettered"]


@pytest.mark.requirement("Q7")
@pytest.mark.parametrize(
    ("outcome", "state"),
    [("refused", "failed"), ("failed", "failed"), ("cancelled", "cancelled")],
)
def test_what_the_agent_decides_is_final(driver: Driver, outcome: str, state: str) -> None:
    agent(driver, "a1")
    submit(driver)
    sent = dispatched(driver)
    accept(driver, sent)

    end(driver, sent, outcome, "as it says")

    assert entry(driver, sent.task_id)["state"] == state
    assert (row(driver, sent)["outcome"], row(driver, sent)["holder"]) == (outcome, None)


@pytest.mark.requirement("Q6")
def test_an_agent_that_took_it_works_and_its_result_is_stored(driver: Driver) -> None:
    agent(driver, "a1")
    submit(driver)
    sent = dispatched(driver)

    assert accept(driver, sent, "t-7") == "ok"

    found = entry(driver, sent.task_id)
    assert (found["state"], found["task_id"], found["agent_url"]) == ("working", "t-7", URL)
    assert end(driver, sent, "completed", output={"answer": 42}) == "completed"
    assert driver.task(sent.task_id)["output"] == {"answer": 42}


def test_an_unknown_outcome_is_rejected(driver: Driver) -> None:
    agent(driver, "a1")
    submit(driver)
    sent = dispatched(driver)

    with unchanged(driver), refused("TR001", "cannot end as"):
        end(driver, sent, "whatever")


@pytest.mark.requirement("Q9")
def test_a_submission_is_given_up_when_its_agent_is_silent_for_too_long(driver: Driver) -> None:
    agent(driver, "a1")
    submit(driver)
    sent = dispatched(driver)
    age(driver, sent, 59)
    assert give_up(driver, sent) is None
    age(driver, sent, 2)

    assert give_up(driver, sent) == "ready"

    assert row(driver, sent)["outcome"] == "unsure"
    again = dispatched(driver)
    accept(driver, again)
    age(driver, again, 599)
    assert give_up(driver, again) is None
    age(driver, again, 2)
    assert give_up(driver, again) == "ready"
    assert row(driver, again)["outcome"] == "silent"


@pytest.mark.requirement("Q9")
def test_a_submission_that_may_have_arrived_is_repeated_with_the_same_key(driver: Driver) -> None:
    agent(driver, "a1", "a2")
    submit(driver)
    numbers = []

    for name, outcome in (
        ("a1", "unsure"), ("a1", "silent"), ("a2", "error"), ("a1", "error"), ("a1", "unreachable"),
        ("a2", "busy"), ("a1", "busy"), ("a1", "lost"), ("a1", "busy"),
    ):  # fmt: skip
        sent = dispatched(driver, name)
        numbers.append(sent.number)
        driver.rows("update treadle.tasks set attempt = 1")
        end(driver, sent, outcome)

    assert numbers == [1, 1, 2, 1, 1, 2, 1, 3, 4]
