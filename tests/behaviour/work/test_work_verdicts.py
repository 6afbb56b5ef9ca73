"""A change of a work item is answered with what it made, or with the reason why it is refused."""

import json
from uuid import UUID

import pytest

from tests.drivers.engine import Driver, Record
from tests.drivers.races import while_held
from tests.drivers.refusals import refused, unchanged
from tests.drivers.work import add, dispatched, in_progress, look


def attempt(driver: Driver, item: UUID, as_agent: str | None = None, **fields: str) -> Record:
    query = "select * from treadle.try_update_work_item(%s, %s, 'marcus-a', %s)"
    [row] = driver.records(query, item, json.dumps(fields), as_agent)
    return row


@pytest.mark.requirement("W5")
def test_of_two_dispatches_at_once_each_is_shown_its_own_agent(driver: Driver) -> None:
    item = add(driver)
    shown: list[Record] = []

    def first(session: Driver) -> None:
        shown.append(attempt(session, item, status="dispatched", assigned_agent="steve-w"))

    def second(session: Driver) -> Record:
        return attempt(session, item, status="dispatched", assigned_agent="maria-k")

    shown.append(while_held(driver, first, second))

    assert [row["assigned_agent"] for row in shown] == ["steve-w", "maria-k"]
    assert {row["status"] for row in shown} == {"dispatched"}
    assert {**look(driver, item), "problem": None} == shown[1]


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"status": "completed", "outcome": "success"}, "TR102", "cannot become completed"),
        ({"status": "in_progress"}, "TR108", "already has a work item in progress"),
        ({"notes": "x", "as_agent": "maria-k"}, "TR101", "not assigned to maria-k"),
    ],
)
def test_a_refusal_is_a_row_with_a_problem_and_changes_nothing(
    driver: Driver, fields: dict[str, str], code: str, words: str
) -> None:
    in_progress(driver)
    item = dispatched(driver)

    with unchanged(driver):
        row = attempt(driver, item, **fields)

    problem = row.pop("problem")
    assert (problem["code"], problem["detail"]["work_item_id"]) == (code, str(item))
    assert words in problem["message"]
    assert problem["hint"]
    assert set(row.values()) == {None}


def test_what_is_no_change_at_all_is_an_error(driver: Driver) -> None:
    item = add(driver)

    for wrong in ({}, {"status": "gone"}):
        with unchanged(driver), refused("TR001"):
            attempt(driver, item, **wrong)
