"""Triggers and events from Python: defined in code, followed as they happen."""

from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import anyio
import pytest

from tests.drivers import triggers
from tests.drivers.engine import Driver
from tests.drivers.triggers import emit, fire
from treadle import Treadle
from treadle.errors import InvalidArgument, UnknownTrigger
from treadle.models import Event
from treadle.settings import load_settings


@pytest.mark.requirement("F18")
async def test_code_defines_a_trigger_and_fires_it(driver: Driver, app: Treadle) -> None:
    made = await app.trigger(
        "next", on="paid", filter={"key": "a"}, task={"type": "review"}, max_per_hour=None
    )
    assert made == await app.trigger("next", on="paid", filter={"key": "a"})
    event = await app.emit("paid", {"n": 1}, key="a")
    db = app.db

    [fired] = await db.triggers.fire_all(100)

    assert (fired.id, fired.event_id, fired.problem) == (made, event, None)
    assert [fired.task_id] == triggers.made(driver, "next")
    assert await db.triggers.check_failure_rates() == []
    db = app.db
    assert [row["name"] for row in await db.triggers.list()] == ["next"]
    with pytest.raises(UnknownTrigger):
        await db.triggers.pause("nobody")


@pytest.mark.requirement("F18")
async def test_what_a_handler_emits_belongs_to_its_task(driver: Driver, app: Treadle) -> None:
    @app.task()
    async def ping() -> None:
        await app.emit("again")

    @app.task()
    def pong() -> None:
        anyio.from_thread.run(app.emit, "blocking")

    await ping.enqueue()
    await pong.enqueue()
    await app.trigger("loop", on="again", task={"type": "ping"}, max_depth=3)
    for _ in range(6):
        await app.run_worker(until_empty=True, slots=2)
        fire(driver)

    assert len(triggers.made(driver, "loop")) == 3
    assert triggers.trigger(driver, "loop")["refused"] == 1
    rows = driver.rows(
        "select count(*), count(task_id) from treadle.events where kind in ('again', 'blocking')"
    )
    assert rows == [(5, 5)]
    assert await app.emit("again") > 0
    [[outside]] = driver.rows("select task_id from treadle.events order by id desc limit 1")
    assert outside is None


async def follow(app: Treadle, into: list[Event], count: int, **options: Any) -> None:
    async with aclosing(app.events(**options)) as stream:
        async for event in stream:
            into.append(event)
            if len(into) == count:
                return


@pytest.mark.requirement("F23")
@pytest.mark.parametrize("notify", [True, False])
async def test_events_are_followed_as_they_happen(driver: Driver, notify: bool) -> None:
    seen: list[Event] = []
    settings = load_settings(database_url=driver.url, notify=notify)
    options = {"kinds": ["a"], "after": "0.0", "poll_s": 30.0 if notify else 0.05}

    async def until(done: Callable[[], object]) -> None:
        for _ in range(2000):
            if done() or not notify:
                return
            await anyio.sleep(0.01)
        pytest.fail("nobody was told")

    async with Treadle(driver.url, settings=settings) as app, anyio.create_task_group() as group:
        group.start_soon(partial(follow, app, seen, 3, **options))
        await until(lambda: driver.value("select count(*) from treadle.event_listeners"))
        for n in range(3):
            emit(driver, "b")
            emit(driver, "a", {"n": n})
            await until(lambda: len(seen) > n)  # noqa: B023

    assert [event.data["n"] for event in seen] == [0, 1, 2]
    assert driver.value("select count(*) from treadle.event_listeners") == 0

    async with Treadle(driver.url, settings=settings) as app:
        rest: list[Event] = []
        await follow(app, rest, 2, after=seen[1].place)
        assert [event.kind for event in rest] == ["b", "a"]


async def test_a_follower_begins_with_new_events(driver: Driver, app: Treadle) -> None:
    emit(driver, "a")
    db = app.db
    found, place = await db.events.read(None, None, 10)
    assert found == []
    number = emit(driver, "a")
    found, place = await db.events.read(place, ["a"], 10)
    assert [event.id for event in found] == [number]
    assert place == found[-1].place
    with pytest.raises(InvalidArgument, match="kinds must be a list"):
        await anext(app.events("a"))
