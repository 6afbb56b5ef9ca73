"""Fixtures of the schema tests."""

import shutil
from pathlib import Path

import pytest

from treadle.db import sqlfiles
from treadle.db.embedded import embedded_bindir
from treadle.errors import MissingExtra


@pytest.fixture(scope="session")
def psql(pg_bin: Path | None) -> str:
    """The program psql: of the server under test, else of the embedded one, else any."""
    if pg_bin is not None:
        return str(pg_bin / "psql")
    try:
        return str(embedded_bindir() / "psql")
    except MissingExtra:
        found = shutil.which("psql")
    if found is None:
        pytest.skip("psql is not installed")
    return found


@pytest.fixture
def edited_sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the SQL files that the code uses from now on, for the test to edit."""
    copy = tmp_path / "sql"
    shutil.copytree(sqlfiles.sql_dir(), copy)
    monkeypatch.setattr(sqlfiles, "sql_dir", lambda: copy)
    return copy
