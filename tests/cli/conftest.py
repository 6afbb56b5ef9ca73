"""The command line in this process, without settings from the environment."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner

from tests.drivers.commands import APP, Cli, Result
from tests.drivers.databases import NewDatabase
from treadle.cli import app


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to start in, and no settings from outside."""
    for name in list(os.environ):
        if name.startswith("TREADLE_") and not name.startswith("TREADLE_TEST_"):
            monkeypatch.delenv(name)
    for name in ("DATABASE_URL", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(f"{tmp_path}/"):
            del sys.modules[name]
    # A command sends logs to the stderr that its runner gave it.
    structlog.reset_defaults()


@pytest.fixture
def bare() -> Cli:
    """Run a command without any database configured; `env` and `input` as for a process."""

    def run(*arguments: str, env: dict[str, str] | None = None, stdin: str = "") -> Result:
        done = CliRunner().invoke(app, arguments, env=env, input=stdin)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Result(done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
def database_url(emptied_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The shared database, emptied; its clock is that of the tests."""
    monkeypatch.setenv("TREADLE_VERIFY_CODE", "false")
    return emptied_url


@pytest.fixture
def cli(bare: Cli, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command on a database with the schema."""
    monkeypatch.setenv("TREADLE_DATABASE_URL", database_url)
    monkeypatch.setenv("TREADLE_VERIFY_CODE", "false")
    return bare


@pytest.fixture(scope="module")
def still_url(new_database: NewDatabase) -> Iterator[str]:
    """A database for those tests of a module that change nothing in it."""
    with new_database() as url:
        yield url


@pytest.fixture
def still(bare: Cli, still_url: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command on the database that the tests of a module share."""
    monkeypatch.setenv("TREADLE_DATABASE_URL", still_url)
    monkeypatch.setenv("TREADLE_VERIFY_CODE", "false")
    return bare


@pytest.fixture
def module(folder: Path) -> str:
    """A module with an application, importable from the folder."""
    (folder / "my_tasks.py").write_text(APP)
    return "my_tasks:app"
