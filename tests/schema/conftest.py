"""Fixtures of the schema tests."""

import shutil
from pathlib import Path

import pytest

from treadle.db.install import files


@pytest.fixture
def edited_sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the SQL files that the code uses from now on, for the test to edit."""
    copy = tmp_path / "sql"
    shutil.copytree(files.sql_dir(), copy)
    monkeypatch.setattr(files, "sql_dir", lambda: copy)
    return copy
