"""Concurrent sessions never exceed or lose slots, and do not wait for producers."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from tests.drivers.engine import Driver
from tests.drivers.keys import admit, held, keyed, leftovers, limit, standing
from tests.drivers.races import together, while_held
from tests.drivers.refusals import refused

pytestmark = pytest.mark.requirement("B6")

LIMITS = {"one": 1, "two": 2, "five": 5}
OVER = """
select key from treadle.concurrency_keys
where
  max < (select count(*) from treadle.tasks where concurrency_key = key and slot = 'held')
  or max < (
    select count(*) from treadle.tasks
    where concurrency_key = key and status in ('claimed', 'running', 'validating')
  )
"""


@contextmanager
def watched(driver: Driver) -> Iterator[None]:
    """Somebody looks all the time, in states that were committed, for a key with too many."""
    session, over, done = driver.another(), list[object](), Event()

    def look() -> None:
        while not done.is_set():
            over.extend(session.rows(OVER))

    observer = Thread(target=look)
    observer.start()
    try:
        yield
    finally:
        done.set()
        observer.join(timeout=30)
    assert over == []


@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_sixteen_clients_never_exceed_a_limit_and_do_all_the_work(
    driver: Driver, level: str
) -> None:
    for name, slots in LIMITS.items():
        limit(driver, name, slots)
        driver.enqueue_batch([{}] * 60, concurrency_key=name, max_attempts=1000)
    number = "select count(*) from treadle.tasks where completed_at is null"

    def work(session: Driver, client: int) -> None:
        chance = random.Random(client)
        while session.value(number):
            session.rows(f"set default_transaction_isolation to '{level}'")
            try:
                for claim in session.claim(session.agent(f"w{client}"), chance.randint(1, 5)):
                    way = chance.choice(["complete", "complete", "complete", "fail", "release"])
                    if way == "fail":
                        session.fail(claim, retry_after=chance.choice([0, 0.001]))
                    else:
                        getattr(session, way)(claim)
                session.promote()
            except Exception as error:
                if getattr(error, "sqlstate", None) != "40001":
                    raise
                # The reaper takes back the tasks that it has not finished.
                session.rows("set default_transaction_isolation to 'read committed'")
                session.rows(
                    "update treadle.tasks set lease_until = now() - interval '1 minute',"
                    " heartbeat_at = now() - interval '1 hour' where agent_id = %s",
                    f"w{client}",
                )
                session.reap()

    with watched(driver):
        together(driver, 16, work)

    assert leftovers(driver) == (0, 0)


def test_a_slot_that_is_freed_while_a_request_is_looked_at_is_not_lost(driver: Driver) -> None:
    keyed(driver, 2)
    claim = driver.claim_one()
    other = driver.another()
    driver.rows("begin")
    driver.complete(claim)

    keyed(other)
    assert (admit(other), other.value("select count(*) from treadle.admissions")) == (0, 0)
    driver.rows("commit")

    assert admit(other) == 1


def test_a_task_that_somebody_has_locked_is_asked_for_again(driver: Driver) -> None:
    [task_id] = keyed(driver)
    other = driver.another()
    other.rows("begin")
    other.rows("select id from treadle.tasks where id = %s for update", task_id)

    assert (admit(driver), standing(driver, task_id)) == (0, [("pending", "waiting")])
    other.rows("rollback")

    assert (admit(driver), standing(driver, task_id)) == (1, [("ready", "held")])


def test_a_locked_task_does_not_keep_a_slot_from_the_others(driver: Driver) -> None:
    first, second = keyed(driver, 2)
    other = driver.another()
    other.rows("begin")
    other.rows("select id from treadle.tasks where id = %s for update", first)

    assert admit(driver) == 1
    assert standing(driver, second) == [("ready", "held")]
    other.rows("rollback")


def test_a_key_that_another_session_has_in_hand_is_left_to_it(driver: Driver) -> None:
    """No session waits, and requests made meanwhile are not lost."""
    limit(driver, "k", 2)
    keyed(driver, 2, slots=2)
    other = driver.another()
    other.rows("set lock_timeout = '2s'")
    driver.rows("begin")
    assert admit(driver) == 2
    keyed(other, slots=2)

    assert admit(other) == 0
    driver.rows("commit")
    limit(driver, "k", 3)

    assert (admit(other), held(driver)) == (1, 3)


def test_a_request_that_came_while_the_key_was_in_hand_is_found_later(driver: Driver) -> None:
    keyed(driver, slots=2)
    other = driver.another()
    driver.rows("begin")
    assert admit(driver) == 1
    keyed(other, slots=2)
    assert admit(other) == 0
    driver.rows("commit")

    assert admit(other) == 1


def test_an_admission_by_an_old_snapshot_fails_instead_of_giving_a_slot_twice(
    driver: Driver,
) -> None:
    """Of its own task: requests of others it could not take twice anyway."""
    driver.cancel(driver.enqueue(concurrency_key="k"))
    admit(driver)
    old = driver.another()
    old.rows("begin isolation level repeatable read")
    assert held(old) == 0
    keyed(driver)
    assert admit(driver) == 1
    keyed(old)

    with refused("40001"):
        admit(old)
    old.rows("rollback")
    assert held(driver) == 1


def test_an_uncommitted_producer_does_not_delay_tasks_of_the_same_key(driver: Driver) -> None:
    keyed(driver, 2)
    producer = driver.another()
    driver.rows("set lock_timeout = '2s'")
    producer.rows("begin")
    keyed(producer, 1, slots=5)

    claim = driver.claim_one()
    driver.complete(claim)
    driver.complete(driver.claim_one())
    [mine] = keyed(driver, slots=7)
    assert admit(driver) == 1
    producer.rows("commit")

    admit(driver)
    assert (held(driver), driver.rows("select max from treadle.concurrency_keys")) == (2, [(5,)])
    assert standing(driver, mine) == [("ready", "held")]


def test_the_first_use_of_a_key_does_not_wait_for_a_concurrent_first_use(driver: Driver) -> None:
    keyed(driver)
    other = driver.another()
    other.rows("set lock_timeout = '2s'")
    driver.rows("begin")
    assert admit(driver) == 1
    keyed(other)

    assert admit(other) == 0
    driver.rows("rollback")

    assert admit(other) == 1


def test_an_operator_waits_for_a_concurrent_assignment_of_slots_and_then_wins(
    driver: Driver,
) -> None:
    keyed(driver, slots=3)

    while_held(driver, admit, lambda session: limit(session, "k", 2))

    assert driver.rows("select max from treadle.concurrency_keys") == [(2,)]
