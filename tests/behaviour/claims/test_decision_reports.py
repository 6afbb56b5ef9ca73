"""Decision reports in SQL: the rules apply to every client, and reports can be read."""

from typing import Any
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from treadle.models import Claim

pytestmark = pytest.mark.requirement("R7")

REPORT: dict[str, Any] = {
    "summary": "Moved to B",
    "confidence": 0.8,
    "decisions": [{"decision": "B", "reason": "half the cost", "options": ["A", "B"]}],
}
COMPLETE = "select treadle.complete_task(%s, %s, '1', %s)"


def claimed(driver: Driver, **options: Any) -> Claim:
    driver.agent("a")
    driver.enqueue(**options)
    return driver.claim_one()


def test_a_type_that_requires_a_report_is_not_completed_without_one(driver: Driver) -> None:
    driver.rows("select treadle.define_type('code', '{\"report\": \"required\"}')")
    claim = claimed(driver)
    assert claim.report

    with unchanged(driver), refused("TR107", "without a decision report"):
        driver.rows(COMPLETE, claim.id, claim.token, None)
    assert driver.complete(claim) == "report_required"
    assert driver.state_of(claim.id) == "running"

    driver.rows(COMPLETE, claim.id, claim.token, Jsonb(REPORT))
    query = "select status, decision_report from treadle.task_details where id = %s"
    assert driver.rows(query, claim.id) == [("completed", REPORT)]


def test_in_a_batch_only_those_without_a_report_are_left(driver: Driver) -> None:
    driver.agent("a")
    driver.rows("select treadle.define_type('code', '{\"report\": \"required\"}')")
    for kind in ("code", "code", "research"):
        driver.enqueue(type=kind)
    claims = sorted(driver.claim(limit=3), key=lambda claim: claim.id)

    verdicts = driver.rows(
        "select verdict from treadle.complete_tasks(%s, %s, p_reports => %s)",
        [claim.id for claim in claims],
        [claims[0].token, claims[1].token, uuid4()],
        [Jsonb(REPORT), None, None],
    )

    assert verdicts == [("completed",), ("report_required",), ("stale",)]
    assert driver.complete(claims[2]) == "completed"


def test_a_task_may_want_a_report_or_do_without(driver: Driver) -> None:
    wanting = claimed(driver, report="required")
    assert driver.complete(wanting) == "report_required"
    driver.rows("select treadle.define_type('code', '{\"report\": \"required\"}')")

    free = claimed(driver, report="optional")

    assert (wanting.report, free.report) == (True, False)
    assert driver.complete(free) == "completed"


def test_an_unrequested_report_is_stored(driver: Driver) -> None:
    claim = claimed(driver)

    driver.rows(COMPLETE, claim.id, claim.token, Jsonb(REPORT))

    assert driver.task(claim.id)["decision_report"] == REPORT


def test_a_late_answer_needs_its_report_too(driver: Driver) -> None:
    claim = claimed(driver, report="required", retry={"strategy": "immediate"})
    driver.expire(claim)

    assert driver.complete(claim) == "report_required"
    assert driver.state_of(claim.id) == "ready"
    driver.rows(COMPLETE, claim.id, claim.token, Jsonb(REPORT))
    assert driver.state_of(claim.id) == "completed"


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ([], "must be a JSON object"),
        ({}, "summary must be a text"),
        ({"summary": "  ", "confidence": 1}, "summary must be a text"),
        ({"summary": 5, "confidence": 1}, "summary must be a text"),
        ({"summary": "x"}, "confidence must be"),
        ({"summary": "x", "confidence": "high"}, "confidence must be"),
        ({"summary": "x", "confidence": 1.1}, "confidence must be"),
        ({**REPORT, "goal": 5}, "goal must be"),
        ({**REPORT, "decisions": "none"}, "decisions must be a list"),
        ({**REPORT, "decisions": ["B"]}, "each entry of decisions"),
        ({**REPORT, "decisions": [{"decision": "B"}]}, "each entry of decisions"),
        ({**REPORT, "decisions": [{"decision": "B", "reason": ""}]}, "each entry of decisions"),
        ({**REPORT, "risks": "many"}, "risks must be a list of texts"),
        ({**REPORT, "follow_ups": [1]}, "follow_ups must be a list of texts"),
    ],
)
def test_a_report_out_of_shape_is_refused(driver: Driver, report: Any, words: str) -> None:
    claim = claimed(driver)

    with unchanged(driver), refused("TR001", words):
        driver.rows(COMPLETE, claim.id, claim.token, Jsonb(report))


def test_a_report_may_have_more_fields_and_is_bounded(driver: Driver) -> None:
    claim = claimed(driver)
    more = {**REPORT, "diff": ["a"], "goal": None}

    with unchanged(driver), refused("TR002", "decision_report has"):
        driver.rows(COMPLETE, claim.id, claim.token, Jsonb({**more, "log": "x" * 300_000}))

    assert driver.value(COMPLETE, claim.id, claim.token, Jsonb(more)) == "completed"


def test_report_is_required_or_optional(driver: Driver) -> None:
    with unchanged(driver), refused("TR001", "report must be required or optional"):
        driver.enqueue(report="maybe")
    with unchanged(driver), refused("TR001", "report must be required or optional"):
        driver.rows("select treadle.define_type('code', '{\"report\": \"maybe\"}')")
