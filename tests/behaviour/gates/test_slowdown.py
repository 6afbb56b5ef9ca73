"""A rate limit in one attempt closes its gate for all agents."""

import json

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.gates import behind, closed_for, define_gate, events, gate, limited, pass_time
from tests.drivers.notifications import Listener
from treadle.models import Claim

pytestmark = pytest.mark.requirement("R6")


def test_a_rate_limit_closes_the_gate_for_every_agent_and_no_other_lane(driver: Driver) -> None:
    claim = behind(driver, "llm")
    other = driver.enqueue(priority=90)

    assert limited(driver, claim, retry_after=30) == "retrying"

    assert 29 < closed_for(driver, "llm") <= 30
    assert [each.id for each in driver.claim("b", 10)] == [other]
    pass_time(driver, "llm")
    assert len(driver.claim("b", 10)) == 1


def test_the_task_waits_for_its_gate_and_keeps_its_attempt_and_its_steps(driver: Driver) -> None:
    claim = behind(driver, "llm")
    driver.rows("select treadle.save_step(%s, %s, 'think', '42')", claim.id, claim.token)
    limited(driver, claim, retry_after=30)

    task = driver.task(claim.id)
    assert (task["status"], task["attempt"], task["rate_limits"]) == ("retrying", 0, 1)
    assert task["retry_at"] == gate(driver, "llm")["closed_until"]
    assert driver.promote() == []

    driver.fall_due(claim.id)
    again = {each.id: each for each in driver.claim("b", 2)}[claim.id]
    assert again.attempt == 1
    assert [each["name"] for each in again.steps or []] == ["think"]


