"""The files of a task are recorded with their location."""

from datetime import timedelta
from typing import Any

import pytest

from tests.drivers.engine import Driver
from tests.drivers.races import while_held
from tests.drivers.refusals import refused, unchanged
from tests.drivers.steps import claimed, record_artifact, superseded

DIGEST = "0f" * 32


def test_a_file_is_noted_with_the_task_and_claim_that_made_it(driver: Driver) -> None:
    claim = claimed(driver)

    made = record_artifact(
        driver, claim, "a.pdf", "s3://b/a.pdf", "application/pdf", 12, DIGEST.upper()
    )

    [row] = driver.records("select * from treadle.artifacts")
    assert (row["id"], row["task_id"], row["claim_token"]) == (made, claim.id, claim.token)
    assert (row["name"], row["uri"]) == ("a.pdf", "s3://b/a.pdf")
    assert (row["media_type"], row["bytes"], row["sha256"]) == ("application/pdf", 12, DIGEST)


def test_the_same_file_again_is_the_same_artifact(driver: Driver) -> None:
    claim = claimed(driver)
    first = record_artifact(driver, claim)

    assert record_artifact(driver, claim) == first
    assert record_artifact(driver, claim, size=5) != first
    assert record_artifact(driver, claim, uri="s3://elsewhere") != first
    assert record_artifact(driver, claim, name="other") != first


def test_the_same_file_from_two_sessions_is_one_artifact(driver: Driver) -> None:
    claim = claimed(driver)

    made = while_held(
        driver,
        lambda first: record_artifact(first, claim),
        lambda second: record_artifact(second, claim),
    )

    assert driver.rows("select id from treadle.artifacts") == [(made,)]


def test_a_file_of_a_superseded_claim_is_refused(driver: Driver) -> None:
    first, second = superseded(driver)

    with unchanged(driver), refused("TR101"):
        record_artifact(driver, first)
    record_artifact(driver, second)


def test_noting_a_file_renews_the_lease(driver: Driver) -> None:
    claim = claimed(driver)
    driver.age_claim(claim.id, timedelta(hours=1))

    record_artifact(driver, claim)

    assert driver.reap() == []


BAD: dict[str, dict[str, Any]] = {
    "no name": {"name": None},
    "an empty name": {"name": ""},
    "a long name": {"name": "x" * 1001},
    "no uri": {"uri": None},
    "an empty uri": {"uri": ""},
    "a long uri": {"uri": "x" * 4001},
    "a long media type": {"media_type": "x" * 201},
    "a negative size": {"size": -1},
    "a short digest": {"sha256": "0f"},
    "a digest that is none": {"sha256": "z" * 64},
}


@pytest.mark.parametrize("options", BAD.values(), ids=BAD.keys())
def test_a_malformed_artifact_is_refused(driver: Driver, options: dict[str, Any]) -> None:
    claim = claimed(driver)

    with unchanged(driver), refused("TR001", "artifact: "):
        record_artifact(driver, claim, **options)
