"""The view stuck says what should move and does not, and why; it is empty when all is well."""

from datetime import timedelta

import pytest

from tests.behaviour.driver import Driver
from tests.behaviour.graphs import shaped


def reasons(driver: Driver) -> list[str]:
    """Why tasks are stuck."""
    return [row[0] for row in driver.rows("select reason from treadle.stuck order by 1")]


def silence(driver: Driver) -> None:
    """Nobody has been heard of for a while."""
    driver.rows("update treadle.agents set heartbeat_at = heartbeat_at - interval '1 hour'")


def test_nothing_is_stuck_while_agents_work(driver: Driver) -> None:
    driver.enqueue_batch([{}] * 3)
    driver.claim_one("a", start=False)
    driver.claim_one("b")
    driver.enqueue(hold=True)
    driver.enqueue(delay_s=60)
    driver.enqueue(priority=1)
    driver.fail(driver.claim_one("a"))

    assert reasons(driver) == []


def test_tasks_of_a_paused_queue_are_stuck(driver: Driver) -> None:
    driver.enqueue()
    driver.rows("select treadle.pause_queue('default', 'provider is down')")

    assert reasons(driver) == ["queue default is paused: provider is down"]


def test_tasks_are_stuck_when_no_agent_lives(driver: Driver) -> None:
    driver.enqueue()
    silence(driver)

    assert reasons(driver) == ["no live agent serves queue default"]


def test_tasks_are_stuck_when_no_agent_serves_their_queue(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('other', '{}')")
    driver.enqueue(queue="other")

    assert reasons(driver) == ["no live agent serves queue other"]


def test_tasks_are_stuck_when_every_agent_of_the_queue_drains(driver: Driver) -> None:
    driver.enqueue()
    for name in ("a", "b"):
        driver.rows("select treadle.set_agent_status(%s, 'draining')", name)

    assert reasons(driver) == ["no live agent serves queue default"]


def test_tasks_are_stuck_when_nobody_handles_their_type(driver: Driver) -> None:
    for name in ("a", "b"):
        driver.agent(name, task_types=["code"])
    driver.enqueue(type="test")
    driver.enqueue(type="code")

    assert reasons(driver) == ["no live agent of the queue handles type test"]


def test_tasks_are_stuck_when_nobody_has_the_capabilities(driver: Driver) -> None:
    driver.agent("a", capabilities=["git"])
    driver.enqueue(capabilities=["git", "gpu"])

    assert reasons(driver) == ["no live agent of the queue has all of {git,gpu}"]


def test_tasks_are_stuck_when_they_are_assigned_to_an_agent_that_is_gone(driver: Driver) -> None:
    driver.enqueue(assigned_agent="c")

    assert reasons(driver) == ["assigned to agent c, which is not active"]


def test_a_claim_that_ran_out_is_stuck_while_no_reaper_runs(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.age_claim(claim.id, timedelta(seconds=95))
    assert reasons(driver) == [], "the reaper has a moment"

    driver.age_claim(claim.id, timedelta(seconds=11))

    assert reasons(driver) == ["the claim of a ran out and no reaper took it back"]
    driver.reap()
    assert reasons(driver) == []


@pytest.mark.parametrize("kind", ["retry", "time to run"])
def test_what_is_due_is_stuck_while_no_promoter_runs(driver: Driver, kind: str) -> None:
    if kind == "retry":
        driver.enqueue()
        driver.fail(driver.claim_one("a"))
    else:
        driver.enqueue(delay_s=60)
    due = "clock_timestamp() - interval '16 s'"
    column = "retry_at" if kind == "retry" else "run_at"
    driver.rows(f"update treadle.tasks set {column} = {due}")

    [reason] = reasons(driver)

    assert reason.startswith("due since ")
    assert reason.endswith(" and no promoter made it ready")
    driver.promote()
    assert reasons(driver) == []


def test_tasks_that_wait_for_the_same_thing_are_one_row_with_an_example(driver: Driver) -> None:
    made = driver.enqueue_batch([{}] * 5)
    silence(driver)

    [row] = driver.records("select * from treadle.stuck")

    assert (row["tasks"], row["queue"], row["type"]) == (5, "default", "code")
    assert (row["status"], row["example_id"]) == ("ready", made[0].id)
    assert row["since"] == driver.task(made[0].id)["created_at"]


def test_what_depends_on_a_dead_letter_is_stuck_until_somebody_decides(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"], "c": ["a"]})
    graph.give_up("a")

    [row] = driver.records("select * from treadle.stuck")

    assert (row["reason"], row["tasks"]) == ("it depends on a, which gave up: boom", 2)
    driver.retry(graph["a"], "cancel")
    assert reasons(driver) == []


def test_a_question_that_expired_is_stuck_while_no_promoter_runs(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    opened = 'select treadle.open_wait(%s, %s, \'q\', \'{"question": "?", "expires_s": 60}\')'
    driver.rows(opened, claim.id, claim.token)
    driver.rows("update treadle.waits set expires_at = clock_timestamp() - interval '16 s'")

    [reason] = reasons(driver)

    assert reason.endswith(" and no promoter noticed")
    driver.rows("select treadle.expire_waits()")
    assert reasons(driver) == []
