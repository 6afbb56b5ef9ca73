"""The pages run in an empty folder, without settings from outside."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder that programs start in."""
    for name in list(os.environ):
        if name.startswith("TREADLE_") and not name.startswith("TREADLE_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    # A command sends logs to the stderr that its runner gave it.
    structlog.reset_defaults()
