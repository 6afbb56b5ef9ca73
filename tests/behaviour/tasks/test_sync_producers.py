"""Tasks are enqueued from sync code without asyncio and without a connection of one's own."""

import asyncio
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import psycopg
import pytest

from tests.drivers.engine import Driver
from treadle import Handle, Task, Treadle
from treadle.errors import InvalidArgument, ResultTimeout, Unavailable, UnknownQueue
from treadle.settings import load_settings

pytestmark = pytest.mark.requirement("B15")


@pytest.fixture
def shop(driver: Driver) -> Iterator[Treadle]:
    """An application that is not opened, with a task."""
    app = Treadle(settings=load_settings(database_url=driver.url, pool_size=2))

    @app.task
    async def greet(name: str) -> str:
        return f"Hello {name}"

    yield app
    app.run(app.close())


@pytest.fixture
def greet(shop: Treadle) -> Task:
    definition = shop.registry.get("greet")
    assert definition is not None
    return Task(shop, definition)


def specs(driver: Driver) -> list[Any]:
    """The arguments of all tasks, oldest first."""
    return [spec for (spec,) in driver.rows("select spec from treadle.tasks order by id")]


def work(app: Treadle) -> None:
    """Run all tasks in an event loop of their own."""
    asyncio.run(app.run_worker(until_empty=True))


def test_a_script_enqueues_and_waits_without_asyncio(
    shop: Treadle, greet: Task, driver: Driver
) -> None:
    handle = greet.enqueue(name="Ada")

    assert driver.task(handle.id)["status"] == "ready"
    assert isinstance(handle, Handle)
    assert handle.created
    work(shop)
    assert handle.wait(timeout=20) == "Hello Ada"
    assert shop.run(handle.status()) == "completed"


def test_every_way_to_enqueue_works_in_sync_code(
    shop: Treadle, greet: Task, driver: Driver
) -> None:
    greet.enqueue(name="a")
    by_name = shop.enqueue("greet", {"name": "b"})
    many = greet.using(priority=1).enqueue_many([{"name": "c"}, {"name": "d"}])
    with shop.dag("block") as dag:
        dag.add(greet.call(name="e"))

    assert [each["name"] for each in specs(driver)] == ["a", "b", "c", "d", "e"]
    assert len({by_name.id, *(each.id for each in many)}) == 3
    assert shop.run(dag.handle.state()).id == dag.id


def test_an_event_is_emitted_in_sync_code(shop: Treadle, driver: Driver) -> None:
    shop.run(shop.emit("deployed", {"version": 2}))

    assert driver.rows("select kind from treadle.events") == [("deployed",)]


def test_asyncio_run_works_again_and_again(shop: Treadle, greet: Task, driver: Driver) -> None:
    async def main(name: str) -> str:
        handle = await greet.enqueue(name=name)
        assert type(handle) is Handle
        return await handle.status()

    for name in ("a", "b"):
        handle = asyncio.run(greet.enqueue(name=name))
        assert type(handle) is Handle
        assert asyncio.run(handle.status()) == "ready"
    assert [asyncio.run(main(name)) for name in ("c", "d")] == ["ready", "ready"]

    assert [each["name"] for each in specs(driver)] == ["a", "b", "c", "d"]


async def test_async_code_awaits_as_before(shop: Treadle, greet: Task, driver: Driver) -> None:
    async with shop, anyio.create_task_group() as group:
        first = await greet.enqueue(name="a")
        both = await asyncio.gather(greet.enqueue(name="b"), greet.enqueue(name="c"))
        group.start_soon(lambda: greet.enqueue(name="d"))
        in_time = await asyncio.wait_for(greet.enqueue(name="e"), 20)
        many = await greet.enqueue_many([{"name": "f"}])

    assert {type(each) for each in [first, *both, in_time, *many]} == {Handle}
    assert sorted(each["name"] for each in specs(driver)) == list("abcdef")


async def test_a_task_that_is_not_awaited_does_not_exist_yet(
    shop: Treadle, greet: Task, driver: Driver
) -> None:
    pending = greet.enqueue(name="Ada")

    with pytest.raises(InvalidArgument, match="does not exist yet") as raised:
        str(pending.id)
    assert "await" in str(raised.value.hint)
    assert specs(driver) == []

    handle = await pending
    assert (pending.id, pending.created) == (handle.id, True)
    await shop.close()


