"""Validation in SQL: a state with a claim, under the same rules as running."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from treadle.models import Claim

pytestmark = pytest.mark.requirement("F20")

AT_ONCE = {"strategy": "immediate"}
CHECKS: list[dict[str, Any]] = [{"validator": "regex", "pattern": "^ok"}]


def validate(driver: Driver, claim: Claim) -> str:
    query = "select verdict from treadle.validate_tasks(%s, %s)"
    return str(driver.value(query, [claim.id], [claim.token]))


def reject(driver: Driver, claim: Claim, *messages: Any) -> str:
    query = """
        select treadle.fail_task(%s, %s, 'refused', 'invalid_output', p_feedback => %s)
    """
    return str(driver.value(query, claim.id, claim.token, Jsonb(list(messages))))


def validating(driver: Driver, *, start: bool = True, **options: Any) -> Claim:
    driver.agent("a")
    driver.enqueue(validation=CHECKS, **options)
    claim = driver.claim_one(start=start)
    assert validate(driver, claim) == "ok"
    return claim


@pytest.mark.parametrize("start", [True, False])
def test_a_claimed_task_becomes_validating_and_keeps_its_claim(driver: Driver, start: bool) -> None:
    claim = validating(driver, start=start)

    task = driver.task(claim.id)
    assert (task["status"], task["claim_token"], task["agent_id"]) == (
        "validating",
        claim.token,
        "a",
    )
    assert task["started_at"] is not None
    assert validate(driver, claim) == "ok"
    assert driver.state_of(claim.id) == "validating"


def test_starting_late_does_not_turn_a_validating_task_back(driver: Driver) -> None:
    claim = validating(driver, start=False)

    assert driver.start(claim) == "ok"

    assert driver.state_of(claim.id) == "validating"


def test_a_heartbeat_keeps_a_validating_task(driver: Driver) -> None:
    claim = validating(driver)
    driver.age_claim(claim.id, timedelta(seconds=80))
    before = driver.task(claim.id)["lease_until"]

    assert driver.heartbeat(claim) == "ok"

    assert driver.task(claim.id)["lease_until"] > before
    assert driver.reap() == []


def test_a_validating_task_without_heartbeats_is_reaped(driver: Driver) -> None:
    claim = validating(driver, retry=AT_ONCE)

    reaped = driver.expire(claim)

    assert (reaped.reason, reaped.status) == ("heartbeat_timeout", "ready")
    assert validate(driver, claim) == "lost"
    assert driver.state_of(claim.id) == "ready"


def test_a_validation_that_takes_longer_than_the_task_may_is_taken_back(driver: Driver) -> None:
    claim = validating(driver, timeout_s=100)
    driver.age_claim(claim.id, timedelta(seconds=101))
    driver.heartbeat(claim)

    [reaped] = driver.reap()

    assert reaped.reason == "timeout"


def test_a_validating_task_is_completed_failed_released_or_cancelled(driver: Driver) -> None:
    assert driver.complete(validating(driver), "ok") == "completed"
    assert driver.fail(validating(driver)) == "retrying"
    assert driver.release(validating(driver)) == "released"
    claim = driver.claim_one()
    assert validate(driver, claim) == "ok"
    assert driver.cancel(claim.id) == ["cancelled"]
    assert validate(driver, claim) == "cancelled"


def test_another_token_cannot_begin_a_validation(driver: Driver) -> None:
    driver.agent("a")
    driver.enqueue()
    claim = driver.claim_one()

    with unchanged(driver):
        query = "select verdict from treadle.validate_tasks(%s, %s)"
        assert driver.value(query, [claim.id], [uuid4()]) == "lost"


def test_a_full_audit_shows_the_validation(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('default', '{\"audit\": \"full\"}')")
    claim = validating(driver)
    driver.complete(claim)

    kinds = [event["kind"] for event in driver.events(claim.id)]
    assert kinds[-2:] == ["task.validation_started", "task.completed"]


def test_feedback_goes_to_the_next_attempt_and_is_bounded(driver: Driver) -> None:
    claim = validating(driver, retry=AT_ONCE)

    assert reject(driver, claim, "too short", "x" * 5000, *(f"m{n}" for n in range(50))) == "ready"

    [past] = driver.claim_one().previous or []
    assert past["class"] == "invalid_output"
    assert past["feedback"][0] == "too short"
    assert (len(past["feedback"]), len(past["feedback"][1])) == (20, 2000)


def test_a_repeated_rejection_changes_nothing(driver: Driver) -> None:
    claim = validating(driver, retry=AT_ONCE)
    reject(driver, claim, "too short")

    with unchanged(driver):
        assert reject(driver, claim, "something else") == "already"


def test_the_feedback_of_a_superseded_claim_is_not_kept(driver: Driver) -> None:
    claim = validating(driver, retry=AT_ONCE)
    driver.expire(claim)
    driver.claim_one("b")

    with unchanged(driver):
        driver.rows(
            "select * from treadle.fail_tasks(%s, %s, p_feedback => %s)",
            *([claim.id], [claim.token], [Jsonb(["too late"])]),
        )


def test_of_claims_with_one_token_only_those_that_hold_keep_their_feedback(driver: Driver) -> None:
    driver.agent("a")
    for _ in range(2):
        driver.enqueue(retry=AT_ONCE)
    lost, held = driver.claim(limit=2)
    assert lost.token == held.token
    driver.expire(lost)

    driver.rows(
        "select * from treadle.fail_tasks(%s, %s, p_feedback => %s)",
        *([lost.id, held.id], [lost.token, held.token], [Jsonb(["late"]), Jsonb(["in time"])]),
    )

    said = {each: driver.attempts(each)[-1]["feedback"] for each in (lost.id, held.id)}
    assert said == {lost.id: None, held.id: ["in time"]}


@pytest.mark.parametrize("feedback", ["text", {"a": 1}, [1], [None]])
def test_feedback_that_is_not_a_list_of_texts_is_rejected(driver: Driver, feedback: Any) -> None:
    claim = validating(driver)

    with unchanged(driver), refused("TR001", "must be a list of texts"):
        driver.rows(
            "select treadle.fail_task(%s, %s, 'no', p_feedback => %s)",
            *(claim.id, claim.token, Jsonb(feedback)),
        )


@pytest.mark.parametrize(
    ("validation", "words"),
    [
        ({"validator": "none"}, "must be a list"),
        ([1], "must be an object"),
        ([{}], "does not name a validator"),
        ([{"validator": "has space"}], "does not name a validator"),
        ([{"validator": "json_schema"}], "needs schema as object or boolean"),
        ([{"validator": "json_schema", "schema": "x"}], "needs schema as object or boolean"),
        ([{"validator": "regex", "pattern": 5}], "needs pattern as string"),
        ([{"validator": "regex", "pattern": ""}], "pattern is empty"),
        ([{"validator": "regex", "pattern": "x", "flags": "i"}], "has the unknown setting 'flags'"),
        ([{"validator": "test_pass", "command": ["rm"]}], "needs name as string"),
        (
            [{"validator": "test_pass", "name": "x", "command": ["rm"]}],
            "has the unknown setting 'command'",
        ),
        ([{"validator": "llm_judge"}], "needs criteria as string"),
        ([{"validator": "none", "x": 1}], "has the unknown setting 'x'"),
        ([{"validator": "json-shema", "schema": {}}], "did you mean json_schema?"),
        ([{"validator": "Jsonschema", "schema": {}}], "did you mean json_schema?"),
        ([{"validator": "testpass", "name": "x"}], "did you mean test_pass?"),
        ([{"validator": "lmm_judge", "criteria": "x"}], "did you mean llm_judge?"),
        ([{"validator": "regexp", "pattern": "x"}], "did you mean regex?"),
        ([{"validator": "rgeex", "pattern": "x"}], "did you mean regex?"),
        ([{"validator": "noen"}], "did you mean none?"),
        ([{"validator": "non"}], "did you mean none?"),
        ([{"validator": "mine", "ctx": 1}], "output and ctx cannot be settings"),
        ([{"validator": "mine", "timeout_s": "x"}], "timeout_s must be a number"),
        ([{"validator": "mine", "timeout_s": 0}], "timeout_s must be a number"),
        ([{"validator": "mine"}] * 21, "more than 20"),
    ],
)
def test_validators_that_could_not_be_called_are_refused(
    driver: Driver, validation: Any, words: str
) -> None:
    with unchanged(driver), refused("TR001", words):
        driver.enqueue(validation=validation)
    with unchanged(driver), refused("TR001", words):
        driver.rows("select treadle.define_type('code', %s)", Jsonb({"validation": validation}))


@pytest.mark.requirement("F20")
@pytest.mark.parametrize(
    ("word", "name", "settings"),
    [
        ("json-schema", "json_schema", {"schema": {"type": "object"}}),
        ("test-pass", "test_pass", {"name": "unit"}),
        ("llm-judge", "llm_judge", {"criteria": "short"}),
        ("JSON-Schema", "json_schema", {"schema": True}),
        ("None", "none", {}),
        ("word-count", "word-count", {"least": 100}),
        ("done", "done", {}),
        ("json_schema_strict", "json_schema_strict", {}),
    ],
)
def test_built_in_validators_may_be_written_with_hyphens_and_others_keep_their_names(
    driver: Driver, word: str, name: str, settings: dict[str, Any]
) -> None:
    given = [{"validator": word, **settings}]

    driver.enqueue(validation=given)
    driver.rows("select treadle.define_type('research', %s)", Jsonb({"validation": given}))
    driver.enqueue(type="research")

    for claim in driver.claim(limit=2):
        assert claim.validation == [{"validator": name, **settings}]


def test_a_task_has_the_validators_of_its_type_unless_it_names_its_own(driver: Driver) -> None:
    driver.agent("a")
    before = driver.enqueue()
    driver.rows("select treadle.define_type('code', %s)", Jsonb({"validation": CHECKS}))
    own = driver.enqueue(validation=[{"validator": "none"}])
    other = driver.enqueue(type="research")

    found = {claim.id: claim.validation for claim in driver.claim(limit=3)}

    # Also for tasks that were there: code is the truth about its types.
    assert found == {before: CHECKS, own: [{"validator": "none"}], other: None}
    shown = driver.value("select validation from treadle.task_details where id = %s", before)
    assert shown == CHECKS
    driver.rows("select treadle.define_type('code', '{\"validation\": null}')")
    assert driver.value("select validation from treadle.task_types where name = 'code'") is None


def test_a_task_of_a_dag_carries_its_validators(driver: Driver) -> None:
    driver.agent("a")
    nodes = [{"name": "one", "type": "code", "validation": CHECKS, "models": ["m"]}]
    driver.rows("select treadle.create_dag(%s)", Jsonb({"name": "d", "tasks": nodes}))

    claim = driver.claim_one()

    assert (claim.validation, claim.models) == (CHECKS, ["m"])
