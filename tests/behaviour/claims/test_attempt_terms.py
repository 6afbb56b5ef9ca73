"""What an attempt gets: its models, the notes of earlier attempts, and the poison pill flag."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged

AT_ONCE = {"strategy": "immediate"}
NOTE = "select treadle.add_attempt_note(%s, %s, %s)"


@pytest.mark.requirement("F14")
def test_fallback_models_are_in_force_from_the_third_attempt_that_counts(driver: Driver) -> None:
    driver.agent("a")
    given: dict[str, Any] = {"models": ["large"], "fallback_models": ["small"]}
    driver.enqueue(max_attempts=9, retry={**AT_ONCE, "poison": False}, **given)
    seen = []
    for _ in range(2):
        claim = driver.claim_one()
        seen.append(claim.models)
        # Released and rate limited: no attempt is counted.
        driver.release(claim)
        claim = driver.claim_one()
        driver.fail(claim, failure_class="rate_limit", retry_after=0)
        claim = driver.claim_one()
        seen.append(claim.models)
        driver.fail(claim)

    third = driver.claim_one()

    assert seen == [["large"]] * 4
    assert (third.attempt, third.models) == (3, ["small"])
    assert [past["model"] for past in third.previous or [] if past["outcome"] == "failed"] == [
        "large",
        "large",
    ]
    shown = "select models, fallback_models from treadle.task_details"
    assert driver.rows(shown) == [(["small"], ["small"])]


@pytest.mark.requirement("F14")
@pytest.mark.parametrize("fallback", [None, []])
def test_without_fallback_models_the_models_stay(driver: Driver, fallback: Any) -> None:
    driver.agent("a")
    driver.rows("select treadle.define_type('code', '{\"models\": [\"large\"]}')")
    driver.enqueue(retry={**AT_ONCE, "poison": False}, fallback_models=fallback)
    for _ in range(2):
        driver.fail(driver.claim_one())

    assert driver.claim_one().models == ["large"]


@pytest.mark.requirement("F14")
@pytest.mark.parametrize("models", [[""], [None], ["x" * 201], ["m"] * 41])
def test_models_are_names(driver: Driver, models: Any) -> None:
    with unchanged(driver), refused("TR001", "models must be"):
        driver.enqueue(models=models)
    with unchanged(driver), refused("TR001", "models must be"):
        driver.rows("select treadle.define_type('code', %s)", Jsonb({"fallback_models": models}))


def test_notes_are_fenced_bounded_and_show_no_token(driver: Driver) -> None:
    driver.agent("a")
    driver.enqueue(retry=AT_ONCE)
    first = driver.claim_one()
    driver.rows(NOTE, first.id, first.token, "a dead end")
    driver.rows(NOTE, first.id, first.token, "a dead end")
    driver.fail(first)
    second = driver.claim_one()
    driver.rows(NOTE, second.id, second.token, "another way")

    with unchanged(driver), refused("TR101"):
        driver.rows(NOTE, first.id, first.token, "too late")
    for wrong in ("", None, "x" * 4001):
        with unchanged(driver), refused("TR001", "1 to 4000 bytes"):
            driver.rows(NOTE, second.id, second.token, wrong)

    [past] = second.previous or []
    assert past["notes"] == ["a dead end"]
    [[shown]] = driver.rows("select attempt_notes from treadle.task_details")
    assert [(each["attempt"], each["note"]) for each in shown] == [
        (1, "a dead end"),
        (2, "another way"),
    ]
    assert all("token" not in each for each in shown)


def test_a_task_has_at_most_a_hundred_notes(driver: Driver) -> None:
    driver.agent("a")
    driver.enqueue()
    claim = driver.claim_one()
    for number in range(100):
        driver.rows(NOTE, claim.id, claim.token, f"note {number}")

    with unchanged(driver), refused("TR001", "already has 100 notes"):
        driver.rows(NOTE, claim.id, claim.token, "one more")


@pytest.mark.requirement("F17")
def test_a_poison_pill_skips_its_remaining_retries_and_is_flagged(driver: Driver) -> None:
    driver.agent("a")
    driver.agent("b")
    task_id = driver.enqueue(max_attempts=10, retry=AT_ONCE)
    verdicts = [driver.fail(driver.claim_one(agent)) for agent in ("a", "b", "a")]

    assert verdicts == ["ready", "ready", "dead_lettered"]
    assert driver.claim("a") == driver.claim("b") == []
    details = "select poison_pill, attempt, max_attempts from treadle.task_details where id = %s"
    assert driver.rows(details, task_id) == [(True, 3, 10)]
    assert driver.value("select poison_pill from treadle.dead_letter_details") is True
    [event] = [e for e in driver.events(task_id) if e["kind"] == "task.dead_lettered"]
    assert event["data"]["poison_pill"] is True
    driver.retry(task_id)
    assert driver.rows(details, task_id) == [(False, 3, 13)]


@pytest.mark.requirement("F17")
def test_refused_outputs_and_lost_workers_make_a_poison_pill_too(driver: Driver) -> None:
    driver.agent("a")
    driver.agent("b")
    task_id = driver.enqueue(max_attempts=10, retry=AT_ONCE)
    driver.expire(driver.claim_one("a"))
    driver.fail(driver.claim_one("b"), failure_class="invalid_output")

    driver.expire(driver.claim_one("b"))

    assert driver.state_of(task_id) == "dead_lettered"
    assert driver.value("select poison_pill from treadle.dead_letters") is True
