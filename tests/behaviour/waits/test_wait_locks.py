"""A concurrent emit and a new wait never miss each other."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.drivers.engine import Driver
from tests.drivers.races import while_held
from tests.drivers.refusals import refused
from tests.drivers.waits import answer, answers_of, blocked, claimed, emit, expect, suspend

pytestmark = pytest.mark.requirement("B2")

TWO = {"question": "Ship it?", "approvers": 2}

# The first query finds no waits, as if all were opened right after it.
LATE = """
create sequence public.looks;
create or replace function treadle.tasks_waiting_for(p_event text, p_key text) returns uuid[]
language sql volatile set search_path = '' as $$
  select array(
    select distinct waits.task_id from treadle.waits
    where waits.status = 'open' and waits.event = p_event and waits.event_key = p_key
    and looks.number > 1
  )
  from (select nextval('public.looks') as number) as looks
$$;
grant usage on sequence public.looks to treadle_owner;
"""


def test_a_new_wait_gets_an_event_that_is_not_committed_yet(driver: Driver) -> None:
    claim = claimed(driver)

    row = while_held(
        driver, lambda held: emit(held, "paid", 1), lambda late: expect(late, claim, "paid")
    )

    assert (row["status"], row["answer"]["value"]) == ("answered", 1)


def test_an_event_reaches_the_wait_that_is_not_committed_yet(driver: Driver) -> None:
    claim = claimed(driver)

    def wait(session: Driver) -> None:
        suspend(session, claim, expect(session, claim, "paid")["wait_id"])

    while_held(driver, wait, lambda late: emit(late, "paid", 1))

    assert driver.state_of(claim.id) == "ready"


@pytest.mark.parametrize("used", [False, True], ids=["a new topic", "a used topic"])
@pytest.mark.parametrize("first", ["emit", "wait"])
def test_a_transaction_with_an_older_view_fails_and_misses_nothing(
    driver: Driver, first: str, *, used: bool
) -> None:
    if used:
        emit(driver, "paid", 0)
    claim = claimed(driver)
    old = driver.another()
    old.rows("begin isolation level repeatable read")
    old.rows("select count(*) from treadle.events")
    calls: dict[str, Callable[[Driver], object]] = {
        "emit": lambda session: emit(session, "paid", 1),
        "wait": lambda session: suspend(session, claim, expect(session, claim, "paid")["wait_id"]),
    }
    second = calls["wait" if first == "emit" else "emit"]
    calls[first](driver)

    with refused("40001"):
        second(old)

    old.rows("rollback")
    second(old)
    assert driver.state_of(claim.id) == "ready"
    assert answers_of(driver, claim.id)["ask"]["value"] == 1


def test_a_vote_with_an_older_view_fails_and_is_not_left_uncounted(driver: Driver) -> None:
    claim, wait_id = blocked(driver, TWO)
    old = driver.another()
    old.rows("begin isolation level repeatable read")
    old.rows("select count(*) from treadle.answers")
    assert answer(driver, wait_id, "approve", "alice") == "recorded"

    with refused("40001"):
        answer(old, wait_id, "approve", "bob")

    old.rows("rollback")
    assert answer(old, wait_id, "approve", "bob") == "answered"
    assert driver.state_of(claim.id) == "ready"


def test_an_event_reaches_a_task_that_began_to_wait_a_moment_ago(fresh: Driver) -> None:
    claim = claimed(fresh)
    suspend(fresh, claim, expect(fresh, claim, "paid")["wait_id"])
    fresh.conn.execute(LATE.encode())

    emit(fresh, "paid", 1)

    assert fresh.state_of(claim.id) == "ready"


def test_an_event_does_not_hold_up_the_task_that_it_has_to_wait_for(fresh: Driver) -> None:
    claim = claimed(fresh)
    expect(fresh, claim, "paid", "first")
    fresh.conn.execute(LATE.encode())
    worker, judge = fresh.another(), fresh.another()
    worker.rows("begin")
    worker.rows("select from treadle.tasks where id = %s for no key update", claim.id)
    pids = (worker.conn.info.backend_pid, fresh.conn.info.backend_pid)

    with ThreadPoolExecutor(1) as threads:
        emitting = threads.submit(emit, fresh, "paid", 1)
        while not judge.value("select %s = any (pg_blocking_pids(%s))", *pids):
            assert not emitting.done(), "it did not wait for the task"
        assert expect(worker, claim, "paid", "second")["status"] == "open"
        worker.rows("commit")
        emitting.result(timeout=30)

    assert set(answers_of(fresh, claim.id)) == {"first"}
