"""An application of the test's own, on a database that is empty."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.drivers.stores import KEYS, StoreFixture, make_store_fixture
from treadle import Treadle
from treadle.settings import load_settings


@pytest.fixture
def database_url(emptied_url: str) -> str:
    """The shared database, emptied."""
    return emptied_url


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Treadle]:
    """An application without tasks; the test declares its own."""
    async with Treadle(settings=load_settings(database_url=database_url)) as made:
        yield made


@pytest.fixture
async def polling_app(database_url: str) -> AsyncIterator[Treadle]:
    """The same without LISTEN: it looks every fifth of a second."""
    settings = load_settings(database_url=database_url, notify=False, poll_s=0.2)
    async with Treadle(settings=settings) as made:
        yield made


@pytest.fixture
async def woken_app(database_url: str) -> AsyncIterator[Treadle]:
    """The same with a poll that is far away: only a notification wakes its workers in time."""
    async with Treadle(settings=load_settings(database_url=database_url, poll_s=60)) as made:
        yield made


@pytest.fixture(params=["folder", "s3"])
def file_store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> StoreFixture:
    """An empty store for files, of each kind."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    server = request.getfixturevalue("s3") if request.param == "s3" else None
    return make_store_fixture(request.param, tmp_path, server)


@pytest.fixture
async def stored(database_url: str, file_store: StoreFixture) -> AsyncIterator[Treadle]:
    """An application that keeps files in the place."""
    settings = load_settings(database_url=database_url, **file_store.settings)
    async with Treadle(settings=settings) as made:
        yield made
