"""Concurrent calls about one task: the second waits and then sees the current row."""

import random
from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.races import together, while_held
from treadle.models import Claim

Call = Callable[[Driver, Claim], str]

pytestmark = pytest.mark.requirement("F8")

CALLS: dict[str, Call] = {
    "heartbeat": lambda driver, claim: driver.heartbeat(claim),
    "complete": lambda driver, claim: driver.complete(claim, {"n": 1}),
    "fail": lambda driver, claim: driver.fail(claim),
    "release": lambda driver, claim: driver.release(claim),
    "cancel": lambda driver, claim: driver.cancel(claim.id)[0],
}
# What the second call says, and the state of the task in the end.
AFTER = {
    "heartbeat": {
        "heartbeat": ("ok", "running"),
        "complete": ("completed", "completed"),
        "fail": ("retrying", "retrying"),
        "release": ("released", "ready"),
        "cancel": ("cancelled", "cancelled"),
    },
    "complete": {
        "heartbeat": ("lost", "completed"),
        "complete": ("already", "completed"),
        "fail": ("stale", "completed"),
        "release": ("stale", "completed"),
        "cancel": ("ended", "completed"),
    },
    "fail": {
        "heartbeat": ("lost", "retrying"),
        "complete": ("completed", "completed"),
        "fail": ("already", "retrying"),
        "release": ("already", "retrying"),
        "cancel": ("cancelled", "cancelled"),
    },
    "release": {
        "heartbeat": ("lost", "ready"),
        "complete": ("completed", "completed"),
        "fail": ("already", "ready"),
        "release": ("already", "ready"),
        "cancel": ("cancelled", "cancelled"),
    },
    "cancel": {
        "heartbeat": ("cancelled", "cancelled"),
        "complete": ("stale", "cancelled"),
        "fail": ("already", "cancelled"),
        "release": ("already", "cancelled"),
        "cancel": ("already", "cancelled"),
    },
}


@pytest.mark.parametrize("second", CALLS)
@pytest.mark.parametrize("first", CALLS)
def test_a_call_that_had_to_wait_for_another_sees_what_it_did(
    driver: Driver, first: str, second: str
) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")

    verdict = while_held(
        driver, lambda held: CALLS[first](held, claim), lambda late: CALLS[second](late, claim)
    )

    assert (verdict, driver.state_of(claim.id)) == AFTER[first][second]


@pytest.mark.parametrize("second", CALLS)
def test_a_call_that_waited_for_a_transaction_that_rolled_back_has_its_effect(
    driver: Driver, second: str
) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")

    verdict = while_held(
        driver,
        lambda held: held.cancel(claim.id),
        lambda late: CALLS[second](late, claim),
        end="rollback",
    )

    assert (verdict, driver.state_of(claim.id)) == AFTER["heartbeat"][second]


def test_a_heartbeat_that_had_to_wait_renews_the_lease(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.age_claim(claim.id, timedelta(seconds=80))

    while_held(
        driver,
        lambda held: held.rows("update treadle.tasks set title = 'x' where id = %s", claim.id),
        lambda late: late.heartbeat(claim, {"value": 0.5}),
    )

    assert driver.reap() == []
    assert driver.task(claim.id)["progress"] == {"value": 0.5}
    assert driver.value(
        "select lease_until > clock_timestamp() + interval '80 s' from treadle.tasks"
    )


def test_a_result_that_waited_for_the_reaper_is_taken(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.age_claim(claim.id, timedelta(hours=1))

    verdict = while_held(
        driver, lambda held: held.reap(), lambda late: late.complete(claim, {"n": 1})
    )

    assert verdict == "completed"
    assert driver.task(claim.id)["retry_at"] is None


def test_the_reaper_does_not_wait_for_a_completion_and_leaves_it_alone(driver: Driver) -> None:
    driver.enqueue()
    claim = driver.claim_one("a")
    driver.age_claim(claim.id, timedelta(hours=1))
    other = driver.another()
    other.rows("set lock_timeout = '1 s'")
    driver.rows("begin")
    driver.complete(claim, {"n": 1})

    assert other.reap() == []

    driver.rows("commit")
    assert other.reap() == []
    assert driver.state_of(claim.id) == "completed"
    assert driver.attempts(claim.id) == []


def test_calls_on_the_same_tasks_in_any_order_never_deadlock(driver: Driver) -> None:
    driver.agent("a", heartbeat_s=0.001)
    driver.enqueue_batch([{}] * 20, max_attempts=1000, retry={"strategy": "immediate"})

    def hammer(session: Driver, seed: int) -> int:
        chance = random.Random(seed)
        for _ in range(40):
            claims = session.claim("a", limit=chance.randint(1, 20))
            chance.shuffle(claims)
            pair = ([each.id for each in claims], [each.token for each in claims])
            for name in chance.sample(["heartbeat_tasks", "start_tasks", "fail_tasks"], 2):
                session.rows(f"select * from treadle.{name}(%s, %s)", *pair)
            session.reap()
            ids = session.rows("select id from treadle.tasks order by random() limit 5")
            session.rows("select * from treadle.cancel_tasks(%s)", [row[0] for row in ids])
            for (task_id,) in ids:
                try:
                    session.retry(task_id)
                except psycopg.DatabaseError as error:
                    if error.sqlstate != "TR102":  # another session was first
                        raise
        return seed

    assert together(driver, 4, hammer) == [0, 1, 2, 3]
    assert driver.value("select count(*) from treadle.tasks") == 20
