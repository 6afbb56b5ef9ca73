"""Every process survives connections that stop responding without being closed.

All processes connect through one proxy. The deadline of a call is short here, so that the tests
are; the bounds are far above it, for a machine that is busy.
"""

import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx2
import psycopg
import pytest

from tests.drivers.apps.naps import EFFECTS
from tests.drivers.processes.children import APP, Child, Conn, rows, until, value
from tests.drivers.processes.push_agents import PATIENT, PushAgent, ended, submit
from tests.drivers.processes.tcp_proxy import TcpProxy
from tests.drivers.webhooks import Receiver
from treadle.errors import TreadleError
from treadle.process import read_health_file

pytestmark = pytest.mark.requirement("B16")

COMMANDS = {
    "worker": ["worker", APP],
    "reaper": ["reaper"],
    "promoter": ["promoter"],
    "scheduler": ["scheduler"],
    "notifier": ["notifier"],
    "dispatcher": ["dispatcher"],
    # It has nothing to do in these tests but to stay in contact.
    "pruner": ["pruner"],
    "server": ["server", "--port", "0"],
}
SETTINGS = {
    **PATIENT,
    "call_timeout_s": 2,
    "connect_timeout_s": 2,
    "heartbeat_s": 1,
    "poll_s": 0.5,
    "drain_s": 1,
    "prune_every_s": 3600,
    "webhook_private": 1,
    # A worker that was away for a while has not lost its claims yet.
    "claim_ttl_s": 60,
}
# With calls that end after 2 s: for a machine that is busy.
BACK_WITHIN_S = 40
START_WITHIN_S = 120


@dataclass
class Fleet:
    """One process of each kind, and the proxy that they all connect through."""

    url: str
    proxy: TcpProxy
    children: dict[str, Child]
    folder: Path
    receiver: Receiver
    agent: PushAgent
    # Whether the worker gets tasks that open a transaction of their own.
    transactions: bool = True

    @property
    def address(self) -> str:
        """Where the HTTP server listens."""
        return str(self.children["server"].events("server.started")[0]["url"])

    def health_file(self, kind: str) -> Path:
        return self.folder / f"{kind}.health"

    def is_healthy(self, kind: str) -> bool:
        """What a supervisor sees."""
        if kind == "server":
            answer = httpx2.get(f"{self.address}/readyz", timeout=20)
            assert answer.status_code in (200, 503)
            return answer.status_code == 200
        try:
            return bool(read_health_file(self.health_file(kind), max_age_s=60)["status"] == "ok")
        except TreadleError:
            return False


