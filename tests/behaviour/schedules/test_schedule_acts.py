"""Operators and code define, declare, pause, run and remove schedules."""

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.drivers.engine import Driver
from tests.drivers.refusals import unchanged
from tests.drivers.schedules import (
    HOUR,
    START,
    TASK,
    at,
    change,
    define,
    fire,
    ready,
    runs,
    schedule,
    tasks,
    tick,
)
from treadle import Treadle
from treadle.errors import InvalidArgument, UnknownSchedule


@pytest.mark.requirement("F19")
def test_a_manual_run_is_recorded_and_is_not_a_nominal_time(driver: Driver) -> None:
    ready(driver, START, jitter_s=600)
    driver.rows("select treadle.pause_schedule('hourly')")

    [[task_id, dag_id, created]] = driver.rows(
        "select task_id, dag_id, created from treadle.run_schedule('hourly', 'me')"
    )

    assert (dag_id, created) == (None, True)
    assert driver.state_of(task_id) == "ready"
    assert runs(driver) == [(None, "queued")]
    row = schedule(driver)
    assert (row["last_task"], row["next_at"]) == (task_id, START)
    assert row["last_at"] == driver.value("select fired_at from treadle.schedule_runs")
    driver.rows("select treadle.resume_schedule('hourly')")
    assert fire(driver, [START], START + HOUR) == ["queued"]


@pytest.mark.requirement("F19")
def test_run_now_that_cannot_be_is_refused_and_changes_nothing(driver: Driver) -> None:
    ready(driver, START, task={**TASK, "type": "test"})
    driver.rows("delete from treadle.task_types where name = 'test'")
    before = driver.contents()

    with pytest.raises(psycopg.DatabaseError, match="no task type"):
        driver.rows("select treadle.run_schedule('hourly')")

    assert driver.contents() == before


@pytest.mark.requirement("F19")
def test_a_paused_schedule_shows_who_paused_it_when_and_why(driver: Driver) -> None:
    ready(driver, START)
    driver.rows("select treadle.pause_schedule('hourly', 'a move', 'me')")

    [row] = driver.records("select * from treadle.schedule_status")
    assert (row["state"], row["paused_by"], row["paused_reason"]) == ("paused", "me", "a move")
    assert row["paused_at"] == START
    assert driver.value("select treadle.resume_schedule('hourly', 'me')") is True
    assert driver.value("select treadle.resume_schedule('hourly', 'me')") is False
    kinds = "select kind from treadle.events where actor = 'me' order by id"
    assert driver.rows(kinds) == [("schedule.paused",), ("schedule.resumed",)]


def test_a_removed_schedule_leaves_its_tasks_and_its_history(driver: Driver) -> None:
    ready(driver, START)
    fire(driver, [START], START + HOUR)

    driver.rows("select treadle.remove_schedule('hourly')")

    assert driver.rows("select schedule, now from treadle.schedule_log") == [("hourly", "ready")]
    assert driver.value("select count(*) from treadle.schedule_status") == 0


@pytest.mark.parametrize(
    "call", ["pause_schedule(%s)", "resume_schedule(%s)", "remove_schedule(%s)", "run_schedule(%s)"]
)
def test_a_schedule_that_does_not_exist_is_named(driver: Driver, call: str) -> None:
    define(driver)
    with pytest.raises(psycopg.DatabaseError, match="there is no schedule 'hurly'") as caught:
        driver.rows(f"select treadle.{call}", "hurly")
    assert caught.value.sqlstate == "TR211"
    assert "Known schedules: hourly" in (caught.value.diag.message_hint or "")


@pytest.mark.requirement("F19")
@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("a b", {}, "cannot be defined"),
        ("s", {"cron": None}, "cannot be defined"),
        ("s", {"cron": "* * * *"}, "cannot be defined"),
        ("s", {"cron": "0 0 0 * * *"}, "cannot be defined"),
        ("s", {"cron": "$(rm) * * * *"}, "cannot be defined"),
        ("s", {"timezone": "Mars/Base"}, "there is no time zone"),
        ("s", {"timezone": None}, "cannot be defined"),
        ("s", {"catch_up": "both"}, "cannot be defined"),
        ("s", {"overlap": "never"}, "cannot be defined"),
        ("s", {"jitter_s": -1}, "cannot be defined"),
        ("s", {"jitter_s": "soon"}, "cannot be defined"),
        ("s", {"grace_s": 0}, "cannot be defined"),
        ("s", {"every": 5}, "unknown setting 'every'"),
        ("s", {"task": None}, "needs a task or a DAG"),
        ("s", {"task": "code"}, "needs a task or a DAG"),
        ("s", {"task": {"type": "cod"}}, "there is no task type 'cod'"),
        ("s", {"task": {"type": "code", "queue": "q"}}, "there is no queue 'q'"),
        ("s", {"task": {"type": "code", "sepc": {}}}, "unknown option 'sepc'"),
        ("s", {"task": {"type": "code", "priority": 200}}, "priority must be"),
        ("s", {"task": {"type": "code", "delay_s": 5}}, "cannot have run_at or delay_s"),
        ("s", {"dag": {"tasks": []}, "task": TASK}, "a task or a DAG, not both"),
    ],
)
def test_a_schedule_that_could_not_work_is_refused_and_changes_nothing(
    driver: Driver, name: str, settings: dict[str, Any], says: str
) -> None:
    before = driver.contents()
    given = {"cron": "@daily", "task": TASK, **settings}

    with pytest.raises(psycopg.DatabaseError, match=says):
        driver.rows("select treadle.define_schedule(%s, %s)", name, Jsonb(given))

    assert driver.contents() == before


