"""PostgreSQL crashes under load and recovers: nothing acknowledged is lost or duplicated."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import psycopg
import pytest

from tests.drivers.apps.naps import EFFECTS, make_app
from tests.drivers.databases import OwnServer
from tests.drivers.processes.children import APP, Child, all_completed, rows, until, value
from tests.drivers.processes.producer import Producer
from treadle import Treadle
from treadle.db.embedded import EmbeddedServer
from treadle.db.install.migrate import migrate

QUICK = {"heartbeat_s": 1, "claim_ttl_s": 2, "slots": 5, "poll_s": 1}


@pytest.fixture
def server(own_server: OwnServer) -> EmbeddedServer:
    """A server that may crash, with the schema.

    Its clients would not wait for the disk, if they were not made to: what is acknowledged is safe
    whatever they chose.
    """
    made = own_server(synchronous_commit="off", wal_writer_delay="10s")
    migrate(made.url())
    return made


@pytest.fixture
async def app(server: EmbeddedServer) -> AsyncIterator[Treadle]:
    """The application on that server."""
    with psycopg.connect(server.url(), autocommit=True) as conn:
        conn.execute(EFFECTS)
    async with make_app(server.url()) as made:
        await made.db.types.declare(made.registry.declaration(), ["default"])
        # What was set up is on disk: only tasks can get lost.
        with psycopg.connect(server.url(), autocommit=True) as conn:
            conn.execute("checkpoint")
        yield made


@pytest.fixture
def children(server: EmbeddedServer, tmp_path: Path) -> Iterator[list[Child]]:
    """Two workers, a reaper and a promoter."""
    commands = [["worker", APP], ["worker", APP], ["reaper"], ["promoter"]]
    made = [
        Child(command, log=tmp_path / f"{n}.log", database_url=server.url(), **QUICK)
        for n, command in enumerate(commands)
    ]
    yield made
    for child in made:
        child.end()


def reached(producers: list[Producer], counts: list[int]) -> bool:
    """Whether each producer has got so many acknowledgements."""
    pairs = zip(producers, counts, strict=True)
    return all(len(producer.acknowledged) >= count for producer, count in pairs)


async def work_flows(server: EmbeddedServer, producers: list[Producer], counts: list[int]) -> None:
    """Wait until tasks are enqueued and done again."""
    async with await psycopg.AsyncConnection.connect(server.url(), autocommit=True) as conn:
        up_at = await value(conn, "select clock_timestamp()")

        async def flows() -> bool:
            done = await value(conn, "select count(*) from effects where at > %s", up_at)
            return bool(done) and reached(producers, [count + 1 for count in counts])

        # Five seconds on a machine that has nothing else to do.
        await until(flows, within=60)


async def test_every_acknowledged_task_is_done_once_although_the_server_keeps_crashing(
    server: EmbeddedServer, app: Treadle, children: list[Child]
) -> None:
    for child in children[:2]:
        await child.logged("worker.started")
    producers = [Producer(app, "left"), Producer(app, "right")]

    async with anyio.create_task_group() as group:
        for producer in producers:
            group.start_soon(producer.run)
        for _ in range(3):
            goal = [len(producer.acknowledged) + 30 for producer in producers]
            await until(lambda wanted=goal: reached(producers, wanted))
            await anyio.to_thread.run_sync(server.stop, "immediate")
            counts = [len(producer.acknowledged) for producer in producers]
            await anyio.sleep(0.2)
            await anyio.to_thread.run_sync(server.start)
            await work_flows(server, producers, counts)
        for producer in producers:
            producer.stopped = True

    acknowledged = {task for producer in producers for task in producer.acknowledged}
    async with await psycopg.AsyncConnection.connect(server.url(), autocommit=True) as conn:
        stored = {task for (task,) in await rows(conn, "select id from treadle.tasks")}
        assert acknowledged <= stored
        await all_completed(conn, len(stored))
        paid = [task for (task,) in await rows(conn, "select task_id from effects")]
        assert len(paid) == len(set(paid)) == len(stored)
        # A database that was away is no reason to hold a type back.
        assert await rows(conn, "select from treadle.events where kind ~ '^breaker'") == []

    assert len(acknowledged) >= 3 * 2 * 30
    # They came back by themselves.
    assert all(child.running for child in children)