@pytest.fixture(scope="module")
def fleet(
    new_database: Callable[[], AbstractContextManager[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Fleet]:
    """The processes, which the tests share: they only take turns in being cut off."""
    folder = tmp_path_factory.mktemp("fleet")
    with new_database() as url, TcpProxy(url) as proxy, Receiver() as receiver:
        agent = PushAgent("silent", folder / "agent.jsonl")
        _furnish(url, receiver, agent)
        children = {}
        try:
            for kind, command in COMMANDS.items():
                file = folder / f"{kind}.health"
                more = [] if kind == "server" else ["--health-file", str(file)]
                log = folder / f"{kind}.log"
                children[kind] = Child(
                    [*command, *more], log=log, database_url=proxy.url, **SETTINGS
                )
            yield Fleet(url, proxy, children, folder, receiver, agent)
        finally:
            for child in children.values():
                child.end()
            agent.kill()


def _furnish(url: str, receiver: Receiver, agent: PushAgent) -> None:
    webhook = {"url": receiver.url("hook"), "kinds": ["test.*"], "allow_private": True}
    schedule = {"cron": "* * * * *", "task": {"queue": "aside", "type": "nap"}, "catch_up": "all"}
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(EFFECTS)
        conn.execute("select treadle.define_type('nap')")
        for queue in ("aside", "strays"):
            conn.execute("select treadle.define_queue(%s)", [queue])
        conn.execute("select treadle.register_agent('ghost')")
        conn.execute("select treadle.define_webhook('hook', %s)", [json.dumps(webhook)])
        conn.execute("select treadle.define_schedule('often', %s)", [json.dumps(schedule)])
        conn.execute("select treadle.define_push_agent('silent', %s, true)", [agent.url])


@pytest.fixture
async def conn(fleet: Fleet) -> AsyncIterator[Conn]:
    """A direct connection, and processes that are all at work."""
    async with await psycopg.AsyncConnection.connect(fleet.url, autocommit=True) as made:
        fleet.proxy.restore()
        for kind, child in fleet.children.items():
            await child.logged(f"{kind}.started", within=START_WITHIN_S)
        yield made


Work = Callable[[Fleet, Conn], Awaitable[None]]


async def complete(fleet: Fleet, conn: Conn) -> None:
    """The worker completes tasks, plain ones and one with a transaction of the handler."""
    await _complete(conn, ["rest"] * 5 + ["pay"] * fleet.transactions)


async def reap(fleet: Fleet, conn: Conn) -> None:
    """The reaper ends a claim whose lease is over."""
    # Each of a type of its own: a breaker would hold back a type that only fails.
    type = f"stray-{time.monotonic_ns()}"
    await conn.execute("select treadle.define_type(%s)", [type])
    task = await value(conn, "select treadle.enqueue_task('strays', %s)", type)
    await conn.execute("select from treadle.claim_tasks('ghost', '{strays}', array[%s])", [type])
    await conn.execute(
        """
        update treadle.tasks set lease_until = clock_timestamp() - interval '1 s' where id = %s
        """,
        [task],
    )
    await _wait(conn, "status <> 'running'", task)


async def promote(fleet: Fleet, conn: Conn) -> None:
    """The promoter makes a delayed task ready."""
    task = await value(conn, "select treadle.enqueue_task('aside', 'nap', p_delay_s => 0.01)")
    await _wait(conn, "status = 'ready'", task)


async def fire(fleet: Fleet, conn: Conn) -> None:
    """The scheduler makes the task of a schedule whose time has come."""
    await conn.execute(
        """
        update treadle.schedules
        set next_at = date_trunc('minute', treadle.clock()) - interval '1 minute'
        """
    )
    await until(
        lambda: value(conn, "select next_at > treadle.clock() from treadle.schedules"),
        within=2 * BACK_WITHIN_S,
    )


async def deliver(fleet: Fleet, conn: Conn) -> None:
    """The notifier sends an event to a webhook."""
    got = fleet.receiver.got["/hook"]
    before = len(got)
    await conn.execute("select treadle.emit_event('test.said', '{}')")
    await until(lambda: len(got) > before, within=2 * BACK_WITHIN_S)


async def dispatch(fleet: Fleet, conn: Conn) -> None:
    """The dispatcher sends a prompt to an agent and brings back its result."""
    [queue_id] = await submit(conn)
    await until(lambda: ended(conn, queue_id), within=2 * BACK_WITHIN_S)


async def answer(fleet: Fleet, conn: Conn) -> None:
    """The server writes and reads; every request is answered."""
    async with httpx2.AsyncClient(base_url=fleet.address, timeout=BACK_WITHIN_S) as client:
        made = await client.post("/v1/tasks", json={"type": "nap", "queue": "aside"})
        assert made.status_code in (201, 503), made.text
        read = await client.get("/v1/tasks")
        assert read.status_code in (200, 503), read.text


WORK: dict[str, Work] = {
    "worker": complete,
    "reaper": reap,
    "promoter": promote,
    "scheduler": fire,
    "notifier": deliver,
    "dispatcher": dispatch,
    "server": answer,
}


class Load:
    """Gives every process work without end, and counts the effects."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._effects: Counter[str] = Counter()

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            for kind in WORK:
                group.start_soon(self._give, kind)

    async def _give(self, kind: str) -> None:
        async with await psycopg.AsyncConnection.connect(self._fleet.url, autocommit=True) as conn:
            while True:
                await WORK[kind](self._fleet, conn)
                self._effects[kind] += 1
                await anyio.sleep(0.05)

    async def goes_on(self) -> dict[str, float]:
        """Wait for effects of work that is given from now on; returns when each process had it."""
        # Of the first one the work may have been given before.
        goals = {kind: self._effects[kind] + 2 for kind in WORK}
        began = time.monotonic()
        took: dict[str, float] = {}
        with anyio.move_on_after(BACK_WITHIN_S):
            while len(took) < len(goals):
                for kind, goal in goals.items():
                    if kind not in took and self._effects[kind] >= goal:
                        took[kind] = round(time.monotonic() - began, 1)
                await anyio.sleep(0.05)
        left = sorted(goals.keys() - took.keys())
        logs = "\n".join(self._fleet.children[kind].log.read_text()[-2000:] for kind in left)
        assert not left, f"no work of {left} in {BACK_WITHIN_S} s:\n{logs}"
        return took


async def test_all_processes_recover_after_their_connections_stop_responding(
    fleet: Fleet, conn: Conn
) -> None:
    load = Load(fleet)
    async with anyio.create_task_group() as group:
        group.start_soon(load.run)
        await load.goes_on()

        # Not in the middle of a handler's own transaction: that attempt fails, and until
        # PostgreSQL notices the lost client, its transaction holds up the readers of events.
        fleet.transactions = False
        await load.goes_on()
        silenced = fleet.proxy.silence()
        fleet.transactions = True
        await load.goes_on()

        group.cancel_scope.cancel()
    assert silenced >= len(COMMANDS)
    assert all(child.running for child in fleet.children.values())
    # No attempt is charged for it.
    query = "select outcome, class, error from treadle.attempts where agent_id <> 'ghost'"
    assert await rows(conn, query) == []


async def test_health_follows_whether_the_database_responds(fleet: Fleet, conn: Conn) -> None:
    for kind in COMMANDS:
        await until(lambda kind=kind: fleet.is_healthy(kind))

    fleet.proxy.silence(new=True)
    for kind in COMMANDS:
        await until(lambda kind=kind: not fleet.is_healthy(kind))
    with pytest.raises(TreadleError, match="no database"):
        read_health_file(fleet.health_file("worker"), max_age_s=60)
    fleet.proxy.restore()
    for kind in COMMANDS:
        await until(lambda kind=kind: fleet.is_healthy(kind), within=BACK_WITHIN_S)


async def _complete(conn: Conn, types: list[str]) -> None:
    tasks = [
        await value(conn, "select treadle.enqueue_task('default', %s, %s)", type, '{"naps": [0]}')
        for type in types
    ]
    await _wait(conn, "status = 'completed'", *tasks)


async def _wait(conn: Conn, condition: str, *tasks: object) -> None:
    """Wait until this is so of all these tasks."""
    query = f"select bool_and({condition}) from treadle.tasks where id = any (%s)"
    await until(lambda: value(conn, query, list(tasks)), within=2 * BACK_WITHIN_S)
