"""Processes for the tests, and the application that they run."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.process.apps import EFFECTS, make_app
from tests.process.support import APP, Child, Conn, Spawn
from tests.worker.files import KEYS, S3, Place, place_of, s3_server
from treadle import Treadle


@pytest.fixture
async def app(database_url: str, conn: Conn) -> AsyncIterator[Treadle]:
    """The application as a producer, with its types declared and the table of effects made."""
    await conn.execute(EFFECTS)
    async with make_app(database_url) as made:
        await (await made.gateway()).declare_types(
            made.registry.declaration(), made.registry.queues()
        )
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


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    """An S3-compatible server."""
    with s3_server() as server:
        yield server


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An empty store for files, of each kind."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    server = request.getfixturevalue("s3") if request.param == "s3" else None
    return place_of(request.param, tmp_path, server)
