"""Processes for the tests, and the application that they run."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.drivers.apps.naps import EFFECTS, make_app
from tests.drivers.http.servers import Served, served
from tests.drivers.processes.children import APP, Child, Conn, Spawn
from tests.drivers.processes.harness import Site
from tests.drivers.processes.push_agents import Agents, PushAgent
from tests.drivers.stores import KEYS, StoreFixture, make_store_fixture
from treadle import Treadle


@pytest.fixture
async def app(database_url: str, conn: Conn) -> AsyncIterator[Treadle]:
    """The application as a producer, with its types declared and the table of effects made."""
    await conn.execute(EFFECTS)
    async with make_app(database_url) as made:
        await made.db.types.declare(made.registry.declaration(), made.registry.queues())
        yield made


@pytest.fixture
def spawn(database_url: str, tmp_path: Path) -> Iterator[Spawn]:
    """Start `treadle worker`, `treadle reaper` or `treadle promoter`; all end with the test."""
    children: list[Child] = []

    def start(kind: str, *arguments: str, **settings: object) -> Child:
        given = [kind, APP, *arguments] if kind == "worker" else [kind, *arguments]
        log = tmp_path / f"{len(children)}-{kind}.log"
        child = Child(given, log=log, **{"database_url": database_url, **settings})
        children.append(child)
        return child

    yield start
    for child in children:
        child.end()


@pytest.fixture
def agents(sync_conn: psycopg.Connection[tuple[Any, ...]], tmp_path: Path) -> Iterator[Agents]:
    """Start agents with an HTTP interface that tasks are sent to; all end with the test."""
    started: list[PushAgent] = []

    def start(name: str, **modes: object) -> PushAgent:
        agent = PushAgent(name, tmp_path / f"{name}.jsonl", **modes)
        started.append(agent)
        sync_conn.execute("select treadle.define_push_agent(%s, %s, true)", (name, agent.url))
        return agent

    yield start
    for agent in started:
        agent.kill()


@pytest.fixture
def site(conn: Conn, database_url: str, spawn: Spawn, tmp_path: Path) -> Iterator[Site]:
    """A place for harnesses and their agents; the server is started when it is needed."""
    with ExitStack() as stack:

        def serve() -> Served:
            return stack.enter_context(served(database_url, tmp_path / "server.log"))

        made = Site(conn, serve, spawn, tmp_path)
        yield made
        made.end()


@pytest.fixture(params=["folder", "s3"])
def file_store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> StoreFixture:
    """An empty store for files, of each kind."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    server = request.getfixturevalue("s3") if request.param == "s3" else None
    return make_store_fixture(request.param, tmp_path, server)
