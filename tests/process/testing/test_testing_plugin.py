"""treadle.testing as a pytest plugin: available on use, and free of cost otherwise."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.drivers.processes import programs

# A user's own tests, with no plugin for async tests.
USES_IT = """
import asyncio
from treadle import Treadle

app = Treadle()

@app.task()
def double(n: int) -> int:
    return 2 * n

async def check(treadle_runner):
    async with treadle_runner(app) as harness:
        assert await harness.run_inline(double, n=2) == 4
        await double.enqueue(n=3)
        assert await harness.drain() == {"completed": 2}

def test_once(treadle_runner):
    asyncio.run(check(treadle_runner))

def test_again_on_another_database(treadle_runner, treadle_url):
    asyncio.run(check(treadle_runner))
"""
DOES_NOT = """
import sys

def test_nothing_heavy_was_imported():
    assert "treadle.testing" in sys.modules
    heavy = {"psycopg", "pydantic", "pydantic_settings", "structlog", "rich", "treadle.app"}
    assert heavy & set(sys.modules) == set()
"""


def run_pytest(folder: Path, text: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a test file as a project of its own."""
    (folder / "test_mine.py").write_text(text)
    # Another plugin here imports psycopg by itself.
    alone = ("-p", "no:pytest_postgresql", "-p", "no:cacheprovider", "-q", f"--rootdir={folder}")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *alone, "test_mine.py"],
        cwd=folder, env={**programs.environment(folder), **extra},
        capture_output=True, text=True, timeout=programs.WITHIN_S,
    )  # fmt: skip


def databases(url: str) -> set[str]:
    with psycopg.connect(url) as conn:
        return {row[0] for row in conn.execute("select datname from pg_database").fetchall()}


@pytest.mark.requirement("B14")
def test_a_users_tests_run_on_the_server_that_they_name(server_url: str, tmp_path: Path) -> None:
    before = databases(server_url)

    done = run_pytest(tmp_path, USES_IT, TREADLE_TEST_DATABASE_URL=server_url)

    assert "2 passed" in done.stdout, done.stdout
    assert databases(server_url) <= before, "the databases of the tests are gone"


def test_without_a_server_they_get_an_embedded_one_for_the_run(
    tmp_path: Path, pg_bin: Path | None
) -> None:
    if pg_bin is not None:
        pytest.skip("the embedded PostgreSQL is not the one under test")
    with programs.data_folder() as temp:
        temp.chmod(0o755)

        done = run_pytest(tmp_path, USES_IT, TMPDIR=str(temp))

        assert "2 passed" in done.stdout, done.stdout
        assert list(temp.iterdir()) == [], "nothing is left of it"


def test_the_plugin_imports_nothing_until_it_is_used(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, DOES_NOT)

    assert "1 passed" in done.stdout, done.stdout
