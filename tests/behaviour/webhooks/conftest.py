"""A receiver of webhooks, and a notifier that sends to it."""

from collections.abc import Iterator

import pytest

from tests.drivers.webhooks import Receiver
from treadle import Treadle
from treadle.services.notifier import Notifier
from treadle.settings import load_settings


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
async def notifier(app: Treadle) -> Notifier:
    settings = load_settings(webhook_private=True, webhook_timeout_s=1)
    notifier = Notifier(app.db)
    notifier.configure(settings)
    return notifier
