"""A schedule that cannot be processed stops neither the others nor the triggers."""

import json

import pytest

from tests.drivers.processes.children import Conn, rows, value
from treadle import Treadle
from treadle.services.scheduler import Scheduler

# Stands for whatever may be wrong with a schedule: what became of it cannot be kept.
TRAP = """
    create function trap() returns trigger language plpgsql as $$
    begin
      raise exception 'this row is broken';
    end $$;
    create trigger trap before insert on treadle.schedule_runs
    for each row when (new.schedule = 'bad') execute function trap();
"""
# Stands for whatever somebody else may hold.
HOLD = """
    create function hold() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock(4711);
      return new;
    end $$;
    create trigger hold before insert on treadle.tasks
    for each row when (new.title = 'bad') execute function hold();
"""


async def make_due(conn: Conn) -> None:
    """One schedule that is bad and four that are not, and something for a trigger."""
    for name in ("bad", "a", "b", "c", "d"):
        task = {"type": "code", "title": name}
        given = json.dumps({"cron": "@yearly", "task": task, "catch_up": "one"})
        await conn.execute("select treadle.define_schedule(%s, %s)", [name, given])
    # Once a year: no second time falls due while the test runs.
    await conn.execute("update treadle.schedules set next_at = date_trunc('year', treadle.clock())")
    settings = json.dumps({"on": "paid", "task": {"type": "code", "title": "t"}})
    await conn.execute("select treadle.define_trigger('t', %s)", [settings])
    await conn.execute("select treadle.emit_event('paid')")


async def made(conn: Conn) -> list[str]:
    return [title for (title,) in await rows(conn, "select title from treadle.tasks order by 1")]


@pytest.mark.requirement("F19")
async def test_a_bad_schedule_is_left_out_and_the_rest_is_done(app: Treadle, conn: Conn) -> None:
    await make_due(conn)
    await conn.execute(TRAP)

    async with app.service(Scheduler) as scheduler:
        await scheduler.tick()
        assert len(scheduler.skip()) == 1
        await scheduler.tick()

    assert await made(conn) == ["a", "b", "c", "d", "t"]


@pytest.mark.requirement("F19")
async def test_a_schedule_that_meets_a_lock_waits_for_the_next_tick(
    app: Treadle, conn: Conn
) -> None:
    await make_due(conn)
    await conn.execute(HOLD)

    async with app.service(Scheduler) as scheduler:
        await value(conn, "select pg_advisory_lock(4711)")
        await scheduler.tick()
        assert await made(conn) == ["a", "b", "c", "d", "t"]
        assert scheduler.skip() == []
        await value(conn, "select pg_advisory_unlock(4711)")
        await scheduler.tick()

    assert await made(conn) == ["a", "b", "bad", "c", "d", "t"]
