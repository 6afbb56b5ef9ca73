"""Any number of reapers count each lost attempt once, and a bad row does not stop them."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.drivers.claims import break_updates
from tests.drivers.engine import Driver
from tests.drivers.races import flat, together, while_held

pytestmark = pytest.mark.requirement("F10")


def run_out(driver: Driver, count: int, **options: Any) -> list[UUID]:
    """So many tasks whose claims have run out."""
    driver.enqueue_batch([{}] * count, **options)
    claims = driver.claim("a", count)
    for claim in claims:
        driver.age_claim(claim.id, timedelta(hours=1))
    return [claim.id for claim in claims]


def test_reaping_twice_counts_one_attempt(driver: Driver) -> None:
    [task_id] = run_out(driver, 1)
    assert len(driver.reap()) == 1

    assert driver.reap() == []
    assert len(driver.attempts(task_id)) == 1


def test_eight_reapers_at_once_count_each_attempt_once(driver: Driver) -> None:
    ids = run_out(driver, 200)

    def reap(session: Driver, _: int) -> list[UUID]:
        found = []
        while session.value("select exists (select from treadle.tasks where status = 'running')"):
            found += [each.id for each in session.reap(20)]
        return found

    reaped = flat(together(driver, 8, reap))

    assert sorted(reaped) == sorted(ids)
    assert driver.value("select count(*) from treadle.attempts") == 200
    assert driver.value("select count(*) from treadle.tasks where status = 'retrying'") == 200


def test_a_batch_is_as_small_as_asked_for(driver: Driver) -> None:
    run_out(driver, 5)

    assert [len(driver.reap(2)) for _ in range(4)] == [2, 2, 1, 0]


def test_live_claims_are_left_alone(driver: Driver) -> None:
    run_out(driver, 2)
    driver.enqueue()
    alive = driver.claim_one("b")

    driver.reap()

    assert driver.state_of(alive.id) == "running"


def test_a_claim_renewed_at_the_last_moment_is_left_alone(driver: Driver) -> None:
    [task_id] = run_out(driver, 1)
    [claim] = driver.claim("a", token=driver.task(task_id)["claim_token"])

    driver.heartbeat(claim)

    assert driver.reap() == []
    assert driver.complete(claim) == "completed"


def test_a_claim_that_is_being_renewed_at_this_moment_is_left_alone(driver: Driver) -> None:
    [task_id] = run_out(driver, 1)
    [claim] = driver.claim("a", token=driver.task(task_id)["claim_token"])

    reaped = while_held(
        driver,
        lambda held: held.heartbeat(claim),
        lambda reaper: reaper.reap(),
        waits=False,
    )

    assert reaped == []
    assert driver.state_of(task_id) == "running"


def test_a_row_that_cannot_be_moved_is_reported_and_does_not_stop_the_others(
    fresh: Driver,
) -> None:
    ids = run_out(fresh, 5)
    bad = ids[2]
    break_updates(fresh, bad)

    reaped = fresh.reap()

    assert sorted(each.id for each in reaped) == sorted(ids)
    problems = {each.id: each.problem for each in reaped if each.problem}
    assert problems == {bad: "this row is bad"}
    assert {fresh.state_of(task_id) for task_id in ids if task_id != bad} == {"retrying"}
    assert fresh.state_of(bad) == "running"
    assert fresh.attempts(bad) == []
    assert fresh.value("select count(*) from treadle.attempts") == 4


def test_a_bad_row_at_the_head_does_not_keep_the_others_waiting_when_it_is_skipped(
    fresh: Driver,
) -> None:
    ids = run_out(fresh, 3)
    break_updates(fresh, ids[0])
    assert [each.problem for each in fresh.reap(1)] == ["this row is bad"]

    assert [each.id for each in fresh.reap(1, skip=[ids[0]])] == [ids[1]]
    assert [each.id for each in fresh.reap(1, skip=[ids[0]])] == [ids[2]]
    assert fresh.reap(1, skip=[ids[0]]) == []


def test_the_history_that_cannot_be_written_is_a_problem_of_its_row_only(fresh: Driver) -> None:
    ids = run_out(fresh, 3)
    fresh.rows(f"alter table treadle.attempts add check (task_id <> '{ids[1]}')")

    reaped = fresh.reap()

    assert sum(each.problem is not None for each in reaped) == 1
    assert fresh.state_of(ids[1]) == "running"
    assert {fresh.state_of(ids[0]), fresh.state_of(ids[2])} == {"retrying"}
