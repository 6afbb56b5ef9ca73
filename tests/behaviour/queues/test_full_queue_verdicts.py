"""For requests over HTTP a full queue is a verdict: a row with a problem, and nothing changes."""

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver, Record
from tests.drivers.push import submit
from tests.drivers.refusals import refused, unchanged


def enqueue(driver: Driver, count: int, queue: str = "small") -> list[Record]:
    query = "select * from treadle.try_enqueue_batch(%s, 'code', %s::jsonb[])"
    return driver.records(query, queue, [Jsonb({"n": n}) for n in range(count)])


def submit_quietly(driver: Driver) -> Record:
    query = """select * from treadle.try_submit_push('{"prompt": "x"}', 'cli', null, 2)"""
    [row] = driver.records(query)
    return row


def test_an_enqueue_beyond_the_limit_says_why_and_changes_nothing(driver: Driver) -> None:
    driver.rows("""select treadle.define_queue('small', '{"max_depth": 2}')""")
    assert [row["created"] for row in enqueue(driver, 2)] == [True, True]

    with unchanged(driver):
        [row] = enqueue(driver, 1)

    problem = row["problem"]
    assert (problem["code"], row["id"]) == ("TR105", None)
    assert problem["detail"] == {"queue": "small", "depth": 2, "limit": 2}
    assert "has no room for 1 more" in problem["message"]
    assert [row["problem"] for row in enqueue(driver, 3, "default")] == [None] * 3
    with unchanged(driver), refused("TR202"):
        enqueue(driver, 1, "unknown")


@pytest.mark.requirement("Q2")
def test_a_prompt_beyond_the_limit_says_why_and_changes_nothing(driver: Driver) -> None:
    assert [submit_quietly(driver)["position"] for _ in range(2)] == [1, 2]

    with unchanged(driver):
        row = submit_quietly(driver)

    problem = row["problem"]
    assert (problem["code"], row["queue_id"]) == ("TR105", None)
    assert (problem["detail"]["reason"], problem["detail"]["max_size"]) == ("queue_full", 2)


@pytest.mark.requirement("Q4")
def test_an_entry_that_has_ended_says_so(driver: Driver) -> None:
    queue_id = submit(driver)["queue_id"]
    cancel = "select state, problem from treadle.try_cancel_push(%s)"
    assert driver.rows(cancel, queue_id) == [("cancelled", None)]
    driver.rows("update treadle.tasks set status = 'completed'")

    with unchanged(driver):
        [(state, problem)] = driver.rows(cancel, queue_id)

    assert (state, problem["code"]) == (None, "TR102")
    assert problem["detail"]["state"] == "completed"
