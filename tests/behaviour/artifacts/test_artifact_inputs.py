"""A file of one task is an argument of another, by its name or by its id."""

from uuid import uuid4

import pytest

from tests.drivers.artifacts import read, reserve, stored
from tests.drivers.engine import Driver
from tests.drivers.refusals import refused
from tests.drivers.steps import claimed, depend, record_artifact, refer, resolve

pytestmark = [pytest.mark.requirement("F21"), pytest.mark.requirement("F22")]


@pytest.mark.parametrize("name", ["a.pdf", "a:b.c:d", "with space/☃", "output", "x" * 1000])
def test_a_file_is_given_by_the_name_it_has_in_its_task(driver: Driver, name: str) -> None:
    claim = claimed(driver)
    stored(driver, claim, name)
    newest = stored(driver, claim, name)
    driver.complete(claim)
    user = driver.enqueue(spec={"n": 1})
    refer(driver, user, {"file": f"task:{claim.id}:artifact:{name}"})

    assert resolve(driver, user) == ({"n": 1, "file": read(driver, newest)}, None)


def test_a_linked_file_can_be_an_input_too(driver: Driver) -> None:
    claim = claimed(driver)
    made = record_artifact(driver, claim, "site", "https://example.org")
    driver.complete(claim)
    user = driver.enqueue()
    refer(driver, user, {"file": f"task:{claim.id}:artifact:site"})

    assert resolve(driver, user)[0] == {"file": read(driver, made)}


def test_a_missing_file_is_reported(driver: Driver) -> None:
    claim = claimed(driver)
    reserve(driver, claim)
    user = driver.enqueue()

    refer(driver, user, {"file": f"task:{claim.id}:artifact:a.pdf"})
    assert str(resolve(driver, user)[1]).endswith("the task is running, not completed")
    driver.complete(claim)
    assert str(resolve(driver, user)[1]).endswith("the task has no artifact a.pdf")
    refer(driver, user, {"file": f"task:{uuid4()}:artifact:a.pdf"})
    assert str(resolve(driver, user)[1]).endswith("there is no such task")
    refer(driver, user, {"file": f"task:{claim.id}:artifact:"})
    assert "it is not task:<id>:output" in str(resolve(driver, user)[1])


def test_a_file_of_an_optional_task_that_was_cancelled_is_null(driver: Driver) -> None:
    source, user = driver.enqueue(), driver.enqueue()
    driver.cancel(source)
    depend(driver, user, source, optional=True, met=False)
    refer(driver, user, {"file": f"task:{source}:artifact:a.pdf"})

    assert resolve(driver, user) == ({"file": None}, None)


def test_a_task_of_a_dag_waits_for_the_task_whose_file_it_wants(driver: Driver) -> None:
    dag = """{"name": "d", "tasks": [
        {"name": "draw", "type": "code"},
        {"name": "judge", "type": "code", "inputs": {"file": "task:draw:artifact:a:b.pdf"}}
    ]}"""
    driver.rows("select treadle.create_dag(%s)", dag)

    claim = driver.claim_one()
    made = stored(driver, claim, "a:b.pdf")
    assert driver.claim() == []
    driver.complete(claim)
    [judge] = driver.claim()
    assert judge.spec == {"file": read(driver, made)}


@pytest.mark.parametrize("given", ["task:draw:artifact:", "task:draw:artifact", "artifact:a.pdf"])
def test_a_reference_to_no_file_is_refused_where_it_is_written(driver: Driver, given: str) -> None:
    dag = f"""{{"name": "d", "tasks": [
        {{"name": "draw", "type": "code"}},
        {{"name": "judge", "type": "code", "inputs": {{"file": "{given}"}}}}
    ]}}"""

    with refused("TR001", "input file refers to"):
        driver.rows("select treadle.create_dag(%s)", dag)
