"""Work items are tasks that people assign: they cannot be claimed, and their log is kept."""

from datetime import timedelta

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.work import add, change, dispatched, in_progress, log, look, silent


@pytest.mark.requirement("W7")
def test_an_agent_has_one_item_in_progress_even_for_a_superuser(driver: Driver) -> None:
    first = in_progress(driver)
    second = dispatched(driver)

    with unchanged(driver), refused("TR108", "steve-w already has a work item in progress"):
        change(driver, second, status="in_progress")
    with pytest.raises(psycopg.errors.UniqueViolation):
        driver.rows(
            "update treadle.tasks set status = 'running', agent_id = 'steve-w',"
            " claim_token = gen_random_uuid(), lease_until = now() where id = %s",
            second,
        )

    change(driver, first, status="blocked", notes="waits")
    assert change(driver, second, status="in_progress")["status"] == "in_progress"
    with refused("TR108"):
        change(driver, first, status="in_progress")
    assert change(driver, first, status="in_progress", assigned_agent="b")["status"] == (
        "in_progress"
    )


@pytest.mark.requirement("W7")
def test_an_agent_may_work_elsewhere_too(driver: Driver) -> None:
    for _ in range(2):
        driver.enqueue()
    assert len(driver.claim("a", 2)) == 2

    item = in_progress(driver, "a")

    assert look(driver, item)["status"] == "in_progress"


@pytest.mark.requirement("W9")
def test_the_log_cannot_be_changed_or_removed(driver: Driver) -> None:
    item = in_progress(driver)
    for statement in (
        "update treadle.work_log set note = 'x'",
        "delete from treadle.work_log",
        "truncate treadle.work_log",
    ):
        with unchanged(driver), refused("TR102", "append-only"):
            driver.rows(statement)
    for role in ("treadle_producer", "treadle_worker", "treadle_observer", "treadle_operator"):
        session = driver.another()
        session.rows(f"set role {role}")
        with refused("42501"):
            session.rows(
                "insert into treadle.work_log (task_id, to_status) values (%s, 'queued')", item
            )
        with refused("42501"):
            session.rows("delete from treadle.work_log")


def test_no_claim_takes_a_work_item(driver: Driver) -> None:
    driver.agent("steve-w", queues=["work", "default"])
    item = dispatched(driver)
    other = driver.enqueue(type="code")

    assert [claim.id for claim in driver.claim("steve-w", 5, queues=["work", "default"])] == [other]
    assert driver.claim("steve-w", 5, queues=["work"]) == []
    # Nor one that would try a breaker.
    driver.rows(
        "insert into treadle.breakers (type, state, opened_at, probe_at)"
        " values ('code_review', 'open', now(), now() - interval '1 minute')"
    )
    assert driver.claim("steve-w", 5, queues=["work"]) == []
    assert look(driver, item)["status"] == "dispatched"


def test_why_names_who_has_to_act_and_no_work_item_counts_as_stuck(driver: Driver) -> None:
    item = add(driver)
    assert why(driver, item) == ["not_dispatched"]
    change(driver, item, status="dispatched", assigned_agent="steve-w")
    assert why(driver, item) == ["dispatched"]
    assert "steve-w, which has not picked it up" in driver.value(
        "select sentence from treadle.why(%s)", item
    )
    assert driver.rows("select * from treadle.stuck") == []
    [[shut]] = driver.rows("select closed_reason from treadle.claim_order('work')")
    assert "cannot be claimed" in shut
    change(driver, item, status="in_progress")
    assert why(driver, item) == ["running"]
    change(driver, item, status="blocked", notes="waits for\nthe password")
    assert driver.rows("select sentence, reason from treadle.why(%s)", item) == [
        ("blocked: the password", "work_blocked")
    ]


def why(driver: Driver, item: object) -> list[str]:
    return [row[0] for row in driver.rows("select reason from treadle.why(%s)", item)]


