"""An unanswered wait ends by its policy, once, and a bad row does not stop the others."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import anyio
import pytest

from tests.drivers.claims import break_updates
from tests.drivers.engine import Driver, Record
from tests.drivers.races import flat, together
from tests.drivers.refusals import refused, unchanged
from tests.drivers.waits import (
    answer,
    answers_of,
    ask,
    blocked,
    claimed,
    emit,
    expect,
    expire_waits,
    kinds,
    open_wait,
    wait_of,
)
from treadle import Treadle
from treadle.services.promoter import Promoter

pytestmark = pytest.mark.requirement("B2")

HOUR: Record = {"question": "Ship it?", "expires_s": 3600}
LATER = timedelta(hours=2)


@pytest.mark.parametrize(
    ("wait", "status", "value"),
    [
        ({**HOUR}, "expired", None),
        ({**HOUR, "on_expiry": "fail"}, "expired", None),
        ({**HOUR, "approvers": 2, "on_expiry": "deny"}, "answered", "reject"),
        ({**HOUR, "on_expiry": "default", "default": {"go": True}}, "answered", {"go": True}),
        ({**HOUR, "on_expiry": "default", "default": None}, "answered", None),
        ({"event": "paid", "expires_s": 3600}, "expired", None),
        (
            {"event": "paid", "expires_s": 3600, "on_expiry": "default", "default": 0},
            "answered",
            0,
        ),
    ],
)
def test_the_task_resumes_with_the_expiry_value_of_the_wait(
    driver: Driver, wait: Record, status: str, value: Any
) -> None:
    claim, wait_id = blocked(driver, wait)
    driver.set_clock(timedelta(minutes=59))
    assert expire_waits(driver) == []
    assert driver.state_of(claim.id) == "blocked"

    driver.set_clock(LATER)
    assert [(each.id, each.problem) for each in expire_waits(driver)] == [(wait_id, None)]

    assert driver.state_of(claim.id) == "ready"
    found = answers_of(driver, claim.id)["ask"]
    assert (found["status"], found["value"], found["by"]) == (status, value, None)
    assert found["note"] == "nobody answered in time"
    assert wait_of(driver, wait_id)["status"] == status
    assert kinds(driver, claim.id) == ["wait.opened", "wait.expired"]
    assert expire_waits(driver) == []


def test_an_escalated_wait_stays_open_and_is_marked(driver: Driver) -> None:
    claim, wait_id = blocked(driver, {**HOUR, "on_expiry": "escalate"})
    driver.set_clock(LATER)

    assert [each.id for each in expire_waits(driver)] == [wait_id]

    row = wait_of(driver, wait_id)
    assert (row["status"], row["expires_at"]) == ("open", None)
    assert row["escalated_at"] is not None
    assert driver.state_of(claim.id) == "blocked"
    assert kinds(driver, claim.id) == ["wait.opened", "wait.escalated"]
    assert expire_waits(driver) == []
    assert answer(driver, wait_id, "yes") == "answered"
    assert driver.state_of(claim.id) == "ready"


def test_an_answer_that_comes_too_late_is_refused(driver: Driver) -> None:
    _, failed = blocked(driver, HOUR)
    _, denied = blocked(driver, {**HOUR, "approvers": 1, "on_expiry": "deny"})
    driver.set_clock(LATER)
    assert len(expire_waits(driver)) == 2

    with unchanged(driver), refused("TR102", "it has expired"):
        answer(driver, failed, "yes")
    with unchanged(driver), refused("TR102", 'got the answer "reject"'):
        answer(driver, denied, "reject")


def test_an_answer_after_the_expiry_counts_until_the_wait_is_expired(driver: Driver) -> None:
    _, wait_id = blocked(driver, HOUR)
    driver.set_clock(LATER)

    assert answer(driver, wait_id, "yes") == "answered"
    assert expire_waits(driver) == []


def test_what_a_running_task_asked_expires_too(driver: Driver) -> None:
    claim = claimed(driver)
    ask(driver, claim, expires_s=1)
    driver.set_clock(LATER)

    assert len(expire_waits(driver)) == 1

    assert driver.state_of(claim.id) == "running"
    assert answers_of(driver, claim.id)["ask"]["status"] == "expired"


def test_a_wait_that_was_answered_or_closed_does_not_expire(driver: Driver) -> None:
    _, answered = blocked(driver, HOUR)
    cancelled, _ = blocked(driver, HOUR)
    claim = claimed(driver)
    expect(driver, claim, "paid", expires_s=60)
    answer(driver, answered, "yes")
    driver.cancel(cancelled.id)
    emit(driver, "paid", 1)
    driver.set_clock(LATER)

    with unchanged(driver):
        assert expire_waits(driver) == []
    assert driver.value("select treadle.next_due_at()") is None


def test_a_wait_that_was_answered_before_its_task_was_locked_is_left_alone(
    driver: Driver,
) -> None:
    _, wait_id = blocked(driver, HOUR)
    driver.set_clock(LATER)
    answer(driver, wait_id, "yes")

    with unchanged(driver):
        query = "select treadle.expire_wait(%s, treadle.clock())"
        assert driver.value(query, wait_id) is False


def test_a_moment_can_be_given_and_may_have_passed(driver: Driver) -> None:
    past = (datetime.now(tz=UTC) - timedelta(seconds=5)).isoformat()
    _, wait_id = blocked(driver, {"question": "Ship it?", "expires_at": past})

    assert [each.id for each in expire_waits(driver)] == [wait_id]


def test_the_next_due_moment_is_the_earliest_expiry_of_an_open_wait(driver: Driver) -> None:
    driver.enqueue(delay_s=7200, queue="default")
    _, late = blocked(driver, HOUR)
    _, soon = blocked(driver, {**HOUR, "expires_s": 60})
    assert driver.value("select treadle.next_due_at()") == wait_of(driver, soon)["expires_at"]

    answer(driver, soon, "yes")

    assert driver.value("select treadle.next_due_at()") == wait_of(driver, late)["expires_at"]


def test_what_has_been_due_longest_expires_first(driver: Driver) -> None:
    waits = [blocked(driver, {**HOUR, "expires_s": s})[1] for s in (30, 10, 20)]
    driver.set_clock(LATER)

    assert [expire_waits(driver, 1)[0].id for _ in range(3)] == [waits[1], waits[2], waits[0]]


def test_a_wait_of_a_task_that_somebody_holds_is_left_for_later(driver: Driver) -> None:
    held, _ = blocked(driver, {**HOUR, "expires_s": 10})
    _, free = blocked(driver, HOUR)
    driver.set_clock(LATER)
    other = driver.another()
    other.rows("begin")
    other.rows("select from treadle.tasks where id = %s for no key update", held.id)
    driver.rows("set lock_timeout = '1 s'")

    assert [each.id for each in expire_waits(driver, 1)] == [free]

    other.rows("rollback")
    assert len(expire_waits(driver, 1)) == 1


def test_eight_at_once_let_each_wait_expire_once(driver: Driver) -> None:
    waits = [blocked(driver, HOUR)[1] for _ in range(60)]
    driver.set_clock(LATER)

    def expire(session: Driver, _: int) -> list[UUID]:
        found = []
        while session.value("select treadle.next_due_at()") is not None:
            found += [each.id for each in expire_waits(session, 5)]
        return found

    assert sorted(flat(together(driver, 8, expire))) == sorted(waits)
    query = "select count(*) from treadle.events where kind = 'wait.expired'"
    assert driver.value(query) == 60


def test_a_row_that_cannot_be_moved_is_reported_and_does_not_stop_the_others(
    fresh: Driver,
) -> None:
    pairs = [blocked(fresh, HOUR) for _ in range(4)]
    bad, bad_wait = pairs[1]
    break_updates(fresh, bad.id)
    fresh.set_clock(LATER)

    expired = expire_waits(fresh)

    assert {each.id: each.problem for each in expired if each.problem} == {
        bad_wait: "this row is bad"
    }
    assert sorted(each.id for each in expired) == sorted(wait for _, wait in pairs)
    states = [fresh.state_of(claim.id) for claim, _ in pairs]
    assert states == ["ready", "blocked", "ready", "ready"]
    assert expire_waits(fresh, skip=[bad_wait]) == []


async def test_the_promoter_lets_waits_expire(app: Treadle, driver: Driver) -> None:
    claim, _ = blocked(driver, {**HOUR, "expires_s": 0.01})
    promoter = Promoter(app.db)

    with anyio.fail_after(30):
        while await promoter.tick() == 0:
            pass

    assert promoter.moved == 1
    assert driver.state_of(claim.id) == "ready"
    assert await promoter.next_in() is None


def test_a_task_that_gets_another_round_may_ask_again(driver: Driver) -> None:
    claim, wait = blocked(driver, HOUR, max_attempts=1)
    driver.set_clock(LATER)
    expire_waits(driver)
    driver.fail(driver.claim_one("a"), "nobody answered", action="fail")

    driver.retry(claim.id)

    again = open_wait(driver, driver.claim_one("a"), HOUR)
    assert (again["status"], again["answer"]) == ("open", None)
    assert again["wait_id"] != wait
