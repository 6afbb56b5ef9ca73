"""DBAs read attempts, queues and agents with select."""

from datetime import timedelta

from tests.drivers.engine import Driver, Record


def queue(driver: Driver, name: str = "default") -> Record:
    """The health of a queue."""
    [row] = driver.records("select * from treadle.queue_health where queue = %s", name)
    return row


def load(driver: Driver, name: str) -> Record:
    """The load of an agent."""
    [row] = driver.records("select * from treadle.agent_load where agent_id = %s", name)
    return row


def test_dispatch_log_has_a_row_for_every_attempt_ended_alive_or_completed(
    driver: Driver,
) -> None:
    task_id = driver.enqueue(retry={"strategy": "immediate"})
    driver.fail(driver.claim_one("a"), "boom")
    driver.expire(driver.claim_one("b"))
    claim = driver.claim_one("a")
    query = """
        select attempt, agent_id, outcome, class, reason, ended_at is not null
        from treadle.dispatch_log where task_id = %s order by attempt
    """

    ended = [(1, "a", "failed", "error", "handler", True)]
    ended.append((2, "b", "failed", "crash", "heartbeat_timeout", True))
    assert driver.rows(query, task_id) == [*ended, (3, "a", "running", None, None, False)]

    driver.complete(claim)
    assert driver.rows(query, task_id) == [*ended, (3, "a", "completed", None, None, True)]


def test_dispatch_log_divides_the_cost_among_the_attempts(driver: Driver) -> None:
    driver.enqueue(retry={"strategy": "immediate"})
    first = driver.claim_one("a")
    driver.rows("update treadle.tasks set cost_usd = 0.3")
    driver.fail(first)
    second = driver.claim_one("a")
    driver.rows("update treadle.tasks set cost_usd = 1.0")
    driver.complete(second)

    rows = driver.rows("select cost_usd from treadle.dispatch_log order by attempt")

    assert [float(row[0]) for row in rows] == [0.3, 0.7]


def test_a_task_that_was_never_claimed_is_not_in_the_dispatch_log(driver: Driver) -> None:
    driver.enqueue()
    driver.cancel(driver.enqueue())

    assert driver.rows("select * from treadle.dispatch_log") == []


def test_queue_health_counts_tasks_by_what_they_wait_for(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('other', '{}')")
    driver.enqueue_batch([{}] * 7, max_attempts=1)
    driver.claim_one("a", start=False)
    driver.fail(driver.claim_one("a"))
    driver.complete(driver.claim_one("a"))
    driver.enqueue(priority=1)
    driver.fail(driver.claim_one("a"))
    driver.enqueue(hold=True)
    driver.enqueue(delay_s=60)
    driver.enqueue(queue="other")

    row = queue(driver)

    assert (row["ready"], row["waiting"], row["in_flight"]) == (4, 2, 1)
    assert (row["retrying"], row["dead_letters"], row["completed_5m"]) == (1, 1, 1)
    assert row["failed_attempts_5m"] == 2
    assert queue(driver, "other")["ready"] == 1


def test_queue_health_shows_the_age_of_the_oldest_ready_task(driver: Driver) -> None:
    assert queue(driver)["oldest_ready_age"] is None
    old = driver.enqueue()
    driver.enqueue()
    driver.rows(
        "update treadle.tasks set created_at = created_at - %s where id = %s",
        timedelta(hours=2),
        old,
    )

    age = queue(driver)["oldest_ready_age"]

    assert timedelta(hours=2) <= age < timedelta(hours=2, minutes=1)


def test_queue_health_measures_waits_and_runs_of_the_last_five_minutes(driver: Driver) -> None:
    driver.set_clock(timedelta(0), stopped=True)
    driver.enqueue_batch([{}] * 3)
    claims = driver.claim("a", 3)
    for seconds, claim in zip((10, 20, 60), claims, strict=True):
        driver.age_claim(claim.id, timedelta(seconds=30))
        driver.rows(
            "update treadle.tasks set created_at = claimed_at - %s where id = %s",
            timedelta(seconds=seconds),
            claim.id,
        )
        driver.complete(claim)
    driver.rows(
        "update treadle.tasks set completed_at = completed_at - interval '6 min' where id = %s",
        claims[2].id,
    )

    row = queue(driver)

    assert row["completed_5m"] == 2
    assert float(row["completed_per_s"]) == 0.01
    assert float(row["wait_p50_s"]) == 15
    assert float(row["run_p50_s"]) == 30


def test_queue_health_shows_that_a_queue_is_paused(driver: Driver) -> None:
    driver.rows("select treadle.pause_queue('default')")

    assert queue(driver)["paused"] is True


def test_a_dead_letter_that_was_reviewed_no_longer_counts(driver: Driver) -> None:
    driver.enqueue(max_attempts=1)
    claim = driver.claim_one("a")
    driver.fail(claim)

    driver.retry(claim.id, "cancel")

    assert queue(driver)["dead_letters"] == 0


def test_agent_load_shows_the_tasks_of_an_agent(driver: Driver) -> None:
    driver.agent("coder", type="coder", capabilities=["git"], max_concurrent_tasks=5)
    driver.enqueue_batch([{}] * 4)
    first = driver.claim_one("coder")
    driver.claim("coder", 2, start=False)
    driver.fail(driver.claim_one("coder"))

    row = load(driver, "coder")

    assert (row["type"], row["status"], row["alive"]) == ("coder", "active", True)
    assert (row["current_tasks"], row["running"], row["failed_1h"]) == (3, 1, 1)
    assert (row["max_concurrent_tasks"], row["capabilities"]) == (5, ["git"])
    assert row["oldest_claim_at"] == driver.task(first.id)["claimed_at"]


def test_agent_load_distinguishes_live_agents_from_silent_ones(driver: Driver) -> None:
    driver.rows("update treadle.agents set heartbeat_at = now() - interval '91 s' where id = 'a'")
    driver.rows("select treadle.set_agent_status('b', 'offline')")

    assert (load(driver, "a")["alive"], load(driver, "b")["alive"]) == (False, False)
    driver.rows("select treadle.heartbeat_agent('a')")
    assert load(driver, "a")["alive"] is True


def test_views_go_by_the_clock_of_the_functions(driver: Driver) -> None:
    driver.agent("a", heartbeat_s=30)
    driver.enqueue(ageing_rate=1)
    driver.value("""select dag_id from treadle.create_dag('{"name": "d", "tasks": [
      {"name": "x", "type": "code"}
    ]}')""")
    driver.rows("""select treadle.set_budget('agent', 'a', 5, p_period => 'day')""")
    before = driver.value("select period_start from treadle.budget_status")

    driver.set_clock(timedelta(days=1))

    day = timedelta(days=1)
    assert driver.value("select max(oldest_ready_age) from treadle.queue_health") > day
    load = "select distinct alive, heartbeat_age > '1 day' from treadle.agent_load"
    assert driver.rows(load) == [(False, True)]
    assert driver.value("select wait_s from treadle.dag_tasks") >= 86400
    assert driver.value("select min(effective_priority) from treadle.task_details") < -1000
    assert driver.value("select period_start from treadle.budget_status") == before + day


def test_the_views_answer_on_an_empty_database(driver: Driver) -> None:
    driver.rows("delete from treadle.agents")
    names = ["dispatch_log", "agent_load", "dead_letter_details", "stuck", "task_details"]

    assert [driver.rows(f"select * from treadle.{name}") for name in names] == [[]] * 5
    assert queue(driver)["ready"] == 0
