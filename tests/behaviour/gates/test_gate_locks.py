"""Concurrent claims, completions, spending and operators do not deadlock at gates and breakers."""

import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.gates import breaker_on, define_gate
from treadle.models import Claim

pytestmark = pytest.mark.requirement("B6")
SESSIONS = 10
KEYS = ("alpha", "beta", "gamma")
OPERATIONS = (
    "select treadle.define_gate('alpha', '{\"limit\": 9}')",
    "select treadle.define_gate('alpha', '{\"limit\": 40}')",
    "select treadle.close_gate('beta', 0.02)",
    "select treadle.open_gate('beta')",
    "select treadle.open_gate('type:code')",
    "select treadle.reopen_gates()",
    "select treadle.trip_breaker('code', 0.01)",
    "select treadle.reset_breaker('code')",
    "select treadle.promote_tasks()",
    "select treadle.admit_waiting_tasks()",
)


def work(session: Driver, chance: random.Random) -> None:
    """Claim some tasks, and end each in one of the ways there are."""
    claims = session.claim(chance.choice("ab"), 4)
    chance.shuffle(claims)
    for claim in claims:
        end(session, chance, claim)


def end(session: Driver, chance: random.Random, claim: Claim) -> None:
    how = chance.randrange(6)
    if how == 0:
        session.fail(claim, retry_after=0, action="retry")
    elif how == 1:
        key = chance.choice((*KEYS, None))
        session.fail(claim, failure_class="rate_limit", retry_after=0.01, key=key)
    elif how == 2:
        calls = Jsonb([{"usd": 0.01, "input_tokens": 30}])
        session.rows("select treadle.record_spend(%s, %s, %s)", claim.id, claim.token, calls)
        session.complete(claim)
    elif how == 3:
        session.release(claim)
    else:
        session.complete(claim)


def test_everything_at_once_is_never_a_deadlock_and_leaves_nothing_behind(driver: Driver) -> None:
    for number, (key, unit) in enumerate(zip(KEYS, ("starts", "tokens", "usd"), strict=True)):
        define_gate(driver, key, limit=40, per_s=0.1 + number / 10, unit=unit)
    breaker_on(driver, threshold=3, first_probe_s=0.01, cooldown_s=0.01)
    breaker_on(driver, "review", threshold=2, first_probe_s=0.01, cooldown_s=0.01)
    for gates in (["alpha"], ["beta", "alpha"], ["gamma", "beta"], ["gamma", "alpha"], []):
        for kind in ("code", "review"):
            options: dict[str, Any] = {
                "max_attempts": 1000,
                "max_cost_usd": 1,
                "retry": {"poison": False},
            }
            driver.enqueue_batch([{}] * 60, type=kind, gates=gates, max_tokens=10, **options)
    driver.enqueue_batch([{}] * 5, gates=["beta"], max_tokens=500)
    until, said = time.monotonic() + 2, Counter[str]()
    sessions = [driver.another() for _ in range(SESSIONS)]

    def run(number: int) -> None:
        session, chance = sessions[number], random.Random(number)
        session.rows("set deadlock_timeout = '50 ms'")
        while time.monotonic() < until:
            try:
                if number < 2:
                    session.rows(chance.choice(OPERATIONS))
                else:
                    work(session, chance)
                said["ok"] += 1
            except psycopg.DatabaseError as error:
                said[str(error.sqlstate)] += 1

    with ThreadPoolExecutor(SESSIONS) as threads:
        list(threads.map(run, range(SESSIONS)))

    assert set(said) == {"ok"}, said
    finish(driver)


def finish(driver: Driver) -> None:
    """Take all limits away: what is left can be done."""
    for key in KEYS:
        define_gate(driver, key, limit=None)
        driver.rows("select treadle.open_gate(%s)", key)
    for kind in ("code", "review"):
        driver.rows("select treadle.open_gate(%s)", f"type:{kind}")
        driver.rows("select treadle.reset_breaker(%s)", kind)
    driver.rows("update treadle.tasks set retry_at = clock_timestamp() where status = 'retrying'")
    driver.promote()
    while claims := driver.claim("a", 500):
        for claim in claims:
            driver.complete(claim)
    assert driver.rows("select status, count(*) from treadle.tasks group by 1") == [
        ("completed", 605)
    ]
