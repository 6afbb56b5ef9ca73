"""Concurrent answers, events and expiries: exactly one counts, and no task is left waiting."""

from uuid import UUID

import pytest

from tests.drivers.engine import Driver
from tests.drivers.waits import (
    answer,
    answers_of,
    ask,
    blocked,
    emit,
    expect,
    expire_waits,
    rounds,
    suspend,
    wait_of,
)
from treadle.models import Claim

pytestmark = pytest.mark.requirement("B2")

ROUNDS = 300
TWO = {"question": "Ship it?", "approvers": 2}


def many_claimed(driver: Driver, count: int = ROUNDS) -> list[Claim]:
    driver.enqueue_batch([{}] * count)
    return driver.claim("a", count)


def many_blocked(driver: Driver, wait: object, count: int = ROUNDS) -> list[tuple[Claim, UUID]]:
    return [blocked(driver, wait) for _ in range(count)]


def states(driver: Driver) -> set[str]:
    return {row[0] for row in driver.rows("select distinct status from treadle.tasks")}


def test_two_approvals_at_the_same_moment_decide_exactly_once(driver: Driver) -> None:
    waits = [wait_id for _, wait_id in many_blocked(driver, TWO)]

    said = rounds(
        driver,
        ROUNDS,
        lambda session, n: answer(session, waits[n], "approve", "alice"),
        lambda session, n: answer(session, waits[n], "approve", "bob"),
    )

    assert {tuple(sorted(each)) for each in said} == {("answered", "recorded")}
    assert states(driver) == {"ready"}
    assert driver.value("select count(*) from treadle.steps") == ROUNDS


def test_the_second_of_two_concurrent_answers_is_reported_as_late(
    driver: Driver,
) -> None:
    waits = [wait_id for _, wait_id in many_blocked(driver, {"question": "Ship it?"})]

    said = rounds(
        driver,
        ROUNDS,
        lambda session, n: answer(session, waits[n], "yes", "alice"),
        lambda session, n: answer(session, waits[n], "no", "bob"),
    )

    assert {tuple(sorted(each)) for each in said} == {("TR102", "answered")}
    for wait_id, (alice, _) in zip(waits, said, strict=True):
        assert wait_of(driver, wait_id)["answer"] == ("yes" if alice == "answered" else "no")


def test_of_an_answer_and_the_expiry_exactly_one_counts(driver: Driver) -> None:
    pairs = many_blocked(driver, {"question": "Ship it?", "expires_s": 0.001})
    waits = [wait_id for _, wait_id in pairs]

    def expire(session: Driver, n: int) -> list[UUID]:
        others = [each for each in waits if each != waits[n]]
        return [each.id for each in expire_waits(session, 1, skip=others)]

    said = rounds(
        driver, ROUNDS, lambda session, n: answer(session, pairs[n][1], "yes", "alice"), expire
    )

    assert states(driver) == {"ready"}
    expired = {each for _, ids in said for each in ids}
    for (claim, wait_id), (alice, _) in zip(pairs, said, strict=True):
        assert (alice == "answered") != (wait_id in expired), alice
        found = answers_of(driver, claim.id)["ask"]
        assert found["status"] == ("expired" if wait_id in expired else "answered")


def test_an_answer_while_the_task_gives_up_its_claim_is_never_lost(driver: Driver) -> None:
    claims = many_claimed(driver)
    waits = [ask(driver, claim) for claim in claims]

    said = rounds(
        driver,
        ROUNDS,
        lambda session, n: suspend(session, claims[n], waits[n]),
        lambda session, n: answer(session, waits[n], "yes"),
    )

    assert {each for _, each in said} == {"answered"}
    assert {each for each, _ in said} <= {"ready", "blocked"}
    assert states(driver) == {"ready"}


def test_an_answer_while_the_task_is_cancelled_counts_or_is_refused(driver: Driver) -> None:
    pairs = many_blocked(driver, {"question": "Ship it?"}, 100)

    said = rounds(
        driver,
        100,
        lambda session, n: answer(session, pairs[n][1], "yes"),
        lambda session, n: session.cancel(pairs[n][0].id),
    )

    assert {each for each, _ in said} <= {"answered", "TR102"}
    assert states(driver) == {"cancelled"}
    assert driver.value("select count(*) from treadle.waits where status = 'open'") == 0


def test_an_event_while_the_task_begins_to_wait_is_never_lost(driver: Driver) -> None:
    claims = many_claimed(driver)

    def wait(session: Driver, n: int) -> str:
        return suspend(session, claims[n], expect(session, claims[n], f"e{n}")["wait_id"])

    said = rounds(driver, ROUNDS, wait, lambda session, n: emit(session, f"e{n}", n))

    assert {each for each, _ in said} <= {"ready", "blocked"}
    assert states(driver) == {"ready"}
    assert driver.value("select count(*) from treadle.waits where status = 'answered'") == ROUNDS


def test_many_waits_and_events_of_one_topic_never_deadlock_and_none_is_lost(
    driver: Driver,
) -> None:
    claims = many_claimed(driver, 3 * 100)

    def wait(session: Driver, claim: Claim) -> str:
        rows = [expect(session, claim, "tick", name) for name in ("first", "second")]
        return suspend(session, claim, *(row["wait_id"] for row in rows))

    said = rounds(
        driver,
        100,
        *(lambda session, n, at=at: wait(session, claims[3 * n + at]) for at in range(3)),
        *(lambda session, n: emit(session, "tick", n),) * 2,
    )
    assert {each for row in said for each in row[:3]} <= {"ready", "blocked"}
    assert all(isinstance(each, int) for row in said for each in row[3:]), said
    emit(driver, "tick")
    emit(driver, "tick")

    assert states(driver) == {"ready"}
    query = "select count(distinct event_id) from treadle.waits group by task_id"
    assert {row[0] for row in driver.rows(query)} == {2}


def test_the_same_event_at_the_same_moment_is_emitted_once(driver: Driver) -> None:
    said = rounds(
        driver,
        100,
        *(lambda session, n: emit(session, "paid", n, dedup_key=str(n)),) * 2,
        lambda session, n: emit(session, "paid", n, "another key", dedup_key=str(n)),
    )

    assert all(len(set(each)) == 1 for each in said)
    assert driver.value("select count(*) from treadle.events where kind = 'paid'") == 100
