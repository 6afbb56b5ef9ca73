"""Schedulers as processes: on time, duplicated, killed, notified and stopped."""

import json
import signal

import pytest

from tests.drivers.processes.children import Child, Conn, Spawn, rows, until, value
from treadle import Treadle

EVERY_MINUTE = {"cron": "* * * * *", "task": {"type": "code"}, "catch_up": "all"}
MINUTES = 40


async def define(conn: Conn, name: str, **settings: object) -> None:
    given = json.dumps({**EVERY_MINUTE, **settings})
    await conn.execute("select treadle.define_schedule(%s, %s)", [name, given])


async def fall_behind(conn: Conn) -> None:
    """As if no scheduler had been there for a while."""
    await conn.execute(
        """
        update treadle.schedules
        set next_at = date_trunc('minute', treadle.clock()) - make_interval(mins => %s)
        """,
        [MINUTES],
    )
    await conn.execute("notify treadle_schedules")


async def caught_up(conn: Conn) -> bool:
    query = "select count(*) from treadle.schedules where next_at > treadle.clock()"
    return bool(
        await value(conn, query) == await value(conn, "select count(*) from treadle.schedules")
    )


@pytest.mark.requirement("F19")
async def test_two_schedulers_make_each_time_once_and_one_may_be_killed(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    for number in range(4):
        await define(conn, f"s{number}")
    first, second = spawn("scheduler", service_s=0.5), spawn("scheduler", service_s=0.5)
    await first.logged("scheduler.started")
    await second.logged("scheduler.started")
    await until(lambda: caught_up(conn))

    await fall_behind(conn)
    first.kill()
    await until(lambda: caught_up(conn))

    # In one look: a minute may begin meanwhile, and the other makes its runs.
    [(runs, tasks, linked)] = await rows(
        conn,
        """
        select
          (select count(*) from treadle.schedule_runs where status = 'queued'),
          (select count(*) from treadle.tasks),
          (select count(distinct task_id) from treadle.schedule_runs)
        """,
    )
    assert runs == tasks == linked
    assert runs >= 4 * MINUTES


async def listening(conn: Conn, spawn: Spawn) -> Child:
    """A scheduler that polls once an hour, and listens."""
    child = spawn("scheduler", service_s=3600)
    await child.logged("scheduler.started")
    query = """
    select count(*) = 1 from pg_stat_activity
    where datname = current_database() and application_name = 'treadle-listener'
      and state = 'idle'
    """
    await until(lambda: value(conn, query))
    return child


@pytest.mark.requirement("F19")
async def test_a_new_schedule_wakes_the_scheduler(conn: Conn, spawn: Spawn) -> None:
    await listening(conn, spawn)

    await define(conn, "new")

    await until(lambda: caught_up(conn))


@pytest.mark.requirement("F19")
async def test_it_works_without_notify_and_a_bad_schedule_does_not_stop_the_others(
    conn: Conn, spawn: Spawn
) -> None:
    await define(conn, "bad", cron="0 0 99 * *")
    await define(conn, "good")
    child = spawn("scheduler", service_s=0.2, notify="false")
    rejected = await child.logged("schedule.rejected")
    assert rejected["schedule"] == "bad"
    await until(
        lambda: value(
            conn, "select next_at < 'infinity' from treadle.schedules where name = 'good'"
        )
    )

    await conn.execute(
        """
        update treadle.schedules set next_at = date_trunc('minute', treadle.clock())
        where name = 'good'
        """
    )

    await child.logged("schedule.queued", schedule="good")
    child.send(signal.SIGTERM)
    assert await child.exit_code() == 0
    assert child.events("scheduler.stopped")
    assert await value(conn, "select last_error from treadle.schedule_status where name = 'bad'")


@pytest.mark.requirement("F18")
async def test_the_first_event_of_a_new_trigger_wakes_the_scheduler(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    child = await listening(conn, spawn)
    settings = json.dumps({"on": "order.paid", "task": {"type": "code"}})
    await conn.execute("select treadle.define_trigger('ship', %s)", [settings])

    await conn.execute("select treadle.emit_event('order.paid', '{}')")

    await child.logged("trigger.fired")
    assert await value(conn, "select source from treadle.task_options") == "trigger"


@pytest.mark.requirement("Q10", "Q14")
async def test_what_is_submitted_to_the_queue_or_refused_there_is_logged(
    conn: Conn, spawn: Spawn
) -> None:
    await conn.execute("""select treadle.define_queue('push', '{"max_depth": 1}')""")
    await define(conn, "nightly", task={"queue": "push", "spec": {"prompt": "hello"}})
    child = spawn("scheduler", service_s=0.5)
    await until(lambda: caught_up(conn))

    await fall_behind(conn)

    await until(lambda: caught_up(conn))
    await child.logged("queue.submit_rejected")
    [added] = child.events("queue.task_added")
    queue_id = await value(conn, "select last_queue_id from treadle.schedule_status")
    assert added["queue_id"] == queue_id
    assert (added["depth"], added["source"], added["schedule"]) == (1, "scheduler", "nightly")
    rejected = child.events("queue.submit_rejected", reason="queue_full", source="scheduler")[0]
    assert (rejected["depth"], rejected["level"]) == (1, "warning")
