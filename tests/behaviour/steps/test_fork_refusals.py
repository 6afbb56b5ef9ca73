"""An invalid fork is rejected and creates nothing."""

from uuid import uuid4

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.steps import fork, written

pytestmark = pytest.mark.requirement("B1")


def test_an_unknown_step_is_rejected_and_the_existing_ones_are_listed(driver: Driver) -> None:
    claim = written(driver)

    with unchanged(driver), refused("TR207", "no step 'darft'(.|\n)*outline, draft, check"):
        fork(driver, claim.id, "darft")


def test_a_task_without_steps_cannot_be_forked(driver: Driver) -> None:
    task_id = driver.enqueue()

    with unchanged(driver), refused("TR207", "It has no steps"):
        fork(driver, task_id, "draft")


def test_an_unknown_task_is_refused(driver: Driver) -> None:
    with unchanged(driver), refused("TR201", "there is no task"):
        fork(driver, uuid4(), "draft")


@pytest.mark.parametrize("step", [None, "", "x" * 300])
def test_a_malformed_step_name_is_refused(driver: Driver, step: str | None) -> None:
    claim = written(driver)

    with unchanged(driver), refused("TR001", "1 to 200 bytes"):
        fork(driver, claim.id, step)


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"prio": 1}, "TR001", "unknown option 'prio'"),
        ({"idempotency_key": "k"}, "TR001", "unknown option"),
        ([], "TR001", "must be a JSON object"),
        ("x", "TR001", "must be a JSON object"),
        ({"spec": "x"}, "TR001", "spec and set must be JSON objects"),
        ({"spec": [1]}, "TR001", "spec and set must be JSON objects"),
        ({"spec": None}, "TR001", "spec and set must be JSON objects"),
        ({"spec": {"x": "y" * 2_000_000}}, "TR002", "bytes, 1048576 are allowed"),
        ({"priority": 500}, "TR001", "priority must"),
        ({"priority": "high"}, "TR001", "priority must be a whole number"),
        ({"retry": {"strategy": "never"}}, "TR001", "retry policy"),
        ({"queue": "nope"}, "TR202", "no queue 'nope'"),
        ({"type": "nope"}, "TR203", "no task type 'nope'"),
        ({"type": None}, "TR203", "no task type null"),
    ],
)
def test_changes_that_no_task_can_have_are_refused(
    driver: Driver, changes: object, code: str, words: str
) -> None:
    claim = written(driver)

    with unchanged(driver), refused(code, words):
        fork(driver, claim.id, "draft", changes)
