"""An agent that rejected a task is skipped for a while; one that may have it is asked first."""

from uuid import uuid4

import pytest

from tests.drivers.dispatches import accept, agent, dispatched, end
from tests.drivers.engine import Driver
from tests.drivers.push import submit
from tests.drivers.refusals import unchanged

FAILED = ("busy", "refused", "error", "unreachable", "unsure", "lost", "silent")


def free(driver: Driver, rest_s: float = 1) -> list[str]:
    """The agents that may be sent something now."""
    query = "select agent_id from treadle.dispatch_targets(%s) where free"
    return [name for (name,) in driver.rows(query, rest_s)]


def sent(driver: Driver, name: str, rest_s: float = 1) -> bool:
    """Whether an agent is sent the next task."""
    query = "select again from treadle.dispatch_task(%s, %s, %s, p_cooldown_s => %s)"
    return bool(driver.rows(query, name, uuid4(), uuid4(), rest_s))


def pass_by(driver: Driver, seconds: float) -> None:
    driver.rows(
        "update treadle.dispatches set ended_at = ended_at - make_interval(secs => %s)", seconds
    )


@pytest.mark.requirement("Q5")
@pytest.mark.parametrize("outcome", FAILED)
def test_an_agent_that_rejected_a_prompt_is_skipped_for_a_while(
    driver: Driver, outcome: str
) -> None:
    agent(driver, "a1", "a2")
    submit(driver)
    submit(driver)
    end(driver, dispatched(driver), outcome)

    assert free(driver, 60) == ["a2"]

    with unchanged(driver):
        assert not sent(driver, "a1", 60)
    pass_by(driver, 61)
    assert free(driver, 60) == ["a1", "a2"]
    assert sent(driver, "a1", 60)


@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled"])
def test_an_agent_that_has_ended_a_task_is_not_skipped(driver: Driver, outcome: str) -> None:
    agent(driver, "a1")
    submit(driver)
    submit(driver)
    end(driver, dispatched(driver), "busy")
    again = dispatched(driver)
    accept(driver, again)

    end(driver, again, outcome)

    assert free(driver, 60) == ["a1"]
    assert sent(driver, "a1", 60)


@pytest.mark.requirement("Q9")
def test_a_submission_records_whether_its_agent_may_have_it(driver: Driver) -> None:
    agent(driver, "a1", "a2")
    submit(driver, attempts=9)
    said = []

    for name, outcome in (
        ("a1", "busy"), ("a1", "error"), ("a1", "unreachable"), ("a1", "unsure"), ("a2", "busy"),
        ("a1", "error"), ("a1", "busy"),
    ):  # fmt: skip
        one = dispatched(driver, name)
        query = "select again from treadle.renew_dispatches(%s)"
        said.append(driver.value(query, one.holder))
        end(driver, one, outcome)

    assert said == [False] * 5 + [True] * 2
