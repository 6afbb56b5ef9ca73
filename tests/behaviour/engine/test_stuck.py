"""The view stuck lists tasks that should progress and do not, with the reason."""

from datetime import timedelta

import pytest

from tests.drivers.budgets import set_budget
from tests.drivers.dags import shaped
from tests.drivers.engine import Driver
from tests.drivers.gates import define_gate
from tests.drivers.keys import limit


def reasons(driver: Driver) -> list[str]:
    """Why tasks are stuck."""
    return [row[0] for row in driver.rows("select reason from treadle.stuck order by 1")]


def silence(driver: Driver) -> None:
    """Move the last heartbeats of all agents into the past."""
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

    [reason] = reasons(driver)
    assert reason.startswith("queue default has been paused by ")
    assert reason.endswith(": provider is down")


def test_tasks_are_stuck_when_no_agent_is_alive(driver: Driver) -> None:
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


def test_tasks_are_stuck_when_no_agent_handles_their_type(driver: Driver) -> None:
    for name in ("a", "b"):
        driver.agent(name, task_types=["code"])
    driver.enqueue(type="test")
    driver.enqueue(type="code")

    assert reasons(driver) == ["no live agent of the queue handles type test"]


def test_tasks_are_stuck_when_no_agent_has_the_capabilities(driver: Driver) -> None:
    driver.agent("a", capabilities=["git"])
    driver.enqueue(capabilities=["git", "gpu"])

    assert reasons(driver) == ["no live agent of the queue has capability gpu"]


def test_tasks_are_stuck_when_they_are_assigned_to_an_offline_agent(driver: Driver) -> None:
    driver.enqueue(assigned_agent="c")

    assert reasons(driver) == ["assigned to agent c, which is not registered"]


def test_a_claim_that_ran_out_is_stuck_while_no_reaper_runs(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.age_claim(claim.id, timedelta(seconds=95))
    assert reasons(driver) == [], "the reaper has a moment"

    driver.age_claim(claim.id, timedelta(seconds=11))

    assert reasons(driver) == ["the claim of agent a has expired, but no reaper has ended it"]
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
    assert reason.endswith(", but no promoter has made it ready")
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

    assert (row["reason"], row["tasks"]) == ("it depends on a, which was dead-lettered: boom", 2)
    driver.retry(graph["a"], "cancel")
    assert reasons(driver) == []


def test_a_question_that_expired_is_stuck_while_no_promoter_runs(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    opened = 'select treadle.open_wait(%s, %s, \'q\', \'{"question": "?", "expires_s": 60}\')'
    driver.rows(opened, claim.id, claim.token)
    driver.rows("update treadle.waits set expires_at = clock_timestamp() - interval '16 s'")

    [reason] = reasons(driver)

    assert reason.endswith(" and no promoter has processed it")
    driver.rows("select treadle.expire_waits()")
    assert reasons(driver) == []


def test_tasks_of_a_paused_type_are_stuck(driver: Driver) -> None:
    driver.enqueue()
    driver.rows("select treadle.pause_type('code', 'a bug')")

    [reason] = reasons(driver)

    assert reason.startswith("type code has been paused by ")


def test_tasks_behind_an_open_breaker_are_stuck(driver: Driver) -> None:
    driver.enqueue()
    driver.rows("select treadle.trip_breaker('code', 60, 'a look')")

    [reason] = reasons(driver)

    assert reason.startswith("breaker of type code is open until ")


@pytest.mark.parametrize(("seconds", "stuck"), [(60, 0), (3600, 1)])
def test_tasks_behind_a_gate_that_is_closed_for_long_are_stuck(
    driver: Driver, seconds: int, stuck: int
) -> None:
    driver.rows("select treadle.define_gate('api')")
    driver.enqueue(gates=["api"])
    driver.rows("select treadle.close_gate('api', %s)", seconds)

    found = reasons(driver)

    assert len(found) == stuck
    assert all(each.startswith("gate api is closed until ") for each in found)


def test_a_task_that_needs_more_than_a_gate_allows_is_stuck(driver: Driver) -> None:
    define_gate(driver, "api", unit="tokens", limit=10, per_s=60)
    driver.enqueue(gates=["api"], max_tokens=11)
    assert driver.claim("a") == []

    assert reasons(driver) == ["the task needs more than the whole limit of api"]


def test_tasks_without_a_budget_left_are_stuck(driver: Driver) -> None:
    set_budget(driver, "type", "code", 1)
    task = driver.enqueue(max_cost_usd=2)
    assert driver.claim("a") == []

    [row] = driver.records("select * from treadle.stuck")

    assert row["reason"] == "the budget of type code has $1.00 left of $1.00"
    assert (row["status"], row["tasks"], row["example_id"]) == ("pending", 1, task)


def test_tasks_are_stuck_when_free_slots_are_not_assigned(driver: Driver) -> None:
    limit(driver, "k", 1)
    driver.enqueue_batch([{}] * 3, concurrency_key="k")
    driver.complete(driver.claim_one("a"))
    assert reasons(driver) == [], "there is a moment for it"

    driver.rows("update treadle.admissions set at = at - interval '1 min'")

    [row] = driver.records("select * from treadle.stuck")
    assert row["reason"].endswith(", but no promoter has checked")
    assert row["tasks"] == 2
    driver.rows("select treadle.admit_waiting_tasks()")
    assert reasons(driver) == []
