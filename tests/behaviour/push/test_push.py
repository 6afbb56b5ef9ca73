"""Queue `push`: first in, first out, with exact positions and an exact capacity."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.drivers.engine import Driver, Record
from tests.drivers.push import entry, line, note, offer, submit, take
from tests.drivers.races import together
from tests.drivers.refusals import refused, unchanged


@pytest.mark.requirement("Q1", "Q5")
def test_entries_are_dispatched_first_in_first_out(driver: Driver) -> None:
    made = [submit(driver, word) for word in ("first", "second", "third")]

    assert [row["position"] for row in made] == [1, 2, 3]
    assert [row["depth"] for row in made] == [1, 2, 3]
    assert made[0]["queue_id"] == f"queue-{made[0]['id']}"
    assert line(driver) == ["first", "second", "third"]
    assert [take(driver).id for _ in made] == [row["id"] for row in made]


def test_positions_hold_while_the_clock_moves_on_from_row_to_row(fresh: Driver) -> None:
    made = [submit(fresh, word)["id"] for word in ("first", "second", "third")]
    fresh.rows("create sequence public.ticks")
    fresh.rows(
        """
        create or replace function treadle.clock() returns timestamptz language sql volatile
        return clock_timestamp() + make_interval(secs => 60 * nextval('public.ticks'))
        """
    )

    assert [entry(fresh, each)["position"] for each in made] == [1, 2, 3]


@pytest.mark.requirement("Q2")
def test_submitters_at_once_get_distinct_positions_up_to_the_capacity(driver: Driver) -> None:
    made = together(driver, 64, lambda session, _: offer(session))

    accepted = [row for row in made if row]
    assert sorted(row["position"] for row in accepted) == list(range(1, 51))
    assert len(line(driver)) == 50
    order = sorted(accepted, key=lambda row: row["position"])
    assert [take(driver).id for _ in range(50)] == [row["id"] for row in order]


def behind(driver: Driver, hold: str, first: Callable[[], object]) -> Record:
    """A second submitter waits for a lock of this session, which then continues."""
    judge, second = driver.another(), driver.another()
    driver.rows("begin")
    driver.rows(hold)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(submit, second, "second")
        while not judge.value(
            "select cardinality(pg_blocking_pids(%s)) > 0", second.conn.info.backend_pid
        ):
            assert not waiting.done()
        first()
        driver.rows("commit")
        return waiting.result(timeout=10)


@pytest.mark.requirement("Q5")
def test_a_submitter_takes_its_place_when_it_is_its_turn(driver: Driver) -> None:
    """The position is assigned when the lock is acquired, not when the wait begins."""
    submit(driver, "zeroth")
    hold = "update treadle.locks set touched = 0 where name = 'depth:push'"

    second = behind(driver, hold, lambda: submit(driver, "first"))

    assert second["position"] == 3
    assert line(driver) == ["zeroth", "first", "second"]


def test_the_first_two_submitters_do_not_block_each_other(driver: Driver) -> None:
    """One creates the lane and then needs the lock of the depth; the other waits for the lane."""
    submit(driver)
    driver.rows("delete from treadle.tasks")
    driver.rows("delete from treadle.lanes")
    hold = 'select treadle.prepare_task(\'{"queue": "push", "type": "prompt"}\', \'task\', now())'

    second = behind(
        driver, hold, lambda: driver.enqueue({"prompt": "first"}, queue="push", type="prompt")
    )

    assert second["position"] == 2


@pytest.mark.requirement("Q2")
def test_at_capacity_nothing_is_stored(driver: Driver) -> None:
    for _ in range(2):
        submit(driver, size=2)

    words = "Queue is full. Please try again later."
    with unchanged(driver), pytest.raises(psycopg.Error, match=words) as raised:
        submit(driver, size=2)

    assert raised.value.sqlstate == "TR105"
    assert '"reason": "queue_full"' in (raised.value.diag.message_detail or "")
    assert "TREADLE_QUEUE_MAX_SIZE" in (raised.value.diag.message_hint or "")


@pytest.mark.requirement("Q2")
def test_entries_that_no_longer_wait_free_capacity(driver: Driver) -> None:
    made = [submit(driver, size=2) for _ in range(2)]
    driver.rows("select treadle.cancel_push(%s)", made[0]["queue_id"])
    assert offer(driver, size=2)
    take(driver)

    assert offer(driver, size=2)
    assert offer(driver, size=2) is None


@pytest.mark.requirement("Q2", "Q15")
def test_other_limits_hold_from_the_next_submission_on(driver: Driver) -> None:
    submit(driver, size=1)

    assert submit(driver, size=2, attempts=7)["position"] == 2
    assert offer(driver, size=None, attempts=None) is None
    settings = driver.rows(
        "select max_depth, max_attempts, ageing_rate from treadle.queues where name = 'push'"
    )
    assert settings == [(2, 7, 1000)]
    query = "select max_attempts from treadle.tasks order by rank"
    assert [row[0] for row in driver.rows(query)] == [3, 7]


@pytest.mark.requirement("Q5")
def test_no_entry_overtakes_one_that_has_waited_for_some_seconds(driver: Driver) -> None:
    submit(driver, "patient")
    driver.set_clock(timedelta(seconds=10))
    driver.enqueue({"prompt": "urgent"}, queue="push", type="prompt", priority=0)

    assert line(driver) == ["patient", "urgent"]


@pytest.mark.requirement("Q7")
def test_a_task_can_be_put_at_the_back(driver: Driver) -> None:
    first = submit(driver, "first")
    submit(driver, "second")
    # Ranks have the resolution of a millisecond.
    driver.set_clock(timedelta(seconds=1))
    driver.rows(
        """
        update treadle.tasks set rank = treadle.push_rank(tasks, treadle.clock())
        where id = %s
        """,
        first["id"],
    )

    assert line(driver) == ["second", "first"]


@pytest.mark.requirement("Q3")
def test_states_have_the_words_of_the_interface(driver: Driver) -> None:
    driver.rows("select treadle.ensure_push_queue()")
    for status in ("created", "pending", "blocked", "ready"):
        made = driver.enqueue({"prompt": status}, queue="push", type="prompt")
        driver.rows("update treadle.tasks set status = %s where id = %s", status, made)
        assert entry(driver, made)["state"] == "pending"
    claim = take(driver, start=False)
    assert entry(driver, claim.id)["state"] == "dispatching"
    driver.start(claim)
    assert entry(driver, claim.id)["state"] == "working"
    driver.complete(claim)
    assert entry(driver, claim.id)["state"] == "completed"


@pytest.mark.requirement("Q7")
def test_the_last_error_and_the_attempts_are_shown_when_it_waits_again(driver: Driver) -> None:
    made = submit(driver)
    claim = take(driver)
    note(driver, claim)
    assert entry(driver, made["id"])["agent_url"] == "https://agent"
    driver.fail(claim, "agent unreachable\nTraceback", retry_after=0)

    found = entry(driver, made["id"])

    assert (found["state"], found["position"], found["attempts"]) == ("pending", 1, 1)
    assert found["last_error"] == "agent unreachable"
    assert found["agent_url"] is None
    assert found["dispatched_at"] is None


@pytest.mark.requirement("Q7")
def test_a_busy_agent_is_the_last_error_though_it_cost_no_attempt(driver: Driver) -> None:
    made = submit(driver)
    claim = take(driver)
    note(driver, claim, error="agent busy")
    driver.release(claim)

    found = entry(driver, made["id"])

    assert (found["last_error"], found["attempts"]) == ("agent busy", 0)


@pytest.mark.requirement("Q1")
@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": " \n"}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"model": 5}, "model"),
        ({"session_id": []}, "session_id"),
        ({"timeout_seconds": -1}, "timeout_seconds"),
        ({"timeout_seconds": 1.5}, "timeout_seconds"),
        ({"timeout_seconds": "60"}, "timeout_seconds"),
        ({"timeout_seconds": 31536001}, "timeout_seconds"),
        ({"project": "shop"}, "project"),
        ({"env": ["A"]}, "env"),
        ({"env": {"A": 1}}, "env"),
        ({"thinking": "yes"}, "thinking"),
    ],
)
def test_a_request_that_no_agent_understands_is_refused(
    driver: Driver, fields: dict[str, Any], argument: str
) -> None:
    with refused("TR001", argument):
        submit(driver, **{"prompt": "hello", **fields})


def test_an_existing_queue_keeps_its_limits_and_gets_no_poison_pills(
    driver: Driver,
) -> None:
    driver.rows("""select treadle.define_queue('push', '{"max_depth": 7, "max_attempts": 9}')""")

    submit(driver, size=None, attempts=None)

    settings = "select max_depth, max_attempts, retry from treadle.queues where name = 'push'"
    assert driver.rows(settings) == [(7, 9, {"poison": False})]


@pytest.mark.requirement("Q1")
def test_the_spec_has_the_fields_of_the_request_and_no_others(driver: Driver) -> None:
    given: dict[str, Any] = {
        "model": "sonnet",
        "timeout_seconds": 5,
        "thinking": False,
        "env": {"A": "b"},
    }
    made = submit(driver, "hi", **given, session_id="", project={}, priority=1, source="web")

    assert driver.task(made["id"])["spec"] == {"prompt": "hi", **given}


def test_an_entry_with_an_unusual_spec_does_not_hide_the_others(driver: Driver) -> None:
    driver.rows("select treadle.ensure_push_queue()")
    odd = {"timeout_seconds": [5], "env": {"A": 1}, "thinking": "no", "project": 3, "prompt": 4}
    made = driver.enqueue(odd, queue="push", type="code")

    found = entry(driver, made)

    assert (found["prompt"], found["position"], found["source"]) == ("4", 1, "api")
    assert [found[name] for name in ("timeout_seconds", "env", "thinking", "project")] == [None] * 4
