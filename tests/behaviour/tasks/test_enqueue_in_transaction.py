"""A task enqueued on the caller's connection exists if and only if the caller commits."""

import psycopg
import pytest

from tests.drivers.engine import Driver
from treadle import Treadle

pytestmark = pytest.mark.requirement("B8")


def tasks(driver: Driver) -> int:
    """How many tasks another session sees."""
    return int(driver.value("select count(*) from treadle.tasks"))


def test_plain_sql_commits_the_task_with_the_callers_own_rows(driver: Driver) -> None:
    caller = driver.another()
    caller.rows("begin")
    caller.rows("create table public.orders (id int)")
    caller.rows("select treadle.enqueue_task('default', 'code')")
    caller.rows('select * from treadle.enqueue_tasks(\'[{"type": "code"}]\')')

    assert tasks(driver) == 0

    caller.rows("rollback")
    assert tasks(driver) == 0
    assert driver.value("select to_regclass('public.orders')") is None


def test_plain_sql_that_commits_leaves_the_task(driver: Driver) -> None:
    caller = driver.another()
    caller.rows("begin")
    caller.rows("select treadle.enqueue_task('default', 'code')")
    assert tasks(driver) == 0

    caller.rows("commit")

    assert tasks(driver) == 1


async def test_a_plain_psycopg_connection_enqueues_at_once(app: Treadle, driver: Driver) -> None:
    @app.task()
    async def greet(name: str) -> None: ...

    with psycopg.connect(driver.url) as conn:
        handle = greet.enqueue(conn=conn, name="ada")
        many = greet.enqueue_many([{"name": "a"}, {"name": "b"}], conn=conn)
        other = app.enqueue("code", {"n": 1}, conn=conn)
        assert tasks(driver) == 0
        conn.commit()

    assert tasks(driver) == 4
    assert driver.task(handle.id)["spec"] == {"name": "ada"}
    assert [driver.task(each.id)["spec"] for each in many] == [{"name": "a"}, {"name": "b"}]
    assert driver.task(other.id)["spec"] == {"n": 1}


async def test_a_plain_psycopg_connection_that_rolls_back_leaves_nothing(
    app: Treadle, driver: Driver
) -> None:
    app.queue("brand-new")

    @app.task(queue="brand-new")
    async def greet(name: str) -> None: ...

    before = driver.contents()
    with psycopg.connect(driver.url) as conn:
        greet.enqueue(conn=conn, name="ada")
        greet.using(delay=1).enqueue_many([{"name": "bob"}], conn=conn)
        conn.rollback()

    assert driver.contents() == before


async def test_an_async_psycopg_connection_commits_or_leaves_nothing(
    app: Treadle, driver: Driver
) -> None:
    @app.task()
    async def greet(name: str) -> None: ...

    async with await psycopg.AsyncConnection.connect(driver.url) as conn:
        await greet.enqueue(conn=conn, name="ada")
        await app.enqueue("code", conn=conn)
        await conn.rollback()
        assert tasks(driver) == 0

        handle = await greet.using(priority=1).enqueue(conn=conn, name="ada")
        assert tasks(driver) == 0
        await conn.commit()

    assert driver.task(handle.id)["priority"] == 1
    assert tasks(driver) == 1


async def test_a_failed_enqueue_in_a_savepoint_leaves_the_callers_transaction_usable(
    app: Treadle, driver: Driver
) -> None:
    with psycopg.connect(driver.url) as conn:
        with pytest.raises(Exception, match="no task type"), conn.transaction():
            app.enqueue("nonsense", conn=conn)
        app.enqueue("code", conn=conn)
        conn.commit()

    assert tasks(driver) == 1


async def test_the_callers_row_factory_and_settings_do_not_matter(
    app: Treadle, driver: Driver
) -> None:
    with psycopg.connect(driver.url, row_factory=psycopg.rows.dict_row) as conn:
        conn.execute("set search_path = pg_catalog")
        conn.execute("set timezone = 'Asia/Kolkata'")
        conn.execute("set datestyle = 'German'")
        conn.execute("set default_transaction_isolation = 'serializable'")
        conn.commit()
        handle = app.enqueue("code", {"n": 1}, conn=conn, delay=60)
        conn.commit()

    assert driver.state_of(handle.id) == "pending"