def test_a_schedule_for_a_full_queue_is_accepted(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('small', '{\"max_depth\": 1}')")
    driver.enqueue(queue="small")

    define(driver, task={**TASK, "queue": "small"})

    assert driver.value("select count(*) from treadle.tasks") == 1


def test_a_word_is_the_same_word_in_any_case(driver: Driver) -> None:
    define(driver, cron="@Daily")

    assert schedule(driver)["cron"] == "@daily"
    assert change(driver, cron=" @DAILY") == "unchanged"
    assert change(driver, cron="0 2 * * MON") == "changed"
    assert schedule(driver)["cron"] == "0 2 * * MON"


@pytest.mark.requirement("F19")
def test_a_schedule_with_an_invalid_line_stops_with_a_reason_and_the_others_continue(
    driver: Driver,
) -> None:
    at(driver, START)
    define(driver, "bad", cron="0 0 99 * *")
    define(driver, "posix", timezone="UTC+3")
    define(driver, "good")
    tick(driver)

    shown = driver.records("select * from treadle.schedule_status order by name")
    assert [row["state"] for row in shown] == ["stopped", "active", "stopped"]
    assert "bad day-of-month" in shown[0]["last_error"]
    assert "no time zone 'UTC+3'" in shown[2]["last_error"]
    assert driver.value("select treadle.next_schedule_at()") == START + HOUR
    tick(driver)
    failed = "select count(*) from treadle.events where kind = 'schedule.failed'"
    assert driver.value(failed) == 2

    change(driver, "bad", cron="0 0 9 * *")
    tick(driver)
    assert schedule(driver, "bad")["next_at"] == START.replace(day=9, hour=0)


@pytest.mark.requirement("F19")
async def test_code_declares_schedules_and_leaves_alone_what_an_operator_changed(
    app: Treadle, driver: Driver
) -> None:
    @app.task(priority=20)
    async def report(kind: str) -> None:
        """Say how it went."""

    app.schedule("reports", "30  2 * * *", report.call(kind="daily"), tz="Europe/Berlin")
    app.schedule("by-name", "@hourly", "report", {"kind": "short"}, options={"priority": 3})
    assert await app.schedules.declare() == {"by-name": "created", "reports": "created"}
    change(driver, "reports", cron="0 3 * * *")
    driver.rows("select treadle.pause_schedule('reports')")

    assert set((await app.schedules.declare()).values()) == {"unchanged"}

    row = schedule(driver, "reports")
    assert (row["cron"], row["timezone"]) == ("0 3 * * *", "Europe/Berlin")
    assert row["paused_at"] is not None
    app.schedules.declared["reports"]["cron"] = "45 2 * * *"
    assert await app.schedules.declare() == {"by-name": "unchanged", "reports": "changed"}
    row = schedule(driver, "reports")
    assert (row["cron"], row["paused_at"] is not None) == ("45 2 * * *", True)
    await app.db.schedules.run("by-name")
    [task] = tasks(driver)
    assert (task["type"], task["spec"], task["priority"]) == ("report", {"kind": "short"}, 3)


@pytest.mark.requirement("F19")
async def test_a_worker_stores_the_schedules_of_its_application(
    app: Treadle, driver: Driver
) -> None:
    @app.task()
    async def report() -> None: ...

    app.schedule("bad", "@daily", "nobody-has-this")
    app.schedule("good", "@daily", report)
    async with app.worker(until_empty=True) as worker:
        await worker.run()

    assert driver.rows("select name from treadle.schedules") == [("good",)]


async def test_a_schedule_in_code_that_makes_no_sense_is_refused_where_it_is_written(
    app: Treadle,
) -> None:
    @app.task()
    async def report(kind: str) -> None: ...

    with pytest.raises(InvalidArgument, match="five fields"):
        app.schedule("a", "* * * *", report.call(kind="x"))
    with pytest.raises(InvalidArgument, match="does not take"):
        app.schedule("a", "@daily", report.call(sort="x"))
    with pytest.raises(InvalidArgument, match="a task or a DAG"):
        app.schedule("a", "@daily")
    app.schedule("a", "@daily", report.call(kind="x"))
    with pytest.raises(InvalidArgument, match="already a schedule"):
        app.schedule("a", "@daily", report.call(kind="x"))
    with pytest.raises(UnknownSchedule):
        await app.db.schedules.pause("b")


async def test_code_does_not_take_over_the_schedule_of_an_operator(
    app: Treadle, driver: Driver
) -> None:
    settings = Jsonb({"cron": "@daily", "task": {"type": "code"}})
    driver.rows("select treadle.define_schedule('nightly', %s, 'ann')", settings)
    app.schedule("nightly", "@hourly", "code")

    with unchanged(driver), pytest.raises(InvalidArgument, match="created by ann, not in code"):
        await app.schedules.declare()
