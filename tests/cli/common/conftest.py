"""Commands that look at the schema itself, which tests on the shared database change."""

import pytest


@pytest.fixture
def database_url(copied_url: str) -> str:
    """A fresh database."""
    return copied_url
