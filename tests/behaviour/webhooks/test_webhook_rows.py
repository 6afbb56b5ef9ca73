"""What SQL decides about webhooks: the notifier, the next event, and the next attempt."""

import json
from datetime import timedelta
from uuid import UUID

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import unchanged
from tests.drivers.webhooks import URL, add, due, emit, hook, read, take

LATER = timedelta(hours=2)


def ack(driver: Driver, name: str, token: UUID, event: tuple[str, int, int]) -> bool:
    return bool(
        driver.value(
            "select treadle.ack_webhook(%s, %s, %s::xid8, %s, 200)", name, token, event[0], event[1]
        )
    )


def fail(driver: Driver, name: str, status: int | None = 500, after_s: float | None = None) -> str:
    due(driver)
    token, _ = take(driver)
    return str(
        driver.value(
            "select treadle.fail_webhook(%s, %s, 1, %s, 'answered', %s)",
            *(name, token, status, after_s),
        )
    )


def wait_s(driver: Driver, name: str) -> float:
    return float(
        driver.value(
            "select extract(epoch from next_try_at - last_try_at) from treadle.webhooks"
            " where name = %s",
            name,
        )
    )


@pytest.mark.requirement("F23")
def test_one_at_a_time_delivers_to_an_endpoint(driver: Driver) -> None:
    add(driver, "ops", URL)
    emit(driver, 1, 2)

    token, names = take(driver)
    other, none = take(driver.another())

    assert (names, none) == (["ops"], [])
    [first, _] = read(driver, "ops", token)
    assert read(driver, "ops", other) == []
    assert not ack(driver, "ops", other, first)
    assert ack(driver, "ops", token, first)
    assert [n for _, _, n in read(driver, "ops", token)] == [2]


def test_a_take_whose_answer_was_lost_can_be_repeated(driver: Driver) -> None:
    add(driver, "ops", URL)
    emit(driver, 1)
    token, names = take(driver)

    again = driver.rows("select name from treadle.take_webhooks(%s)", token)
    _, others = take(driver)

    assert (names, again, others) == (["ops"], [("ops",)], [])


def test_two_that_take_at_the_same_moment_do_not_share_an_endpoint(driver: Driver) -> None:
    add(driver, "one", URL)
    add(driver, "two", URL)
    emit(driver, 1)
    other = driver.another()
    other.rows("begin")
    _, first = take(other, limit=1)

    _, second = take(driver, limit=2)
    other.rows("commit")

    assert sorted([*first, *second]) == ["one", "two"]
    assert len(first) == len(second) == 1


def test_a_lease_that_ran_out_goes_to_the_next_and_the_first_can_change_nothing(
    driver: Driver,
) -> None:
    add(driver, "ops", URL)
    emit(driver, 1, 2)
    token, _ = take(driver)
    [first, second] = read(driver, "ops", token)
    driver.rows("update treadle.webhooks set lease_until = treadle.clock()")

    other, names = take(driver)

    assert names == ["ops"]
    assert ack(driver, "ops", other, first)
    with unchanged(driver):
        assert not ack(driver, "ops", token, second)
        assert driver.value("select treadle.fail_webhook('ops', %s, 1, 500, 'x') is null", token)
        driver.rows("select treadle.release_webhook('ops', %s)", token)


def test_an_event_that_is_acknowledged_twice_counts_once(driver: Driver) -> None:
    add(driver, "ops", URL)
    emit(driver, 1, 2)
    token, _ = take(driver)
    [first, second] = read(driver, "ops", token)

    assert ack(driver, "ops", token, first)
    assert ack(driver, "ops", token, second)
    assert ack(driver, "ops", token, first)

    assert hook(driver, "ops")["delivered"] == 2
    assert read(driver, "ops", token) == []


@pytest.mark.requirement("F23")
def test_events_that_commit_late_are_not_skipped(driver: Driver) -> None:
    add(driver, "ops", URL)
    late = driver.another()
    late.rows("begin")
    emit(late, 1, kind="test.late")
    emit(driver, 2)

    token, _ = take(driver)
    before = read(driver, "ops", token)
    late.rows("commit")

    assert before == []
    assert [n for _, _, n in read(driver, "ops", token)] == [1, 2]


