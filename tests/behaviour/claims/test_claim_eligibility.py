"""An agent gets only tasks that it is eligible for: gates act on lanes."""

from typing import Any

import pytest

from tests.drivers.engine import Driver

pytestmark = pytest.mark.requirement("F8")


def test_an_agent_needs_every_capability_that_a_task_asks_for(driver: Driver) -> None:
    driver.agent("coder", capabilities=["git", "python"])
    driver.enqueue(capabilities=["git", "rust"])
    wanted = driver.enqueue(capabilities=["python", "git"])

    assert [claim.id for claim in driver.claim("coder", 10)] == [wanted]


def test_an_agent_without_capabilities_gets_only_tasks_that_need_none(driver: Driver) -> None:
    driver.enqueue(capabilities=["git"])
    wanted = driver.enqueue()

    assert [claim.id for claim in driver.claim("a", 10)] == [wanted]


def test_the_order_and_repeats_of_capabilities_do_not_matter(driver: Driver) -> None:
    driver.enqueue(capabilities=["git", "python"])
    driver.enqueue(capabilities=["python", "git", "git"])

    assert driver.value("select count(*) from treadle.lanes") == 1


def test_an_agent_that_registers_again_with_more_capabilities_gets_more(driver: Driver) -> None:
    driver.enqueue(capabilities=["git"])
    assert driver.claim("a") == []

    driver.agent("a", capabilities=["git"])

    assert len(driver.claim("a")) == 1


def test_a_task_assigned_to_an_agent_goes_to_that_agent_only(driver: Driver) -> None:
    driver.enqueue(assigned_agent="b")

    assert driver.claim("a") == []
    assert len(driver.claim("b")) == 1


def test_nothing_is_claimed_from_a_paused_queue_until_it_is_resumed(driver: Driver) -> None:
    driver.enqueue()
    running = driver.claim_one("a")
    waiting = driver.enqueue()

    driver.rows("select treadle.pause_queue('default', 'provider is down', 'me')")

    assert driver.claim("a") == []
    assert driver.complete(running) == "completed"
    assert driver.state_of(driver.enqueue()) == "ready"
    driver.rows("select treadle.resume_queue('default', 'me')")
    assert driver.claim_one("a").id == waiting
    kinds = driver.rows("select kind, actor from treadle.events where queue = 'default'")
    assert kinds == [("queue.paused", "me"), ("queue.resumed", "me")]


def test_pausing_one_queue_leaves_the_others_alone(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('other', '{}')")
    driver.enqueue(queue="default")
    wanted = driver.enqueue(queue="other")
    driver.rows("select treadle.pause_queue('default')")

    claims = driver.claim("a", 10, queues=["default", "other"])

    assert [claim.id for claim in claims] == [wanted]


@pytest.mark.requirement("F9")
@pytest.mark.parametrize("status", ["draining", "offline"])
def test_an_agent_that_is_not_active_gets_nothing(driver: Driver, status: str) -> None:
    driver.enqueue()
    driver.rows("select treadle.set_agent_status('a', %s)", status)

    assert driver.claim("a") == []
    driver.rows("select treadle.set_agent_status('a', 'active')")
    assert len(driver.claim("a")) == 1


@pytest.mark.requirement("F9")
def test_an_agent_that_drains_may_finish_what_it_has(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.rows("select treadle.set_agent_status('a', 'draining')")

    assert driver.heartbeat(claim) == "ok"
    assert driver.complete(claim) == "completed"


@pytest.mark.parametrize("options", [{"hold": True}, {"delay_s": 60}])
def test_a_task_that_is_held_back_or_not_due_is_not_claimed(
    driver: Driver, options: dict[str, Any]
) -> None:
    driver.enqueue(**options)

    assert driver.claim("a") == []
