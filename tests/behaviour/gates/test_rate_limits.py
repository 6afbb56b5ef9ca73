"""Limits on starts, tokens or dollars per period are exact across all agents."""

from datetime import timedelta

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.gates import closed_for, define_gate, gate, pass_time, probe_due
from tests.drivers.refusals import refused, unchanged
from treadle.models import Claim

pytestmark = pytest.mark.requirement("B6")


def used(driver: Driver, key: str = "llm") -> float:
    return float(driver.value("select used from treadle.gate_status where key = %s", key))


def later(driver: Driver, seconds: int) -> None:
    """So much later, while the clock stands still."""
    move = "update public.test_clock set stopped_at = stopped_at + make_interval(secs => %s)"
    driver.rows(move, seconds)


def test_so_many_start_in_a_period_and_then_none_until_there_is_room(driver: Driver) -> None:
    define_gate(driver, "llm", limit=3, per_s=60)
    driver.enqueue_batch([{}] * 5, gates=["llm"])
    driver.set_clock(timedelta(0), stopped=True)

    assert len(driver.claim("a", 10)) == 3
    assert driver.claim("b", 10) == []
    assert 59 < closed_for(driver, "llm") < 62

    later(driver, 59)
    assert driver.claim("a", 10) == []
    later(driver, 3)
    assert len(driver.claim("a", 10)) == 2


def test_what_started_almost_a_period_ago_still_counts(driver: Driver) -> None:
    define_gate(driver, "llm", limit=3, per_s=60)
    driver.enqueue_batch([{}] * 5, gates=["llm"])
    driver.set_clock(timedelta(0), stopped=True)
    assert len(driver.claim("a", 2)) == 2

    later(driver, 59)
    assert len(driver.claim("a", 10)) == 1


def test_what_is_behind_a_full_gate_does_not_hold_up_the_rest(driver: Driver) -> None:
    define_gate(driver, "llm", limit=1, per_s=60)
    limited = [driver.enqueue(gates=["llm"], priority=1) for _ in range(3)]
    free = [driver.enqueue(priority=90) for _ in range(3)]

    assert [claim.id for claim in driver.claim("a", 4)] == [limited[0], *free]
    assert driver.task(limited[1])["attempt"] == 0


def test_a_limit_of_a_type_needs_no_gate_by_name(driver: Driver) -> None:
    define_gate(driver, "type:code", limit=2, per_s=60)
    driver.enqueue_batch([{}] * 5)
    other = driver.enqueue(type="review", priority=90)

    assert len(driver.claim("a", 2)) == 2
    assert [claim.id for claim in driver.claim("a", 5)] == [other]


def test_a_task_passes_all_its_gates_or_counts_at_none(driver: Driver) -> None:
    define_gate(driver, "first", limit=1, per_s=60)
    define_gate(driver, "second", limit=5, per_s=60)
    both = [driver.enqueue(gates=["first", "second"]) for _ in range(2)]
    one = [driver.enqueue(gates=["second"]) for _ in range(5)]

    assert [claim.id for claim in driver.claim("a", 10)] == [both[0], *one[:4]]
    assert (used(driver, "first"), used(driver, "second")) == (1, 5)


def test_tokens_are_charged_with_the_claim_by_what_the_task_may_use(driver: Driver) -> None:
    define_gate(driver, "llm", limit=1000, per_s=60, unit="tokens")
    driver.enqueue_batch([{}] * 4, gates=["llm"], max_tokens=400)

    assert len(driver.claim("a", 10)) == 2
    assert used(driver) == 800


def test_dollars_are_charged_by_what_the_task_may_still_spend(driver: Driver) -> None:
    define_gate(driver, "llm", limit=10, per_s=60, unit="usd")
    task = driver.enqueue(gates=["llm"], max_cost_usd=4)
    driver.rows("update treadle.tasks set cost_usd = 1.5 where id = %s", task)

    driver.claim_one("a")

    assert used(driver) == 2.5


def test_later_tasks_do_not_overtake_a_task_that_needs_more(driver: Driver) -> None:
    define_gate(driver, "llm", limit=1000, per_s=60, unit="tokens")
    sizes = [600, 600, 100]
    tasks = [driver.enqueue(gates=["llm"], max_tokens=size) for size in sizes]

    assert [claim.id for claim in driver.claim("a", 10)] == tasks[:1]
    driver.rows("delete from treadle.gate_uses")
    pass_time(driver, "llm")
    assert [claim.id for claim in driver.claim("a", 10)] == tasks[1:]


def test_a_task_without_an_estimate_starts_if_any_of_the_limit_is_left(
    driver: Driver,
) -> None:
    define_gate(driver, "llm", limit=100, per_s=60, unit="tokens")
    driver.enqueue_batch([{}] * 2, gates=["llm"])
    claim = driver.claim_one("a")
    assert used(driver) == 0

    spend(driver, claim, 130)

    assert used(driver) == 130
    assert driver.claim("a") == []


