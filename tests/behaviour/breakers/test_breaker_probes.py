"""A half-open breaker admits exactly one probe, and only the outcome of the probe counts."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.gates import breaker, breaker_on, events, fail_in_a_row, opened, probe_due, state
from treadle.models import Claim

pytestmark = pytest.mark.requirement("R5")


def probing(driver: Driver) -> Claim:
    """An open breaker whose probe has been claimed."""
    opened(driver)
    driver.enqueue_batch([{}] * 5)
    probe_due(driver)
    return driver.claim_one("a", limit=10)


def test_the_probe_comes_when_it_is_due_and_not_before(driver: Driver) -> None:
    opened(driver)
    driver.enqueue_batch([{}] * 5)
    assert driver.claim("a", 10) == []

    probe_due(driver)
    assert len(driver.claim("a", 10)) == 1
    assert driver.claim("b", 10) == []
    assert state(driver) == "half_open"
    assert len(events(driver, "breaker.half_opened")) == 1


def test_a_probe_that_succeeds_closes_the_breaker(driver: Driver) -> None:
    driver.complete(probing(driver))

    assert (state(driver), breaker(driver)["failures"]) == ("closed", 0)
    assert len(driver.claim("a", 10)) == 4
    [event] = events(driver, "breaker.closed")
    assert (event["actor"], event["data"]["type"]) == ("a", "code")


def test_a_probe_that_fails_opens_it_again(driver: Driver) -> None:
    driver.fail(probing(driver))

    assert state(driver) == "open"
    assert driver.claim("a", 10) == []


def test_a_probe_whose_worker_died_has_failed(driver: Driver) -> None:
    driver.expire(probing(driver))

    assert state(driver) == "open"
    assert driver.claim("a", 10) == []


@pytest.mark.parametrize(
    "end",
    [
        lambda driver, claim: driver.release(claim),
        lambda driver, claim: driver.cancel(claim.id),
        lambda driver, claim: driver.fail(claim, failure_class="rate_limit", retry_after=0),
        lambda driver, claim: driver.rows(
            "select treadle.suspend_task(%s, %s, p_run_at => clock_timestamp() + interval '1 h')",
            claim.id,
            claim.token,
        ),
    ],
    ids=["released", "cancelled", "rate limited", "suspended"],
)
def test_a_probe_without_a_result_is_replaced_by_another(
    driver: Driver, end: Callable[[Driver, Claim], object]
) -> None:
    end(driver, probing(driver))

    assert state(driver) == "half_open"
    [second] = driver.claim("b", 10)
    assert driver.claim("b", 10) == []
    driver.complete(second)
    assert state(driver) == "closed"
    assert len(events(driver, "breaker.half_opened")) == 1


@pytest.mark.parametrize("end", ["complete", "fail"])
def test_claims_from_before_the_opening_do_not_count(driver: Driver, end: str) -> None:
    breaker_on(driver)
    driver.enqueue_batch([{}] * 3)
    before = driver.claim("b", 3)
    fail_in_a_row(driver, 5)
    due = breaker(driver)["probe_at"]

    getattr(driver, end)(before[0])
    assert (state(driver), breaker(driver)["probe_at"]) == ("open", due)

    driver.enqueue()
    probe_due(driver)
    probe = driver.claim_one("a")
    getattr(driver, end)(before[1])
    assert state(driver) == "half_open"

    driver.complete(probe)
    getattr(driver, end)(before[2])
    assert (state(driver), breaker(driver)["failures"]) == ("closed", 0)


def test_the_result_of_an_earlier_probe_does_not_matter(driver: Driver) -> None:
    first = probing(driver)
    driver.release(first)
    second = driver.claim_one("b")

    assert driver.fail(first) in ("already", "stale")
    assert driver.complete(first) in ("already", "stale", "completed")
    assert state(driver) == "half_open"
    driver.complete(second)
    assert state(driver) == "closed"


def test_a_probe_needs_an_agent_that_may_have_the_task(driver: Driver) -> None:
    opened(driver)
    driver.enqueue(capabilities=["gpu"])
    probe_due(driver)
    assert driver.claim("a") == []
    driver.agent("b", capabilities=["gpu"])

    assert driver.claim("b", types=["review"]) == []
    assert len(driver.claim("b")) == 1


@pytest.mark.parametrize(
    "shut",
    [
        "select treadle.pause_queue('default')",
        "select treadle.pause_type('code')",
        "select treadle.close_gate('type:code', 60)",
    ],
)
def test_nothing_is_probed_that_is_shut_for_another_reason(driver: Driver, shut: str) -> None:
    opened(driver)
    driver.enqueue()
    probe_due(driver)
    driver.rows(shut)

    assert driver.claim("a") == []
    assert state(driver) == "open"


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_sixteen_claimers_get_one_probe_between_them(driver: Driver, isolation: str) -> None:
    opened(driver)
    driver.enqueue_batch([{}] * 300)
    rounds, claimers = 100, 16
    sessions = [driver.another() for _ in range(claimers)]
    for session in sessions:
        session.rows(f"set default_transaction_isolation = '{isolation}'")
    begin, ended = Barrier(claimers + 1), Barrier(claimers + 1)

    def claim(session: Driver) -> list[list[Claim]]:
        found = []
        for _ in range(rounds):
            begin.wait(timeout=60)
            try:
                found.append(session.claim("a", 3))
            except psycopg.errors.SerializationFailure:
                found.append([])
            except BaseException:
                begin.abort()
                raise
            ended.wait(timeout=60)
        return found

    counts, live = [], 0
    with ThreadPoolExecutor(claimers) as threads:
        waiting = [threads.submit(claim, session) for session in sessions]
        for turn in range(rounds):
            probe_due(driver)
            begin.wait(timeout=60)
            ended.wait(timeout=60)
            rows = driver.rows("select id, claim_token from treadle.tasks where status = 'running'")
            counts.append(len(rows))
            # In every third round the probe keeps running: no other probe may start.
            live = len(rows) if turn % 3 == 0 else 0
            if not live:
                end = "release_tasks" if turn % 3 == 1 else "fail_tasks"
                driver.rows(
                    f"select treadle.{end}(%s, %s)",
                    [row[0] for row in rows],
                    [row[1] for row in rows],
                )
        claims = [each for future in waiting for turns in future.result() for each in turns]

    assert set(counts) == {1}
    assert len({each.token for each in claims}) == len(claims) >= rounds / 2
