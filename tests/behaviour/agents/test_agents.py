"""Agents register with their capabilities; silent agents are marked offline."""

from datetime import timedelta
from typing import Any

import pytest

from tests.drivers.engine import Driver

pytestmark = pytest.mark.requirement("F9")


def agent(driver: Driver, name: str) -> dict[str, Any]:
    """The row of an agent."""
    [row] = driver.records("select * from treadle.agents where id = %s", name)
    return row


def silence(driver: Driver, name: str, by: timedelta) -> None:
    """Move the last heartbeat of an agent into the past."""
    query = "update treadle.agents set heartbeat_at = heartbeat_at - %s where id = %s"
    driver.rows(query, by, name)


def test_an_agent_registers_with_all_that_it_can_do(driver: Driver) -> None:
    driver.agent(
        "coder-1",
        type="coder",
        capabilities=["git", "python"],
        models=["large", "small"],
        queues=["default"],
        task_types=["code"],
        max_concurrent_tasks=2,
        budget_usd=45,
        heartbeat_s=10.0,
        claim_ttl_s=20.0,
        url="https://agent.example.org",
    )

    row = agent(driver, "coder-1")
    assert (row["type"], row["status"]) == ("coder", "active")
    assert (row["capabilities"], row["models"]) == (["git", "python"], ["large", "small"])
    assert row["max_concurrent_tasks"] == 2
    query = "select budget_usd from treadle.agent_load where agent_id = 'coder-1'"
    assert driver.value(query) == 45
    assert (row["heartbeat_s"], row["claim_ttl_s"]) == (10, 20)


def test_an_agent_that_registers_again_is_active_with_its_new_profile(driver: Driver) -> None:
    driver.agent("coder-1", capabilities=["git"])
    driver.rows("select treadle.set_agent_status('coder-1', 'offline')")

    driver.agent("coder-1", capabilities=["python"])

    row = agent(driver, "coder-1")
    assert (row["status"], row["capabilities"]) == ("active", ["python"])


def test_a_heartbeat_returns_the_status_of_the_agent(driver: Driver) -> None:
    assert driver.value("select treadle.heartbeat_agent('a')") == "active"

    driver.rows("select treadle.set_agent_status('a', 'draining')")

    assert driver.value("select treadle.heartbeat_agent('a')") == "draining"


def test_an_agent_without_a_heartbeat_for_three_intervals_is_offline(driver: Driver) -> None:
    driver.agent("quick", heartbeat_s=10.0)
    silence(driver, "quick", timedelta(seconds=20))
    assert driver.rows("select * from treadle.mark_agents_offline()") == []

    silence(driver, "quick", timedelta(seconds=11))

    assert driver.rows("select * from treadle.mark_agents_offline()") == [("quick",)]
    assert agent(driver, "quick")["status"] == "offline"
    assert driver.rows("select * from treadle.mark_agents_offline()") == []
    events = driver.rows("select kind, actor from treadle.events")
    assert events == [("agent.timed_out", "quick")]


def test_a_silent_agent_is_active_again_after_its_next_heartbeat(driver: Driver) -> None:
    silence(driver, "a", timedelta(hours=1))
    driver.rows("select * from treadle.mark_agents_offline()")

    assert driver.value("select treadle.heartbeat_agent('a')") == "active"


@pytest.mark.parametrize("status", ["draining", "offline"])
def test_an_agent_that_an_operator_stopped_stays_stopped_despite_heartbeats(
    driver: Driver, status: str
) -> None:
    driver.rows("select treadle.set_agent_status('a', %s)", status)
    silence(driver, "a", timedelta(hours=1))

    assert driver.value("select treadle.heartbeat_agent('a')") == status


def test_a_heartbeat_does_not_activate_a_drained_agent_that_was_silent(
    driver: Driver,
) -> None:
    driver.rows("select treadle.set_agent_status('a', 'draining')")
    silence(driver, "a", timedelta(hours=1))
    driver.rows("select * from treadle.mark_agents_offline()")

    assert driver.value("select treadle.heartbeat_agent('a')") != "active"


def test_a_status_that_a_person_sets_is_an_event(driver: Driver) -> None:
    driver.rows("select treadle.set_agent_status('a', 'draining')")

    [event] = driver.records("select * from treadle.events")
    assert (event["kind"], event["actor"]) == ("agent.drain_started", "a")
    assert event["data"] == {"by": "postgres"}
