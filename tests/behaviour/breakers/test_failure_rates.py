"""A type that fails too often fires its trigger once per window."""

from datetime import timedelta
from typing import Any

import pytest

from tests.drivers import triggers
from tests.drivers.engine import Driver
from tests.drivers.races import flat, together
from tests.drivers.refusals import refused
from tests.drivers.triggers import define, finish, fire, trigger

RATE = {"type": "research", "window_s": 3600, "limit": 0.3, "min_attempts": 10}
REVIEW = {"type": "review", "title": "too many failures", "spec": {"$event": "data"}}


def watch(driver: Driver, **changes: Any) -> None:
    define(driver, on=None, failure_rate={**RATE, **changes}, task=REVIEW)


def check(driver: Driver) -> list[str]:
    return [row[0] for row in driver.rows("select name from treadle.check_failure_rates()")]


def work(driver: Driver, good: int, bad: int, type: str = "research") -> None:
    """Attempts at tasks of a type that go well, and such that fail."""
    for n in range(good + bad):
        driver.enqueue(type=type)
        if n < good:
            finish(driver, types=[type])
        else:
            driver.fail(driver.claim_one(types=[type]), f"no host {n}: timed out", action="fail")


def later(driver: Driver, **time: float) -> None:
    driver.set_clock(timedelta(**time))


@pytest.mark.requirement("F18")
def test_a_type_that_fails_too_often_files_one_review_with_the_figures(driver: Driver) -> None:
    watch(driver)
    work(driver, good=6, bad=4)
    work(driver, good=0, bad=5, type="code")

    assert check(driver) == ["t"]
    [fired] = fire(driver)

    assert fired.task_id is not None
    task = driver.task(fired.task_id)
    spec = task["spec"]
    assert (task["type"], task["title"]) == ("review", "too many failures")
    assert (spec["type"], spec["attempts"], spec["failed"], spec["rate"]) == (
        "research",
        10,
        4,
        0.4,
    )
    [error] = spec["errors"]
    assert (error["class"], error["times"]) == ("error", 4)
    assert error["error"] == "no host 9: timed out"
    assert len(error["fingerprint"]) == 12
    assert trigger(driver)["passed_at"] is not None


@pytest.mark.parametrize(
    ("good", "bad"), [(7, 3), (5, 4), (10, 0)], ids=["at the limit", "too few", "none"]
)
def test_below_the_limit_nothing_is_filed(driver: Driver, good: int, bad: int) -> None:
    watch(driver)
    work(driver, good, bad)

    assert check(driver) == []
    assert fire(driver) == []
    assert trigger(driver)["passed_at"] is None


def test_a_changed_limit_is_evaluated_again(driver: Driver) -> None:
    watch(driver)
    work(driver, good=0, bad=10)
    assert check(driver) == ["t"]

    watch(driver)
    assert check(driver) == [], "nothing has changed"
    watch(driver, limit=0.2)
    assert check(driver) == ["t"]


@pytest.mark.requirement("F18")
def test_once_in_a_window_and_again_in_the_next(driver: Driver) -> None:
    watch(driver)
    work(driver, good=0, bad=10)
    assert check(driver) == ["t"]

    for minutes in (2, 30, 59):
        later(driver, minutes=minutes)
        work(driver, good=0, bad=5)
        assert check(driver) == []
    later(driver, minutes=61)
    assert check(driver) == ["t"]
    # What failed before the window is no reason any more.
    later(driver, minutes=200)
    assert check(driver) == []
    assert len(fire(driver)) == 2


def test_it_is_looked_at_once_a_minute(driver: Driver) -> None:
    watch(driver)
    assert check(driver) == []
    work(driver, good=0, bad=10)
    assert check(driver) == []
    later(driver, seconds=61)
    assert check(driver) == ["t"]


@pytest.mark.requirement("F18")
def test_ten_that_look_at_once_file_one(driver: Driver) -> None:
    watch(driver)
    work(driver, good=0, bad=10)

    assert flat(together(driver, 10, lambda session, _: check(session))) == ["t"]
    assert len(fire(driver)) == 1
    assert len(triggers.made(driver)) == 1


def test_rate_limits_and_cancelled_attempts_are_not_failures(driver: Driver) -> None:
    watch(driver, min_attempts=4)
    work(driver, good=4, bad=0)
    for _ in range(4):
        driver.enqueue(type="research")
        driver.fail(driver.claim_one(types=["research"]), failure_class="rate_limit")
        driver.rows("update treadle.gates set closed_until = null")

    assert check(driver) == []


def test_others_can_follow_the_same_event_and_a_paused_one_is_not_looked_at(
    driver: Driver,
) -> None:
    watch(driver)
    define(driver, "tell", on="type.failure_rate_exceeded", filter={"data": {"type": "research"}})
    work(driver, good=0, bad=10)
    driver.rows("select treadle.pause_trigger('t')")
    assert check(driver) == []
    driver.rows("select treadle.resume_trigger('t')")

    assert check(driver) == ["t"]
    assert len(fire(driver)) == 2


@pytest.mark.parametrize(
    ("rate", "code", "words"),
    [
        ({**RATE, "type": "resarch"}, "TR203", "resarch"),
        ({**RATE, "window_s": 5}, "TR001", "window_s"),
        ({**RATE, "window_s": "x"}, "TR001", "window_s"),
        ({**RATE, "limit": 1}, "TR001", "limit must be"),
        ({**RATE, "limit": None}, "TR001", "limit must be"),
        ({**RATE, "min_attempts": 0}, "TR001", "min_attempts"),
        ({**RATE, "more": 1}, "TR001", "accepts only"),
        ({"window_s": 60, "limit": 0.5}, "TR001", "needs a task type"),
        ([], "TR001", "must be a JSON object"),
    ],
    ids=str,
)
def test_a_limit_that_makes_no_sense_is_refused(
    driver: Driver, rate: Any, code: str, words: str
) -> None:
    with refused(code, words):
        define(driver, on=None, failure_rate=rate, task=REVIEW)
