"""A primary is restarted, killed or frozen: work continues, and nothing acknowledged is lost.

The processes name all servers and look for the one that takes writes. The deadline of a call is
short here, so that the tests are; the bounds are far above it, for a machine that is busy.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import anyio
import httpx2
import psycopg
import pytest

from tests.drivers.apps.naps import EFFECTS, make_app
from tests.drivers.processes.children import APP, Child, all_completed, until, value
from tests.drivers.processes.cluster import Cluster
from tests.drivers.processes.producer import Producer
from treadle import Treadle
from treadle.db.install.migrate import migrate
from treadle.settings import load_settings

pytestmark = [pytest.mark.requirement("B13"), pytest.mark.requirement("B16")]

SETTINGS = {
    "call_timeout_s": 2,
    "connect_timeout_s": 2,
    "heartbeat_s": 1,
    "claim_ttl_s": 5,
    "poll_s": 0.5,
    "service_s": 0.5,
}
COMMANDS = {
    "worker": ["worker", APP],
    "reaper": ["reaper"],
    "promoter": ["promoter"],
    "server": ["server", "--port", "0"],
}
# Reads and writes, and how they are answered.
REQUESTS: list[tuple[str, str, dict[str, object] | None, int]] = [
    ("GET", "/v1/tasks", None, 200),
    ("POST", "/v1/tasks", {"type": "rest", "spec": {"naps": [0]}}, 201),
    ("GET", "/v1/queues", None, 200),
    ("PUT", "/v1/agents/somebody", {}, 200),
]
EXPECTED = {(path, status) for _, path, _, status in REQUESTS}
# For a machine that is busy; the deadline of a call is 2 s.
WITHIN_S = 90.0


@dataclass
class Fleet:
    """Processes that use the servers of a cluster."""

    cluster: Cluster
    url: str
    children: dict[str, Child]

    @property
    def address(self) -> str:
        """Where the HTTP server listens."""
        return str(self.children["server"].events("server.started")[0]["url"])

    async def started(self) -> None:
        for kind, child in self.children.items():
            await child.logged(f"{kind}.started", within=120)


@pytest.fixture(scope="module")
def fleet(pg_bin: Path | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Two standbys are as many primaries as the tests lose."""
    folder = tmp_path_factory.mktemp("fleet")
    with Cluster(pg_bin) as cluster:
        cluster.start()
        migrate(cluster.primary.url())
        with psycopg.connect(cluster.primary.url(), autocommit=True) as conn:
            conn.execute(EFFECTS)
        cluster.add_standby()
        cluster.add_standby()
        url = cluster.url
        children = {
            kind: Child(command, log=folder / f"{kind}.log", database_url=url, **SETTINGS)
            for kind, command in COMMANDS.items()
        }
        try:
            yield Fleet(cluster, url, children)
        finally:
            for child in children.values():
                child.end()


@pytest.fixture
async def app(fleet: Fleet) -> AsyncIterator[Treadle]:
    """A producer in this process; the processes are up, and know the types of the tasks."""
    await fleet.started()
    async with make_app(settings=load_settings(database_url=fleet.url, **SETTINGS)) as made:
        yield made


async def test_after_a_restart_no_request_and_no_attempt_fails_for_a_stale_connection(
    fleet: Fleet, app: Treadle
) -> None:
    with httpx2.Client(base_url=fleet.address, timeout=60) as http:

        def ask(number: int) -> tuple[str, int]:
            method, path, body, _ = REQUESTS[number % len(REQUESTS)]
            return path, http.request(method, path, json=body).status_code

        # Many at once, so that the pools have many connections.
        with ThreadPoolExecutor(8) as threads:
            assert set(threads.map(ask, range(80))) == EXPECTED
        for _ in range(20):
            await app.enqueue("pay", {"naps": [0.1]})
        await _all_done(fleet)

        await anyio.to_thread.run_sync(fleet.cluster.restart)

        assert {ask(number) for number in range(80)} == EXPECTED
        for _ in range(20):
            await app.enqueue("pay", {"naps": [0.1]})
        await _all_done(fleet)
    with psycopg.connect(fleet.cluster.primary.url()) as conn:
        assert conn.execute("select error from treadle.attempts").fetchall() == []
        assert conn.execute("select max(attempt) from treadle.tasks").fetchone() == (1,)


@pytest.mark.parametrize("loss", ["kill", "freeze"])
async def test_work_continues_at_the_promoted_standby_and_nothing_acknowledged_is_lost(
    fleet: Fleet, app: Treadle, loss: str
) -> None:
    producers = [Producer(app, f"{loss}-{n}") for n in range(2)]
    async with anyio.create_task_group() as group:
        for producer in producers:
            group.start_soon(producer.run)
        await until(lambda: all(len(each.acknowledged) > 20 for each in producers))
        known = await anyio.to_thread.run_sync(_completed, fleet)

        await anyio.to_thread.run_sync(getattr(fleet.cluster, loss))
        await anyio.to_thread.run_sync(fleet.cluster.promote)

        await works_again(fleet, producers)
        for producer in producers:
            producer.stopped = True

    acknowledged = {task for producer in producers for task in producer.acknowledged}
    await _all_done(fleet)
    with psycopg.connect(fleet.cluster.primary.url()) as conn:
        done = {task for (task,) in conn.execute("select id from treadle.tasks")}
        paid = [task for (task,) in conn.execute("select task_id from effects")]
    assert known <= done
    assert acknowledged <= done
    assert len(paid) == len(set(paid))
    assert acknowledged <= set(paid)
    assert all(child.running for child in fleet.children.values())


async def works_again(fleet: Fleet, producers: list[Producer]) -> dict[str, float]:
    """Wait until each does its work at the new primary; returns how long that took."""
    began = time.monotonic()
    took: dict[str, float] = {}
    counts = [len(producer.acknowledged) for producer in producers]
    async with await psycopg.AsyncConnection.connect(
        fleet.cluster.primary.url(), autocommit=True
    ) as conn:
        up_at = await value(conn, "select clock_timestamp()")

        async def enqueued() -> bool:
            pairs = zip(producers, counts, strict=True)
            return all(len(producer.acknowledged) > count + 1 for producer, count in pairs)

        async def completed() -> bool:
            return bool(await value(conn, "select count(*) from effects where at > %s", up_at))

        async def answered() -> bool:
            async with httpx2.AsyncClient(base_url=fleet.address, timeout=WITHIN_S) as http:
                return (await http.get("/v1/tasks")).status_code == 200

        async def one(name: str, condition: Callable[[], Awaitable[bool]]) -> None:
            await until(condition, within=WITHIN_S)
            took[name] = round(time.monotonic() - began, 1)

        async with anyio.create_task_group() as group:
            for condition in (enqueued, completed, answered):
                group.start_soon(one, condition.__name__, condition)
    return took


def _completed(fleet: Fleet) -> set[UUID]:
    """The tasks that a reader of the primary sees completed."""
    with psycopg.connect(fleet.cluster.primary.url()) as conn:
        query = "select id from treadle.tasks where status = 'completed'"
        return {task for (task,) in conn.execute(query)}


async def _all_done(fleet: Fleet) -> None:
    """Wait until every task is completed."""
    async with await psycopg.AsyncConnection.connect(
        fleet.cluster.primary.url(), autocommit=True
    ) as conn:
        await all_completed(conn, await value(conn, "select count(*) from treadle.tasks"))
