"""Tasks of the harness: each agent has its own, claims expire, and nothing is stored twice."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.harness import (
    ME,
    OTHER,
    beat,
    decide,
    expire,
    fetch,
    fetched,
    put,
    requeue,
    shown,
    status,
)
from tests.drivers.races import together, while_held
from tests.drivers.refusals import refused, unchanged
from tests.drivers.retention import age, keep, prune

NO_ADDRESSES = [
    *("", "agent", "ftp://agent", "http://", "http://a b", "http://me:pw@agent"),
    *("http://agent/x?y=1", "http://agent/#x", "http://agent:999999", f"http://{'a' * 200}"),
    "http://agent\\evil",
]


def test_a_task_is_pending_then_claimed_then_completed(driver: Driver) -> None:
    task_id = put(driver, {"issue": 7})
    assert status(driver, task_id) == ("pending", None)

    task = fetched(driver)
    assert (task["id"], task["payload"], task["agent_url"]) == (task_id, {"issue": 7}, ME)
    assert (task["retry_count"], task["max_retries"]) == (0, 3)
    assert status(driver, task_id) == ("claimed", None)

    assert decide(driver, task, {"label": "bug"}) == "completed"
    assert status(driver, task_id) == ("completed", None)
    assert shown(driver, task_id)["result"] == {"label": "bug"}


@pytest.mark.requirement("H3")
def test_an_agent_gets_its_own_tasks_only_the_oldest_first(driver: Driver) -> None:
    theirs = put(driver, url=OTHER)
    mine = [put(driver, {"n": number}) for number in range(3)]

    got = [fetched(driver)["id"] for _ in mine]

    assert got == mine
    assert fetch(driver) is None
    assert driver.claim("a", queues=["harness"]) == []
    assert fetched(driver, OTHER)["id"] == theirs


def test_an_address_with_a_slash_at_its_end_is_the_same_agent(driver: Driver) -> None:
    task_id = put(driver, url=f"{ME}/")
    assert fetched(driver, ME)["id"] == task_id


@pytest.mark.parametrize("url", NO_ADDRESSES)
def test_an_invalid_agent_address_is_rejected(driver: Driver, url: str) -> None:
    with unchanged(driver), refused("TR001", "not a valid agent URL"):
        put(driver, url=url)


@pytest.mark.requirement("H9")
def test_of_two_that_claim_at_once_one_gets_the_task(driver: Driver) -> None:
    task_id = put(driver)

    got = together(driver, 4, lambda session, _: fetch(session))

    assert [each["id"] for each in got if each is not None] == [task_id]


def test_a_claim_that_is_asked_for_again_gives_the_same_task(driver: Driver) -> None:
    first, second = put(driver), put(driver)
    token = uuid4()

    assert [fetched(driver, token=token)["id"] for _ in range(3)] == [first] * 3

    assert shown(driver, first)["retry_count"] == 0
    assert fetched(driver)["id"] == second


@pytest.mark.requirement("H4")
def test_a_claim_lasts_five_minutes_from_the_last_heartbeat(driver: Driver) -> None:
    put(driver)
    task = fetched(driver)
    driver.age_claim(task["id"], timedelta(seconds=295))
    assert requeue(driver) == []
    beat(driver, task)

    driver.age_claim(task["id"], timedelta(seconds=295))
    assert requeue(driver) == []
    driver.age_claim(task["id"], timedelta(seconds=6))
    assert requeue(driver) == [(task["id"], "heartbeat_timeout", "ready")]


@pytest.mark.requirement("H4")
def test_after_three_retries_a_task_fails(driver: Driver) -> None:
    task_id = put(driver)
    for number in range(3):
        task = fetched(driver)
        assert task["retry_count"] == number
        assert expire(driver, task) == "ready"
        assert shown(driver, task_id)["retry_count"] == number + 1
        assert status(driver, task_id) == ("pending", None)

    assert expire(driver, fetched(driver)) == "dead_lettered"

    assert status(driver, task_id) == ("failed", None)
    assert shown(driver, task_id)["retry_count"] == 3
    assert fetch(driver) is None


def test_silent_claims_of_other_queues_are_left_to_the_reaper(driver: Driver) -> None:
    driver.enqueue()
    other = driver.claim_one()
    driver.age_claim(other.id, timedelta(hours=1))

    assert requeue(driver) == []
    assert [each.id for each in driver.reap()] == [other.id]


@pytest.mark.parametrize("what", ["beat", "decide"])
def test_a_lost_claim_cannot_change_the_task(driver: Driver, what: str) -> None:
    put(driver)
    first = fetched(driver)
    expire(driver, first)
    second = fetched(driver)

    with unchanged(driver):
        said = beat(driver, first) if what == "beat" else decide(driver, first)
    assert said == (None if what == "beat" else "stale")

    assert decide(driver, second, {"by": "second"}) == "completed"
    assert shown(driver, second["id"])["result"] == {"by": "second"}


def test_a_late_decision_counts_if_no_other_claim_was_made(driver: Driver) -> None:
    put(driver)
    task = fetched(driver)
    expire(driver, task)

    assert decide(driver, task, {"late": True}) == "completed"

    assert shown(driver, task["id"])["result"] == {"late": True}
    assert fetch(driver) is None


def test_a_decision_that_is_sent_again_is_stored_once(driver: Driver) -> None:
    put(driver)
    task = fetched(driver)

    assert decide(driver, task, {"n": 1}) == "completed"
    assert decide(driver, task, {"n": 1}) == "already"

    assert shown(driver, task["id"])["result"] == {"n": 1}


def test_a_task_with_an_id_is_stored_once(driver: Driver) -> None:
    mine = uuid4()
    query = "select id, created from treadle.enqueue_harness_task(%s, %s, %s)"

    assert driver.rows(query, ME, Jsonb({"n": 1}), mine) == [(mine, True)]
    assert driver.rows(query, ME, Jsonb({"n": 1}), mine) == [(mine, False)]
    for url, payload in ((ME, {"n": 2}), (OTHER, {"n": 1})):
        with unchanged(driver), refused("TR001", "already used for another task"):
            driver.rows(query, url, Jsonb(payload), mine)

    assert fetched(driver)["id"] == mine


def test_two_that_store_the_same_task_at_once_store_one(driver: Driver) -> None:
    mine = uuid4()
    put(driver)

    def store(session: Driver) -> list[tuple[Any, ...]]:
        query = "select id, created from treadle.enqueue_harness_task(%s, '{}', %s)"
        return session.rows(query, ME, mine)

    assert while_held(driver, store, store) == [(mine, False)]


def test_the_id_of_a_task_of_another_queue_is_not_taken(driver: Driver) -> None:
    other = driver.enqueue()
    with refused("TR001", "already used for another task"):
        put(driver, id=other)


@pytest.mark.parametrize("wrong", ["[]", "7", "null", '"text"'])
def test_a_payload_and_a_decision_are_objects(driver: Driver, wrong: str) -> None:
    put(driver)
    task = fetched(driver)
    with refused("TR001", "payload must be a JSON object"):
        driver.rows("select treadle.enqueue_harness_task(%s, %s::jsonb)", ME, wrong)
    with refused("TR001", "decision must be a JSON object"):
        call = "select treadle.complete_harness_task(%s, %s, %s::jsonb)"
        driver.rows(call, task["id"], task["token"], wrong)


def test_what_operators_set_of_the_queue_is_kept(driver: Driver) -> None:
    put(driver)
    driver.rows("""select treadle.define_queue('harness', '{"max_attempts": 1}')""")

    task_id = put(driver, url=OTHER)

    assert shown(driver, task_id)["max_retries"] == 0
    assert expire(driver, fetched(driver, OTHER)) == "dead_lettered"


def test_an_agent_that_was_marked_offline_is_active_again_after_its_next_claim(
    driver: Driver,
) -> None:
    put(driver)
    fetch(driver)
    driver.rows("update treadle.agents set heartbeat_at = heartbeat_at - interval '1 day'")
    assert ME in [row[0] for row in driver.rows("select treadle.mark_agents_offline()")]
    second: UUID = put(driver)

    assert fetched(driver)["id"] == second
    assert driver.value("select status from treadle.agents where id = %s", ME) == "active"


def test_what_belongs_to_a_task_goes_with_it(driver: Driver) -> None:
    driver.rows("select treadle.allow_nudges(%s)", ME)
    put(driver)
    driver.rows("select treadle.take_nudges()")
    task = fetched(driver)
    decide(driver, task)
    driver.rows("select treadle.take_actions(%s)", uuid4())
    keep(driver, "harness", keep_completed_s=86400)
    age(driver)
    assert prune(driver) == 0, "its action is not over"
    driver.rows("update treadle.results set consumed_token = task_id, consumed_at = completed_at")

    assert prune(driver) == 1

    for table in ("harness_actions", "harness_nudges"):
        assert driver.value(f"select count(*) from treadle.{table}") == 0, table
