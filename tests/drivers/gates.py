"""Set up and read breakers and gates."""

from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver, Record
from treadle.models import Claim


def breaker_on(driver: Driver, type: str = "code", **overrides: float) -> None:
    """Give a type a breaker; the fixtures turn them all off."""
    settings = Jsonb({"breaker": overrides})
    driver.rows("select treadle.define_type(%s, %s)", type, settings)


def breaker(driver: Driver, type: str = "code") -> Record:
    [row] = driver.records("select * from treadle.breaker_status where type = %s", type)
    return row


def state(driver: Driver, type: str = "code") -> str:
    return str(breaker(driver, type)["state"])


def fail_in_a_row(driver: Driver, times: int, **options: Any) -> list[Claim]:
    """Claim and fail a number of tasks of a type, one after the other."""
    failed = []
    for _ in range(times):
        driver.enqueue(retry={"initial_delay_s": 3600, "jitter": False})
        claim = driver.claim_one("a")
        driver.fail(claim, **options)
        failed.append(claim)
    return failed


def opened(driver: Driver) -> None:
    """A breaker that five failures have opened."""
    breaker_on(driver)
    fail_in_a_row(driver, 5)
    assert state(driver) == "open"


def probe_due(driver: Driver, type: str = "code") -> None:
    """Make the probe due."""
    driver.rows(
        "update treadle.breakers set probe_at = clock_timestamp() - interval '1 s' where type = %s",
        type,
    )


def define_gate(driver: Driver, key: str, **settings: Any) -> None:
    driver.rows("select treadle.define_gate(%s, %s)", key, Jsonb(settings))


def gate(driver: Driver, key: str) -> Record:
    [row] = driver.records("select * from treadle.gates where key = %s", key)
    return row


def behind(driver: Driver, key: str) -> Claim:
    """A claimed task behind a gate, and one more that is ready."""
    define_gate(driver, key)
    driver.enqueue_batch([{}] * 2, gates=[key])
    return driver.claim_one("a")


def limited(driver: Driver, claim: Claim, **options: Any) -> str:
    """Fail an attempt with a rate limit."""
    return driver.fail(claim, "slow down", failure_class="rate_limit", **options)


def closed_for(driver: Driver, key: str) -> float:
    """Seconds until a gate opens."""
    query = """
        select coalesce(extract(epoch from max(closed_until) - treadle.clock()), 0)::float8
        from treadle.gates where key = %s
    """
    return float(driver.value(query, key))


def pass_time(driver: Driver, key: str) -> None:
    """Make the end of a closed gate due."""
    driver.rows(
        """
        update treadle.gates
        set closed_until = clock_timestamp() - interval '1 ms',
          slowed_until = least(slowed_until, clock_timestamp() - interval '1 ms')
        where key = %s and closed_until is not null
        """,
        key,
    )


def events(driver: Driver, kind: str) -> list[Record]:
    return driver.records("select * from treadle.events where kind = %s order by id", kind)


def most_in_a_window(moments: list[datetime], period: timedelta) -> int:
    """The maximum number of times in any interval of one period, including both ends."""
    ordered = sorted(moments)
    most = first = 0
    for last, moment in enumerate(ordered):
        while moment - ordered[first] > period:
            first += 1
        most = max(most, last - first + 1)
    return most