def test_without_a_time_it_is_a_minute_then_twice_as_long_each_time_up_to_an_hour(
    driver: Driver,
) -> None:
    define_gate(driver, "llm")
    waits = []
    for _ in range(9):
        driver.enqueue(gates=["llm"])
        claim = driver.claim_one("a")
        limited(driver, claim)
        waits.append(closed_for(driver, "llm"))
        driver.cancel(claim.id)
        pass_time(driver, "llm")

    expected = [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    for wait, least in zip(waits, expected, strict=True):
        assert least - 1 < wait <= least * 1.1
    assert len({round(wait / least, 6) for wait, least in zip(waits, expected, strict=True)}) > 5


def test_many_that_meet_it_at_once_are_one_slow_down(driver: Driver) -> None:
    define_gate(driver, "llm")
    driver.enqueue_batch([{}] * 10, gates=["llm"])
    claims = driver.claim("a", 10)
    for claim in claims:
        limited(driver, claim)

    assert gate(driver, "llm")["slowdowns"] == 1
    assert closed_for(driver, "llm") <= 66
    assert len(events(driver, "gate.closed")) == 1
    assert {driver.task(claim.id)["retry_at"] for claim in claims} == {
        gate(driver, "llm")["closed_until"]
    }


def test_a_longer_time_wins_and_a_shorter_one_does_not(driver: Driver) -> None:
    define_gate(driver, "llm")
    driver.enqueue_batch([{}] * 3, gates=["llm"])
    first, second, third = driver.claim("a", 3)
    limited(driver, first, retry_after=100)
    limited(driver, second, retry_after=10)
    assert 99 < closed_for(driver, "llm") <= 100
    assert seconds_left(driver, second) > 99

    limited(driver, third, retry_after=200)
    assert 199 < closed_for(driver, "llm") <= 200


def seconds_left(driver: Driver, claim: Claim) -> float:
    query = (
        "select extract(epoch from retry_at - treadle.clock())::float8 "
        "from treadle.tasks where id = %s"
    )
    return float(driver.value(query, claim.id))


def test_a_time_is_kept_within_a_day(driver: Driver) -> None:
    for seconds in (1e9, float("inf")):
        claim = behind(driver, "llm")
        limited(driver, claim, retry_after=seconds)
        assert 86399 < closed_for(driver, "llm") <= 86400
        driver.rows("select treadle.open_gate('llm')")


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_time_that_makes_no_sense_is_as_good_as_none(driver: Driver, seconds: float) -> None:
    limited(driver, behind(driver, "llm"), retry_after=seconds)

    assert 59 < closed_for(driver, "llm") <= 66


def test_a_success_after_the_opening_resets_the_count(driver: Driver) -> None:
    early = behind(driver, "llm")
    limited(driver, driver.claim_one("b"))
    driver.complete(early)
    assert gate(driver, "llm")["slowdowns"] == 1

    pass_time(driver, "llm")
    driver.enqueue(gates=["llm"])
    driver.complete(driver.claim_one("a"))
    assert gate(driver, "llm")["slowdowns"] == 0


@pytest.mark.parametrize(
    ("gates", "key", "closed"),
    [
        (["llm", "search"], "search", "search"),
        (["search", "llm"], None, "search"),
        (["llm"], "nonsense", "llm"),
        (["llm"], "type:code", "type:code"),
        ([], None, "type:code"),
        ([], "llm", "type:code"),
    ],
)
def test_which_gate_is_closed(
    driver: Driver, gates: list[str], key: str | None, closed: str
) -> None:
    define_gate(driver, "llm")
    define_gate(driver, "search")
    driver.enqueue(gates=gates)
    limited(driver, driver.claim_one("a"), retry_after=30, key=key)

    rows = driver.rows("select key from treadle.gates where closed_until is not null")
    assert rows == [(closed,)]


def test_the_gates_of_a_type_are_those_of_its_tasks(driver: Driver) -> None:
    declare = Jsonb({"crawl": {"gates": ["provider", "llm"]}})
    driver.rows("select treadle.declare_types(%s, '{}')", declare)
    driver.enqueue_batch([{}] * 2, type="crawl")
    claim = driver.claim_one("a")
    assert claim.gates == ["llm", "provider", "type:crawl"]

    limited(driver, claim, retry_after=30)
    assert closed_for(driver, "provider") > 29
    assert closed_for(driver, "llm") == 0


@pytest.mark.parametrize("verdict", ["dead_lettered", "cancelled"])
def test_it_closes_the_gate_also_when_the_task_gives_up(driver: Driver, verdict: str) -> None:
    claim = behind(driver, "llm")
    action = {"dead_lettered": "fail", "cancelled": "cancel"}[verdict]

    assert limited(driver, claim, retry_after=30, action=action) == verdict
    assert closed_for(driver, "llm") > 29


def test_rate_limits_are_bounded_whatever_gate_they_close(driver: Driver) -> None:
    define_gate(driver, "llm")
    task = driver.enqueue(gates=["llm"], max_attempts=1, retry={"max_rate_limits": 2})
    verdicts = []
    for _ in range(3):
        verdicts.append(limited(driver, driver.claim_one("a")))
        if verdicts[-1] == "retrying":
            driver.fall_due(task)

    assert verdicts == ["retrying", "retrying", "dead_lettered"]


def test_every_worker_is_notified_of_a_closed_gate_and_none_is_woken(driver: Driver) -> None:
    claim = behind(driver, "llm")
    ear = Listener(driver, "treadle_slowdown", "task_ready.default", "treadle_due")
    driver.claim("b", idle=True, types=["review"])
    limited(driver, claim, retry_after=30)

    [told] = ear.notes()
    assert told.channel == "treadle_slowdown"
    payload = json.loads(told.payload)
    assert payload["key"] == "llm"
    assert payload["in_s"] == pytest.approx(30, abs=1)


def test_the_promoter_reopens_a_gate_in_time_and_wakes_idle_workers(
    driver: Driver,
) -> None:
    limited(driver, behind(driver, "llm"), retry_after=30)
    assert driver.value("select treadle.reopen_gates()") == 0
    due = driver.value("select treadle.next_due_at()")
    assert due == gate(driver, "llm")["closed_until"]

    pass_time(driver, "llm")
    ear = Listener(driver, "task_ready.default")
    driver.claim("b", idle=True, types=["review"])
    assert driver.value("select treadle.reopen_gates()") == 1
    assert ear.heard() == ["task_ready.default"]
    assert [each["data"]["key"] for each in events(driver, "gate.opened")] == ["llm"]
    assert gate(driver, "llm")["closed_until"] is None