async def test_sync_waits_are_refused_in_an_event_loop(shop: Treadle, greet: Task) -> None:
    handle = await greet.enqueue(name="Ada")

    with pytest.raises(InvalidArgument, match="event loop is running") as raised:
        handle.wait(timeout=1)
    assert "await handle.result()" in str(raised.value.hint)
    with pytest.raises(InvalidArgument, match="async code"), shop.dag("d"):
        pass
    await shop.close()


def test_threads_share_the_connections_of_the_application(greet: Task, driver: Driver) -> None:
    with ThreadPoolExecutor(8) as threads:
        handles = list(threads.map(lambda n: greet.enqueue(name=str(n)), range(40)))

    assert len({handle.id for handle in handles}) == 40
    connected = driver.value(
        "select count(*) from pg_stat_activity "
        "where datname = current_database() and application_name = 'treadle'"
    )
    assert connected <= 2


def test_threads_and_event_loops_wait_for_results_at_once(shop: Treadle, greet: Task) -> None:
    handles = greet.enqueue_many([{"name": str(n)} for n in range(6)])

    async def main() -> list[Any]:
        return await asyncio.gather(*(handle.result(20) for handle in handles))

    with ThreadPoolExecutor(4) as threads:
        in_sync = [threads.submit(handle.wait, 20) for handle in handles[:2]]
        in_loops = [threads.submit(asyncio.run, main()) for _ in range(2)]
        work(shop)

        assert [each.result(20) for each in in_sync] == ["Hello 0", "Hello 1"]
        assert in_loops[0].result(20) == in_loops[1].result(20)


def test_a_sync_handler_may_enqueue(shop: Treadle, greet: Task) -> None:
    @shop.task
    def parent() -> str:
        return str(greet.enqueue(name="child").id)

    handle = parent.enqueue()
    work(shop)

    assert shop.run(shop.db.tasks.get(handle.id))["status"] == "completed"
    assert handle.wait(20)


def test_a_sync_connection_of_the_caller_keeps_its_transaction(greet: Task, driver: Driver) -> None:
    with psycopg.connect(driver.url) as conn:
        greet.enqueue(conn=conn, name="Ada")
        conn.rollback()
    assert specs(driver) == []

    with psycopg.connect(driver.url) as conn:
        greet.enqueue(conn=conn, name="Ada")
    assert specs(driver) == [{"name": "Ada"}]


def test_a_forked_process_has_a_thread_and_connections_of_its_own(
    greet: Task, driver: Driver
) -> None:
    greet.enqueue(name="parent")

    child = os.fork()
    if child == 0:
        try:
            greet.enqueue(name="child")
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, code = os.waitpid(child, 0)
    greet.enqueue(name="parent again")

    assert code == 0
    assert [each["name"] for each in specs(driver)] == ["parent", "child", "parent again"]


SCRIPT = """
from treadle import Treadle
app = Treadle()
@app.task
def work() -> None: ...
print(work.enqueue().id)
"""


def test_a_script_ends_cleanly(driver: Driver) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", SCRIPT],
        env={**os.environ, "TREADLE_DATABASE_URL": driver.url},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")
    assert driver.rows("select id::text from treadle.tasks") == [(done.stdout.strip(),)]


def test_errors_are_raised_with_their_hint_in_the_traceback(greet: Task, driver: Driver) -> None:
    with pytest.raises(UnknownQueue) as raised:
        greet.using(queue="deafult").enqueue(name="Ada")

    text = "".join(traceback.format_exception(raised.value))
    assert "UnknownQueue: there is no queue 'deafult'" in text
    assert "\nhint: Did you mean 'default'?" in text
    wrong: Any = greet
    with pytest.raises(InvalidArgument, match="nam"):
        wrong.enqueue(nam="Ada")


def test_every_wait_ends(shop: Treadle, greet: Task) -> None:
    handle = greet.enqueue(name="Ada")

    with pytest.raises(ResultTimeout):
        handle.wait(timeout=0.01)
    with pytest.raises(Unavailable, match=r"no result within 0\.01 s"):
        shop.run(asyncio.sleep(60), timeout=0.01)
    nowhere = Treadle(
        settings=load_settings(database_url="postgresql://localhost:1/x", connect_timeout_s=1)
    )
    with pytest.raises(Unavailable):
        nowhere.enqueue("code")
