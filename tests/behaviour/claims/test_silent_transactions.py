"""A statement of a handler may take long; a lost response is detected."""

from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from tests.drivers.processes.children import Conn, rows, until
from tests.drivers.processes.tcp_proxy import TcpProxy
from treadle import Context, Treadle
from treadle.settings import load_settings

pytestmark = pytest.mark.requirement("B16")
DEADLINE_S = 1.0


@pytest.fixture
def proxy(database_url: str) -> Iterator[TcpProxy]:
    """A proxy in front of the database that can stop responding."""
    with TcpProxy(database_url) as made:
        yield made


def make(proxy: TcpProxy, **options: Any) -> Treadle:
    """An application behind the proxy, with a short deadline for calls."""
    given = {"notify": False, "call_timeout_s": DEADLINE_S, **options}
    return Treadle(settings=load_settings(database_url=proxy.url, **given))


@pytest.mark.parametrize("when", ["before", "during"])
async def test_an_attempt_whose_transaction_stops_responding_ends_and_the_next_one_succeeds(
    proxy: TcpProxy, conn: Conn, when: str
) -> None:
    await conn.execute("create table paid (task_id uuid primary key, attempt integer)")
    app = make(proxy)

    @app.task(retry={"strategy": "immediate"})
    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            # The server keeps the lock of this row for as long as it keeps the transaction.
            await tx.execute("insert into paid values (%s, %s)", (ctx.task.id, ctx.attempt))
            if ctx.attempt == 1 and when == "before":
                proxy.silence()
            if ctx.attempt == 1:
                await tx.execute("select pg_sleep(2)")

    async with app, anyio.create_task_group() as group:
        await pay.enqueue()
        if when == "during":
            group.start_soon(_silence_when_it_sleeps, proxy, conn)
        with anyio.fail_after(60):
            await app.run_worker(until_empty=True)

    assert await rows(conn, "select attempt from paid") == [(2,)]
    assert await rows(conn, "select class from treadle.attempts") == [("unavailable",)]


async def _silence_when_it_sleeps(proxy: TcpProxy, conn: Conn) -> None:
    query = "select from pg_stat_activity where query = 'select pg_sleep(2)' and state = 'active'"
    await until(lambda: rows(conn, query))
    proxy.silence()


async def test_a_statement_may_take_longer_than_the_deadline_of_a_call(
    proxy: TcpProxy, conn: Conn
) -> None:
    app = make(proxy)

    @app.task(max_attempts=1)
    async def pay(ctx: Context) -> Any:
        async with ctx.transaction(output="paid") as tx:
            await tx.execute("select pg_sleep(%s)", (DEADLINE_S * 2,))

    async with app:
        handle = await pay.enqueue()
        await app.run_worker(until_empty=True)

        assert await handle.result(timeout=20) == "paid"
