"""The examples do what they say."""

from typing import Any

import psycopg
import pytest

from examples import hello, orders
from treadle.errors import TaskNotFound
from treadle.testing import Harness


async def test_hello_greets(database_url: str) -> None:
    async with Harness(hello.app, database_url) as harness:
        assert await harness.run_inline(hello.hello, name="Ada") == "Hello, Ada!"


@pytest.mark.requirement("B8")
async def test_an_order_and_its_task_are_one_transaction(
    database_url: str, sync_conn: psycopg.Connection[tuple[Any, ...]]
) -> None:
    sync_conn.execute(orders.TABLES.encode())
    async with Harness(orders.app, database_url) as harness:
        with psycopg.connect(database_url) as conn:
            kept, handle = orders.place_order(conn, "a loom")
            conn.commit()
            _, forgotten = orders.place_order(conn, "another loom")
            conn.rollback()

        assert await harness.drain() == {"completed": 1}
        assert await handle.result(timeout=1) == f"label-{kept}"
        with pytest.raises(TaskNotFound):
            await harness.state_of(forgotten)

    assert sync_conn.execute("select order_id from shipments").fetchall() == [(kept,)]
