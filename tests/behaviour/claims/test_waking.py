"""NOTIFY wakes idle workers: once per queue and statement, and only after the commit."""

from typing import Any

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.notifications import Listener

pytestmark = pytest.mark.requirement("F11")


@pytest.fixture
def listener(driver: Driver) -> Listener:
    driver.rows("select treadle.define_queue('other', '{}')")
    return Listener(
        driver, "task_ready.default", "task_ready.other", "treadle_due", "treadle_cancelled"
    )


def idle(driver: Driver, *queues: str) -> None:
    """A worker finds nothing in these queues and says that it waits."""
    assert driver.claim("a", queues=queues or ["default"], idle=True) == []


def test_an_enqueue_wakes_an_idle_worker(driver: Driver, listener: Listener) -> None:
    idle(driver)

    driver.enqueue()

    assert listener.heard() == ["task_ready.default"]


def test_a_rolled_back_enqueue_sends_no_notification(driver: Driver, listener: Listener) -> None:
    idle(driver)
    driver.rows("begin")
    driver.enqueue()
    driver.enqueue(delay_s=1)
    driver.rows("rollback")

    assert listener.heard() == []


def test_no_notification_is_sent_before_the_commit(driver: Driver, listener: Listener) -> None:
    idle(driver)
    driver.rows("begin")
    driver.enqueue()
    assert listener.heard() == []

    driver.rows("commit")

    assert listener.heard() == ["task_ready.default"]


def test_an_enqueue_sends_no_notification_while_no_worker_is_idle(
    driver: Driver, listener: Listener
) -> None:
    driver.claim("a", idle=False)

    driver.enqueue()

    assert listener.heard() == []


def test_a_worker_that_was_idle_long_ago_is_not_notified(
    driver: Driver, listener: Listener
) -> None:
    idle(driver)
    driver.rows("update treadle.idle_queues set idle_until = idle_until - interval '1 hour'")

    driver.enqueue()

    assert listener.heard() == []


def test_one_statement_wakes_once_for_each_queue_that_has_an_idle_worker(
    driver: Driver, listener: Listener
) -> None:
    driver.rows("select treadle.define_queue('third', '{}')")
    idle(driver, "default", "other")

    driver.rows(
        """
        insert into treadle.tasks (type, queue)
        select 'code', (array['default', 'other', 'third'])[1 + mod(n, 3)]
        from generate_series(1, 300) as n
        """
    )

    assert sorted(listener.heard()) == ["task_ready.default", "task_ready.other"]


def test_a_batch_wakes_once(driver: Driver, listener: Listener) -> None:
    idle(driver)

    driver.enqueue_batch([{}] * 500)

    assert listener.heard() == ["task_ready.default"]


@pytest.mark.parametrize("options", [{"hold": True}, {"delay_s": 3600}])
def test_a_task_that_cannot_be_claimed_yet_wakes_no_worker(
    driver: Driver, listener: Listener, options: dict[str, Any]
) -> None:
    idle(driver)

    driver.enqueue(**options)

    assert listener.heard() == []


def test_a_repeat_with_a_used_key_sends_no_notification(driver: Driver, listener: Listener) -> None:
    driver.enqueue(key="k")
    idle_claim = driver.claim_one("a")
    idle(driver)

    driver.enqueue(key="k")

    assert listener.heard() == []
    assert driver.complete(idle_claim) == "completed"


def test_tasks_that_become_claimable_later_also_notify(driver: Driver, listener: Listener) -> None:
    driver.enqueue(retry={"strategy": "immediate"})
    claim = driver.claim_one("a")
    idle(driver)
    driver.release(claim)
    assert listener.heard() == ["task_ready.default"], "released"

    claim = driver.claim_one("a")
    driver.fail(claim)
    assert listener.heard() == ["task_ready.default"], "failed, retried at once"

    claim = driver.claim_one("a")
    driver.expire(claim)
    assert listener.heard() == ["task_ready.default"], "reaped, retried at once"

    claim = driver.claim_one("a")
    driver.cancel(claim.id)
    listener.heard()
    driver.retry(claim.id)
    assert listener.heard() == ["task_ready.default"], "retried by a person"

    waits = driver.enqueue(delay_s=3600)
    driver.fall_due(waits)
    assert listener.heard() == ["task_ready.default"], "promoted"


def test_resuming_a_queue_wakes_its_workers(driver: Driver, listener: Listener) -> None:
    driver.rows("select treadle.pause_queue('default')")
    idle(driver)

    driver.rows("select treadle.resume_queue('default')")

    assert listener.heard() == ["task_ready.default"]


@pytest.mark.requirement("F13")
def test_the_promoter_is_notified_of_tasks_that_are_due_within_seconds(
    driver: Driver, listener: Listener
) -> None:
    driver.enqueue(delay_s=2)
    assert listener.heard() == ["treadle_due"], "a task with a time"

    driver.enqueue(delay_s=60)
    assert listener.heard() == [], "a task with a time far off"

    driver.enqueue(retry={"strategy": "fixed", "initial_delay_s": 1, "jitter": False})
    driver.fail(driver.claim_one("a"))
    assert listener.heard() == ["treadle_due"], "a retry"


def test_a_worker_is_notified_when_a_running_task_is_cancelled(
    driver: Driver, listener: Listener
) -> None:
    waiting = driver.enqueue()
    driver.cancel(waiting)
    assert listener.heard() == [], "nobody had it"

    driver.enqueue()
    driver.cancel(driver.claim_one("a").id)

    assert listener.heard() == ["treadle_cancelled"]


def test_an_enqueue_succeeds_without_anybody_listening(driver: Driver) -> None:
    idle(driver)

    with psycopg.connect(driver.url) as conn:
        conn.execute("select treadle.enqueue_task('default', 'code')")

    assert len(driver.claim("a")) == 1