def test_what_is_spent_beyond_what_was_charged_is_charged_too(driver: Driver) -> None:
    define_gate(driver, "llm", limit=1000, per_s=60, unit="tokens")
    driver.enqueue(gates=["llm"], max_tokens=100)
    claim = driver.claim_one("a")

    spend(driver, claim, 90)
    assert used(driver) == 100
    spend(driver, claim, 40)
    assert used(driver) == 130
    spend(driver, claim, 5, usd=3)
    assert used(driver) == 135


def spend(driver: Driver, claim: Claim, tokens: int, **more: object) -> None:
    calls = Jsonb([{"input_tokens": tokens, **more}])
    driver.rows("select treadle.record_spend(%s, %s, %s)", claim.id, claim.token, calls)


def test_a_task_that_needs_more_than_the_whole_limit_lets_the_others_pass(driver: Driver) -> None:
    define_gate(driver, "llm", limit=1000, per_s=60, unit="tokens")
    large = [driver.enqueue(gates=["llm"], max_tokens=5000, priority=1) for _ in range(3)]
    small = driver.enqueue(gates=["llm"], max_tokens=10)

    assert [claim.id for claim in driver.claim("a", 1)] == [small]
    assert {driver.state_of(task) for task in large} == {"ready"}

    define_gate(driver, "llm", limit=4000)
    assert driver.claim("a", 5) == []
    define_gate(driver, "llm", limit=6000)
    assert [claim.id for claim in driver.claim("a", 5)] == large[:1]
    define_gate(driver, "llm", limit=None)
    assert [claim.id for claim in driver.claim("a", 5)] == large[1:]


def test_a_limit_that_is_raised_lets_more_through_at_once(driver: Driver) -> None:
    define_gate(driver, "llm", limit=1, per_s=60)
    driver.enqueue_batch([{}] * 5, gates=["llm"])
    assert (len(driver.claim("a", 5)), len(driver.claim("a", 5))) == (1, 0)

    define_gate(driver, "llm", limit=3)
    assert len(driver.claim("a", 5)) == 2


def test_what_was_used_counts_under_another_period_too(driver: Driver) -> None:
    define_gate(driver, "llm", limit=4, per_s=60)
    driver.enqueue_batch([{}] * 6, gates=["llm"])
    assert len(driver.claim("a", 3)) == 3

    define_gate(driver, "llm", per_s=3600)
    assert used(driver) == 3
    assert len(driver.claim("a", 5)) == 1


def test_a_released_claim_still_counts_against_the_limit(driver: Driver) -> None:
    define_gate(driver, "llm", limit=2, per_s=60)
    driver.enqueue(gates=["llm"])
    for _ in range(2):
        driver.release(driver.claim_one("a"))

    assert driver.claim("a") == []


def test_a_probe_counts_at_the_gates_of_its_lane(driver: Driver) -> None:
    define_gate(driver, "llm", limit=1, per_s=60)
    driver.enqueue_batch([{}] * 3, gates=["llm"])
    driver.complete(driver.claim_one("a"))
    driver.rows("select treadle.trip_breaker('code')")
    probe_due(driver)

    assert driver.claim("a") == []
    assert gate(driver, "llm")["reason"] == "rate limit"


def test_old_uses_are_forgotten(driver: Driver) -> None:
    define_gate(driver, "llm", limit=1000, per_s=0.1)
    driver.enqueue_batch([{}] * 3, gates=["llm"])
    for minute in range(3):
        driver.set_clock(timedelta(minutes=minute), stopped=True)
        driver.claim_one("a")

    assert driver.value("select count(*) from treadle.gate_uses") == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"limit": 0, "per_s": 60}, "above 0"),
        ({"limit": -1, "per_s": 60}, "above 0"),
        ({"limit": "NaN", "per_s": 60}, "above 0"),
        ({"limit": "Infinity", "per_s": 60}, "above 0"),
        ({"limit": "many", "per_s": 60}, "invalid input"),
        ({"limit": 0.5, "per_s": 60}, "at least one start"),
        ({"limit": 5}, "a limit needs a period"),
        ({"per_s": 60}, "needs a limit"),
        ({"limit": 5, "per_s": 0}, "0.1 seconds to 31 days"),
        ({"limit": 5, "per_s": -60}, "0.1 seconds to 31 days"),
        ({"limit": 5, "per_s": "NaN"}, "0.1 seconds to 31 days"),
        ({"limit": 5, "per_s": 1e9}, "0.1 seconds to 31 days"),
        ({"limit": 5, "per_s": 60, "unit": "euros"}, "starts, tokens or usd"),
        ({"limit": 5, "per_s": 60, "burst": 3}, "unknown setting 'burst'"),
        ([], "JSON object"),
    ],
    ids=str,
)
def test_a_limit_that_makes_no_sense_is_refused(
    driver: Driver, settings: object, words: str
) -> None:
    with unchanged(driver), refused("TR001", words):
        driver.rows("select treadle.define_gate('llm', %s)", Jsonb(settings))


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 106, "over:5:llm", "type:cod", None])
def test_a_key_that_no_gate_can_have_is_refused(driver: Driver, key: str | None) -> None:
    with unchanged(driver), refused("TR001", "cannot be defined"):
        driver.rows("select treadle.define_gate(%s::text)", key)
