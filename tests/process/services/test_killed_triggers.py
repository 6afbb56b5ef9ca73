"""Schedulers may be killed or duplicated: each event fires its trigger once."""

import pytest

from tests.drivers.processes.children import Conn, Spawn, until, value
from treadle import Treadle

MANY = 60


async def fired(conn: Conn) -> int:
    return int(
        await value(conn, "select count(*) from treadle.task_options where source = 'trigger'")
    )


@pytest.mark.requirement("F18")
async def test_three_schedulers_fire_each_event_once_and_one_may_be_killed(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    await app.trigger(
        "next", on="paid", task={"type": "review", "spec": {"n": {"$event": "data.n"}}}
    )
    schedulers = [spawn("scheduler", service_s=0.1) for _ in range(3)]
    for each in schedulers:
        await each.logged("scheduler.started", within=30)

    for n in range(MANY):
        await app.emit("paid", {"n": n})
        if n == MANY // 2:
            schedulers[0].kill()

    async def all_fired() -> bool:
        return await fired(conn) >= MANY

    await until(all_fired, within=30)
    # Another pass finds nothing to do.
    assert await app.db.triggers.fire_all(500) == []
    assert await fired(conn) == MANY
    kinds = """
        select count(distinct spec ->> 'n') from treadle.task_details where source = 'trigger'
    """
    assert await value(conn, kinds) == MANY


@pytest.mark.requirement("F23")
async def test_a_notification_makes_the_scheduler_handle_an_event_at_once(
    app: Treadle, conn: Conn, spawn: Spawn
) -> None:
    await app.trigger("next", on="paid", task={"type": "review"})
    scheduler = spawn("scheduler", service_s=600)
    await scheduler.logged("scheduler.started", within=30)

    async def listening() -> bool:
        query = "select count(*) from treadle.event_listeners where name = 'triggers'"
        return int(await value(conn, query)) == 1

    await until(listening)
    await app.emit("paid")

    async def one_fired() -> bool:
        return await fired(conn) == 1

    await until(one_fired)
