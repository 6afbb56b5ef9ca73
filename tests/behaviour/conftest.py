"""An application for the behaviour tests."""

from collections.abc import AsyncIterator

import pytest

from tests.drivers.engine import Driver
from treadle import Treadle


@pytest.fixture
async def app(driver: Driver) -> AsyncIterator[Treadle]:
    """An application on the driver's database."""
    async with Treadle(driver.url) as app:
        yield app
