"""Ten schedulers and a year of cron times: each nominal time creates its task exactly once.

The clock of the database is moved through 2026, with both changes of the clocks in each zone. What
is expected is worked out minute by minute, see tests/drivers/calendars.py.
"""

import random
from datetime import UTC, datetime, timedelta

import pytest

from tests.drivers.calendars import minutes_of
from tests.drivers.engine import CLOCK
from tests.drivers.processes.children import Child, Conn, Spawn, rows, until, value

BEGIN, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
SCHEDULERS = 10
SCHEDULES = {
    "hours": ("0 */6,2 * * *", "Europe/Berlin"),
    "nightly": ("30 2 * * *", "Europe/Berlin"),
    "nights": ("15,45 1,2 * * *", "America/New_York"),
    "half-hours": ("45 */8,1 * * *", "Australia/Lord_Howe"),
    "midnights": ("0 0 * * *", "America/Santiago"),
}


@pytest.mark.requirement("F19")
async def test_ten_schedulers_make_each_time_of_a_year_once_though_some_are_killed(
    conn: Conn, spawn: Spawn
) -> None:
    chance = random.Random(5)
    await conn.execute(CLOCK.encode())
    await conn.execute("insert into public.test_clock (stopped_at) values (%s)", [BEGIN])
    for name, (cron, zone) in SCHEDULES.items():
        await conn.execute(
            """
            select treadle.define_schedule(%s, jsonb_build_object(
              'cron', %s::text, 'timezone', %s::text, 'catch_up', 'all',
              'task', jsonb_build_object('type', 'code', 'spec', '{"at": "{{nominal_at}}"}'::jsonb)
            ))
            """,
            [name, cron, zone],
        )
    children = [start(spawn) for _ in range(SCHEDULERS)]
    expected = {
        name: list(minutes_of(cron, zone, BEGIN, END)) for name, (cron, zone) in SCHEDULES.items()
    }
    for each in children:
        await each.logged("scheduler.started", within=60)

    now = BEGIN
    while now < END:
        now = min(END, now + chance.choice([50, 70]) * timedelta(days=1, minutes=37))
        await conn.execute("update public.test_clock set stopped_at = %s", [now])
        await conn.execute("notify treadle_schedules")
        # In the middle of it: the one that waits for its answer, or any other.
        victim = chance.randrange(SCHEDULERS)
        children[victim].kill()
        await until(lambda: _caught_up(conn), within=60)
        children.append(children[victim])
        children[victim] = start(spawn)

    made = await rows(conn, "select schedule, nominal_at, status from treadle.schedule_runs")
    assert {status for _, _, status in made} == {"queued"}
    for name, times in expected.items():
        assert sorted(at for schedule, at, _ in made if schedule == name) == times
    # And each of them has its own task, which says the same time; there is no other.
    paired = """
    select count(*) from treadle.schedule_runs as runs
    inner join treadle.task_details as tasks on tasks.id = runs.task_id
    where source_job = schedule
      and spec ->> 'at' = to_char(nominal_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    """
    total = sum(len(times) for times in expected.values())
    assert await value(conn, paired) == total
    assert await value(conn, "select count(*) from treadle.tasks") == total
    assert sum(bool(each.events("schedule.queued")) for each in children) >= SCHEDULERS / 2


def start(spawn: Spawn) -> Child:
    return spawn("scheduler", service_s=1, pool_size=2)


async def _caught_up(conn: Conn) -> bool:
    query = """
    select count(*) from treadle.schedules where next_at is null or next_at <= treadle.clock()
    """
    return bool(await value(conn, query) == 0)
