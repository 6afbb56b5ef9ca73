"""A heartbeat renews the leases of running tasks, stores progress and reports changes."""

from datetime import timedelta

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import unchanged

pytestmark = pytest.mark.requirement("F10")


def test_a_heartbeat_renews_the_lease(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    for _ in range(5):
        driver.age_claim(claim.id, timedelta(seconds=80))
        assert driver.heartbeat(claim) == "ok"

    assert driver.reap() == []
    assert driver.value(
        "select lease_until > clock_timestamp() + interval '80 s' from treadle.tasks"
    )


def test_a_heartbeat_stores_the_progress_and_one_without_keeps_it(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")

    driver.heartbeat(claim, {"value": 0.5, "step": "reading"})
    driver.heartbeat(claim)

    assert driver.task(claim.id)["progress"] == {"value": 0.5, "step": "reading"}


def test_the_next_attempt_starts_without_the_progress_of_the_last(driver: Driver) -> None:
    driver.enqueue(retry={"strategy": "immediate"})
    claim = driver.claim_one("a")
    driver.heartbeat(claim, {"value": 0.5})
    driver.fail(claim)

    assert driver.task(driver.claim_one("a").id)["progress"] is None


def test_a_heartbeat_of_a_claim_that_has_not_started_does_not_extend_it(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a", start=False)
    driver.age_claim(claim.id, timedelta(seconds=50))

    with unchanged(driver):
        assert driver.heartbeat(claim) == "ok"
    assert driver.heartbeat(claim, {"value": 0.5}) == "ok"
    found = driver.task(claim.id)
    assert (found["progress"], found["heartbeat_at"]) == ({"value": 0.5}, None)

    driver.age_claim(claim.id, timedelta(seconds=11))
    assert [each.reason for each in driver.reap()] == ["claim_expired"]


def test_one_call_renews_many_leases_and_answers_for_each(driver: Driver) -> None:
    driver.enqueue_batch([{}] * 4)
    claims = driver.claim("a", 4)
    lost, cancelled, done, held = claims
    driver.expire(lost)
    driver.cancel(cancelled.id)
    driver.complete(done)

    rows = driver.rows(
        "select id, verdict from treadle.heartbeat_tasks(%s, %s)",
        [claim.id for claim in claims],
        [claim.token for claim in claims],
    )

    assert rows == [
        (lost.id, "lost"),
        (cancelled.id, "cancelled"),
        (done.id, "lost"),
        (held.id, "ok"),
    ]


def test_a_heartbeat_never_shortens_a_lease(driver: Driver) -> None:
    driver.agent("a", heartbeat_s=1000)
    driver.enqueue()
    claim = driver.claim_one("a")
    before = driver.task(claim.id)["lease_until"]
    driver.agent("a", heartbeat_s=1)

    driver.heartbeat(claim)

    assert driver.task(claim.id)["lease_until"] == before


def test_a_heartbeat_writes_no_index(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    query = """
        select n_tup_upd, n_tup_hot_upd from pg_stat_xact_user_tables
        where schemaname = 'treadle' and relname = 'tasks'
    """
    driver.rows("begin")
    [[updates, hot]] = driver.rows(query)
    for _ in range(5):
        driver.heartbeat(claim, {"value": 0.5})

    assert driver.rows(query) == [(updates + 5, hot + 5)]
    driver.rows("commit")