def test_unselected_events_are_skipped_and_later_ones_are_not(driver: Driver) -> None:
    add(driver, "ops", URL)
    driver.rows("insert into treadle.events (kind) select 'other' from generate_series(1, 1200)")
    emit(driver, 7)
    token, _ = take(driver)

    assert [n for _, _, n in read(driver, "ops", token)] == [7]
    assert hook(driver, "ops")["unread"] == 1


def test_a_batch_is_small_and_an_event_that_is_not_comes_alone(driver: Driver) -> None:
    add(driver, "ops", URL)
    for number in range(4):
        payload = json.dumps({"n": number, "text": "x" * 200_000})
        driver.rows("select treadle.emit_event('test.large', %s::jsonb)", payload)
    token, _ = take(driver)

    assert [n for _, _, n in read(driver, "ops", token)] == [0]
    emit(driver, *range(200))
    driver.rows(
        "update treadle.event_readers set xid = (select max(xid) from treadle.events"
        " where kind = 'test.large')"
    )
    assert len(read(driver, "ops", token, limit=100)) == 100


@pytest.mark.requirement("F23")
def test_the_time_between_tries_doubles_up_to_a_quarter_of_an_hour(driver: Driver) -> None:
    add(driver, "ops", URL)
    emit(driver, 1)
    waits = []
    for _ in range(13):
        fail(driver, "ops")
        waits.append(wait_s(driver, "ops"))

    for number, waited in enumerate(waits):
        full = min(2**number, 900)
        assert 0.75 * full - 0.01 <= waited <= full + 0.01


@pytest.mark.parametrize(("asked", "waited"), [(120, 120), (0, 0.75), (100_000, 3600)])
def test_what_the_receiver_asks_for_is_kept_within_an_hour(
    driver: Driver, asked: float, waited: float
) -> None:
    add(driver, "ops", URL)
    emit(driver, 1)

    fail(driver, "ops", 429, asked)

    assert waited - 0.01 <= wait_s(driver, "ops") <= max(waited, 1) + 0.01


def test_a_receiver_that_returns_gone_pauses_the_webhook_and_its_events_wait(
    driver: Driver,
) -> None:
    add(driver, "ops", URL)
    emit(driver, 1)

    assert fail(driver, "ops", 410) == "paused"

    due(driver)
    assert take(driver)[1] == []
    assert "410" in str(hook(driver, "ops")["reason"])
    driver.rows("select treadle.resume_webhook('ops')")
    token, names = take(driver)
    assert names == ["ops"]
    assert [n for _, _, n in read(driver, "ops", token)] == [1]


@pytest.mark.requirement("F23")
def test_a_webhook_that_keeps_failing_emits_one_event_and_keeps_its_events(
    driver: Driver,
) -> None:
    add(driver, "ops", URL)
    emit(driver, 1)

    states = [fail(driver, "ops") for _ in range(12)]

    assert states == ["active"] * 9 + ["failing"] * 3
    due(driver)
    token, _ = take(driver)
    [event] = read(driver, "ops", token)
    assert ack(driver, "ops", token, event)
    assert hook(driver, "ops")["status"] == "active"
    kinds = driver.rows(
        "select kind, data ->> 'webhook' from treadle.events where kind like 'webhook.%%'"
        " order by id"
    )
    assert kinds == [
        ("webhook.added", "ops"),
        ("webhook.failed", "ops"),
        ("webhook.recovered", "ops"),
    ]


def test_a_pause_while_a_message_is_under_way_does_not_send_it_twice(driver: Driver) -> None:
    add(driver, "ops", URL)
    emit(driver, 1, 2)
    token, _ = take(driver)
    [first, _] = read(driver, "ops", token)
    driver.rows("select treadle.pause_webhook('ops', 'moving')")

    assert not ack(driver, "ops", token, first)

    assert read(driver, "ops", token) == []
    assert (hook(driver, "ops")["delivered"], hook(driver, "ops")["status"]) == (1, "paused")
