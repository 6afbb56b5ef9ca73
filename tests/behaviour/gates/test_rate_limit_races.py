"""Sixteen clients never exceed a rate limit, in any interval of a period."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.gates import define_gate, most_in_a_window
from tests.drivers.races import while_held
from treadle.models import Claim

pytestmark = pytest.mark.requirement("B6")
CLIENTS = 16


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_sixteen_clients_never_exceed_it_in_any_sliding_window(
    driver: Driver, isolation: str
) -> None:
    limit, period = 20, timedelta(seconds=0.5)
    define_gate(driver, "llm", limit=limit, per_s=period.total_seconds())
    driver.enqueue_batch([{}] * 400, gates=["llm"])
    driver.enqueue_batch([{}] * 400, gates=["llm"], type="review")
    deadline = time.monotonic() + 30
    sessions = [driver.another() for _ in range(CLIENTS)]
    claimed: list[Claim] = []

    def hammer(session: Driver) -> None:
        session.rows(f"set default_transaction_isolation = '{isolation}'")
        while len(claimed) < 6 * limit and time.monotonic() < deadline:
            try:
                claimed.extend(session.claim("a", 3))
            except psycopg.errors.SerializationFailure:
                continue

    with ThreadPoolExecutor(CLIENTS) as threads:
        list(threads.map(hammer, sessions))

    rows = driver.rows("select claimed_at from treadle.tasks where status = 'running'")
    assert most_in_a_window([row[0] for row in rows], period) == limit
    assert len(rows) == len(claimed) >= 6 * limit


def test_a_claim_that_waited_begins_when_it_was_let_through(driver: Driver) -> None:
    define_gate(driver, "llm", limit=10, per_s=60)
    driver.enqueue_batch([{}] * 2, gates=["llm"])

    while_held(
        driver,
        lambda session: session.claim("a", 1),
        lambda session: session.claim("b", 1),
        end="select set_config('test.released', clock_timestamp()::text, false); commit",
    )

    # Else it would be counted in a stretch of time that others have left behind already.
    [(begun, released)] = driver.rows(
        "select claimed_at, current_setting('test.released')::timestamptz"
        " from treadle.tasks where agent_id = 'b'"
    )
    assert begun > released


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_a_claim_that_waited_for_another_counts_what_that_one_took(
    driver: Driver, isolation: str
) -> None:
    define_gate(driver, "llm", limit=4, per_s=60)
    driver.enqueue_batch([{}] * 10, gates=["llm"])

    def second(session: Driver) -> int:
        session.rows(f"set default_transaction_isolation = '{isolation}'")
        try:
            return len(session.claim("b", 3))
        except psycopg.errors.SerializationFailure:
            return len(session.claim("b", 3))

    def first(session: Driver) -> None:
        session.claim("a", 3)
        # In another sixtieth of the period, so that they do not conflict on that row.
        session.rows("update treadle.gate_uses set slot = slot - 1")

    assert while_held(driver, first, second) == 1


def test_a_claim_that_waited_counts_what_was_spent_meanwhile(driver: Driver) -> None:
    define_gate(driver, "llm", limit=100, per_s=60, unit="tokens")
    driver.enqueue_batch([{}] * 2, gates=["llm"])
    claim = driver.claim_one("a")

    def spend(session: Driver) -> None:
        calls = Jsonb([{"output_tokens": 100}])
        session.rows("select treadle.record_spend(%s, %s, %s)", claim.id, claim.token, calls)

    assert while_held(driver, spend, lambda session: session.claim("b", 1)) == []


def test_agents_of_other_lanes_do_not_wait_for_the_gate(driver: Driver) -> None:
    define_gate(driver, "llm", limit=10, per_s=60)
    driver.enqueue_batch([{}] * 4, gates=["llm"])
    free = driver.enqueue(type="review")

    found = while_held(
        driver,
        lambda first: first.claim("a", 2),
        lambda session: session.claim("b", 1, types=["review"]),
        waits=False,
    )

    assert [claim.id for claim in found] == [free]
