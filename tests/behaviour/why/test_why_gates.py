"""`why` reports what blocks a task: pauses, breakers, gates, budgets."""

from datetime import timedelta

import pytest

from tests.drivers import gates
from tests.drivers.budgets import dag, pay, question, review, set_budget
from tests.drivers.engine import Driver
from tests.drivers.why import only, reason, reasons

pytestmark = pytest.mark.requirement("B3")


def moment(driver: Driver, query: str) -> str:
    """A moment as sentences have it."""
    return f"{driver.value(query):%Y-%m-%d %H:%M:%S} UTC"


def test_why_reports_a_paused_queue_with_actor_and_reason(driver: Driver) -> None:
    task = driver.enqueue()
    driver.rows("select treadle.pause_queue('default', 'provider is down')")

    row = only(driver, task)

    since = moment(driver, "select paused_at from treadle.queues where name = 'default'")
    assert row["reason"] == "queue_paused"
    assert row["sentence"] == (
        f"queue default has been paused by postgres since {since}: provider is down"
    )
    assert (row["detail"]["queue"], row["detail"]["message"]) == ("default", "provider is down")
    driver.rows("select treadle.resume_queue('default')")
    assert reasons(driver, task) == ["claimable"]


def test_why_reports_a_paused_type_with_actor_and_reason(driver: Driver) -> None:
    task = driver.enqueue()
    driver.rows("select treadle.pause_type('code', 'a bug')")

    row = only(driver, task)

    assert row["reason"] == "type_paused"
    assert row["sentence"].startswith("type code has been paused by ")
    assert row["sentence"].endswith(": a bug")
    assert row["detail"]["type"] == "code"


def test_why_reports_an_open_breaker_with_its_cause(driver: Driver) -> None:
    gates.opened(driver)
    task = driver.enqueue()

    row = only(driver, task)

    until = moment(driver, "select probe_at from treadle.breakers")
    assert row["reason"] == "breaker_open"
    assert row["sentence"] == f"breaker of type code is open until {until} after 5 failures: boom"
    assert row["until"] == driver.value("select probe_at from treadle.breakers")
    assert (row["detail"]["type"], row["detail"]["failures"]) == ("code", 5)


def test_why_names_the_actor_of_a_tripped_breaker(driver: Driver) -> None:
    task = driver.enqueue()
    driver.rows("select treadle.trip_breaker('code', 60, 'a look', 'ada')")

    row = only(driver, task)

    assert row["reason"] == "breaker_open"
    assert row["sentence"].endswith(", opened by ada: a look")


def test_the_probe_of_a_breaker_is_claimable_and_the_next_one_is_not(driver: Driver) -> None:
    gates.opened(driver)
    first, second = driver.enqueue(), driver.enqueue()
    gates.probe_due(driver)

    assert reasons(driver, first) == ["breaker_probe", "claimable"]
    assert reason(driver, first, "claimable")["detail"]["probe"] is True
    assert reasons(driver, second) == ["breaker_probe"]
    assert driver.claim_one("a").id == first

    row = only(driver, second)
    assert row["reason"] == "breaker_half_open"
    assert row["sentence"] == "breaker of type code is half-open: the probe runs on agent a"
    assert row["detail"]["probe_task"] == str(first)


def test_a_task_is_not_claimable_while_a_probe_goes_first(driver: Driver) -> None:
    gates.opened(driver)
    driver.enqueue(priority=90)
    other = driver.enqueue(type="test", priority=1)
    gates.probe_due(driver)

    assert reasons(driver, other) == ["position"]
    assert driver.claim_one("a").type == "code"


def test_why_reports_a_closed_gate_with_its_end_and_reason(driver: Driver) -> None:
    gates.define_gate(driver, "anthropic")
    task = driver.enqueue(gates=["anthropic"])
    driver.rows("select treadle.close_gate('anthropic', 90, '429 Too Many Requests', 'ada')")

    row = only(driver, task)

    closed = "select closed_until from treadle.gates where key = 'anthropic'"
    assert row["reason"] == "gate_closed"
    until = moment(driver, closed)
    assert row["sentence"] == f"gate anthropic is closed until {until}: 429 Too Many Requests"
    assert row["until"] == driver.value(closed)
    assert (row["detail"]["gate"], row["detail"]["closed_by"]) == ("anthropic", "ada")