@pytest.mark.requirement("W9")
def test_changes_by_operators_are_in_the_log_of_an_item_too(driver: Driver) -> None:
    item = in_progress(driver)
    change(driver, item, status="failed", outcome="failed", notes="no access")
    [letter] = driver.records("select * from treadle.dead_letters")
    assert (letter["task_id"], letter["reason"]) == (item, "no access")

    assert driver.retry(item) == "ready"
    assert look(driver, item)["status"] == "dispatched"
    change(driver, item, status="in_progress")
    assert driver.cancel(item, reason="enough") == ["cancelled"]

    assert log(driver, item) == [
        (None, "queued", None),
        ("queued", "dispatched", "steve-w"),
        ("dispatched", "in_progress", "steve-w"),
        ("in_progress", "failed", "steve-w"),
        ("failed", "dispatched", "steve-w"),
        ("dispatched", "in_progress", "steve-w"),
        ("in_progress", "cancelled", "steve-w"),
    ]
    found = driver.rows("select agent, outcome from treadle.work_dispatches order by number")
    assert found == [("steve-w", "failed"), ("steve-w", "cancelled")]


@pytest.mark.requirement("W11")
def test_an_item_without_updates_is_blocked_and_not_failed(driver: Driver) -> None:
    item = in_progress(driver)
    silent(driver, item, 29)
    assert driver.reap() == []
    silent(driver, item, 2)
    driver.enqueue()
    expired = driver.claim_one("a")
    driver.age_claim(expired.id, timedelta(hours=1))

    reaped = {each.id: (each.reason, each.status) for each in driver.reap()}

    assert reaped[item] == ("work_stale", "blocked")
    assert reaped[expired.id][0] == "heartbeat_timeout"
    assert driver.state_of(expired.id) == "retrying"
    assert [row["outcome"] for row in driver.attempts(item)] == ["suspended"]
    assert driver.task(item)["attempt"] == 0
    assert "timed out" in look(driver, item)["notes"]
    assert driver.events(item)[-1]["kind"] == "work.stalled"
    assert driver.reap() == []


@pytest.mark.requirement("W11")
def test_a_type_with_a_timeout_does_not_end_an_item(driver: Driver) -> None:
    driver.rows("select treadle.define_type('code_review', '{\"timeout_s\": 60}')")
    item = in_progress(driver)
    native = driver.enqueue(queue="work", type="code_review", assigned_agent="b")
    for status in ("dispatched", "in_progress"):
        change(driver, native, status=status)
    driver.rows("update treadle.tasks set started_at = started_at - interval '20 minutes'")

    assert driver.reap() == []
    assert driver.value("select treadle.next_reap_at() > clock_timestamp()")
    assert driver.task(item)["timeout_s"] is None


def test_only_its_agent_changes_an_item_where_that_is_asked_for(driver: Driver) -> None:
    item = dispatched(driver, "steve-w")
    with unchanged(driver), refused("TR101", "not assigned to maria-k"):
        change(driver, item, as_agent="maria-k", status="in_progress")
    assert change(driver, item, as_agent="steve-w", status="in_progress")["status"] == (
        "in_progress"
    )


def test_a_task_of_another_queue_is_not_a_work_item(driver: Driver) -> None:
    task = driver.enqueue()
    with unchanged(driver), refused("TR215", "no work item"):
        driver.rows('select treadle.update_work_item(%s, \'{"status": "cancelled"}\')', task)


@pytest.mark.requirement("W5")
def test_every_allowed_change_names_what_it_needs(driver: Driver) -> None:
    rules = driver.rows(
        "select from_status, to_status, needs from treadle.work_transitions"
        " where from_status is not null"
    )
    assert set(rules) == {
        ("queued", "dispatched", "assigned_agent"),
        ("queued", "cancelled", None),
        ("dispatched", "in_progress", "assigned_agent"),
        ("dispatched", "cancelled", None),
        ("in_progress", "completed", "outcome"),
        ("in_progress", "failed", "outcome"),
        ("in_progress", "blocked", "notes"),
        ("blocked", "in_progress", "assigned_agent"),
    }
