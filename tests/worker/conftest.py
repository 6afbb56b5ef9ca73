"""An application of the test's own, on its own database."""

from collections.abc import AsyncIterator

import pytest

from treadle import Treadle
from treadle.settings import load_settings


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