@pytest.mark.parametrize("noticed", [False, True])
def test_why_reports_a_used_up_rate_with_the_next_free_time(driver: Driver, noticed: bool) -> None:
    gates.define_gate(driver, "api", unit="starts", limit=1, per_s=60)
    driver.enqueue(gates=["api"])
    driver.claim_one("a")
    task = driver.enqueue(gates=["api"])
    if noticed:
        assert driver.claim("a") == []

    row = reason(driver, task, "gate_rate")

    room = f"{row['until']:%Y-%m-%d %H:%M:%S} UTC"
    assert row["sentence"] == f"gate api allows 1 starts in 60 s; next room at {room}"
    assert row["detail"]["amount"] == 1
    assert "claimable" not in reasons(driver, task)


def test_why_reports_a_task_that_exceeds_the_limit_of_its_gate(driver: Driver) -> None:
    gates.define_gate(driver, "api", unit="tokens", limit=1000, per_s=60)
    task = driver.enqueue(gates=["api"], max_tokens=5000)

    before = reason(driver, task, "gate_size")
    assert before["sentence"] == "needs 5000 tokens, but gate api allows 1000 in 60 s"
    assert (before["detail"]["needs"], before["detail"]["amount"]) == (5000, 1000)
    assert driver.claim("a") == []
    assert reasons(driver, task) == ["gate_size"]


def test_why_reports_an_exhausted_budget_with_amounts(driver: Driver) -> None:
    dag_id, budget_id = dag(driver, 3, 5, max_cost_usd=0.5)
    claim = driver.claim_one("a")
    driver.rows("update treadle.tasks set max_cost_usd = 5 where id = %s", claim.id)
    pay(driver, claim, "4.50")
    driver.rows(
        "update treadle.budgets set spent_usd = 4.5, reserved_usd = 0.4 where id = %s", budget_id
    )
    task = driver.value("select id from treadle.tasks where status = 'ready' order by id limit 1")

    row = reason(driver, task, "budget")

    assert row["sentence"] == (
        "the budget of DAG costly has $0.10 left of $5.00 ($4.50 spent, $0.40 reserved),"
        " but the task needs $0.50"
    )
    assert (row["detail"]["scope"], row["detail"]["key"]) == ("dag", str(dag_id))
    assert (row["detail"]["left_usd"], row["detail"]["needs_usd"]) == (0.1, 0.5)
    assert "claimable" not in reasons(driver, task)
    assert driver.claim("a") == []
    assert reasons(driver, task) == ["budget"]


def test_why_reports_when_the_next_period_of_a_budget_begins(driver: Driver) -> None:
    set_budget(driver, "type", "code", "0.10", "day")
    task = driver.enqueue(max_cost_usd=1)

    row = reason(driver, task, "budget")

    tomorrow = "select date_trunc('day', clock_timestamp(), 'UTC') + interval '1 day'"
    assert row["until"] == driver.value(tomorrow)


def test_a_budget_that_has_room_again_lets_its_tasks_go(driver: Driver) -> None:
    budget_id = set_budget(driver, "all", None, 1)
    task = driver.enqueue(max_cost_usd=2)
    assert driver.claim("a") == []
    driver.rows("update treadle.budgets set limit_usd = 5 where id = %s", budget_id)

    row = only(driver, task)

    assert row["reason"] == "admission"
    assert row["sentence"] == (
        "the budget of all tasks has room: the next claim or the promoter releases the task"
    )


def test_a_budget_that_ran_out_asks_and_is_a_question(driver: Driver) -> None:
    driver.set_clock(timedelta(0), stopped=True)
    set_budget(driver, "all", None, 1)
    task = driver.enqueue(max_cost_usd=2)
    assert driver.claim("a") == []
    review(driver)

    row = reason(driver, task, "budget_question")

    wait = question(driver, task)
    assert row["sentence"].startswith("waiting 0 s for an answer: ")
    assert row["detail"]["wait_id"] == str(wait["id"])
    assert row["detail"]["budget_id"] == wait["budget_id"]
    assert reasons(driver, task) == ["budget_question", "budget"]
