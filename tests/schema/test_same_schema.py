"""Every way to install gives the same schema, which is that of the snapshot."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.drivers import runners
from treadle.db.install import files, schema
from treadle.db.install.migrate import install_script, migrate, status, verify
from treadle.db.testing import temporary_database, with_database


@pytest.mark.requirement("B12")
def test_a_fresh_database_has_the_schema_of_the_snapshot(database_url: str) -> None:
    assert runners.described(database_url) == schema.snapshot()
    assert verify(database_url) == []
    assert status(database_url).current


def test_a_second_run_changes_nothing(database_url: str) -> None:
    before = runners.content(database_url)

    result = migrate(database_url)

    assert not result.changed
    assert result.version == runners.LATEST
    assert runners.content(database_url) == before


def test_the_code_can_be_applied_twice(database_url: str, edited_sql: Path) -> None:
    before, _ = runners.content(database_url)
    some = next((edited_sql / "functions").rglob("*.sql"))
    some.write_text(some.read_text() + "\n-- The same, with another checksum.\n")

    result = migrate(database_url)

    assert (result.applied, result.code_applied) == ([], True)
    assert runners.content(database_url)[0] == before


def test_plain_psql_with_install_sql_gives_the_same(
    database_url: str, empty_database_url: str, psql: str
) -> None:
    file = files.sql_dir() / "install.sql"

    done = subprocess.run(
        [psql, "--no-psqlrc", "--quiet", "--file", str(file), empty_database_url],
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert runners.content(empty_database_url) == runners.content(database_url)
    assert not migrate(empty_database_url).changed


def test_the_install_script_as_one_text_gives_the_same(
    database_url: str, empty_database_url: str, psql: str
) -> None:
    done = subprocess.run(
        [psql, "--no-psqlrc", "--quiet", "-v", "ON_ERROR_STOP=1", "-f", "-", empty_database_url],
        input=install_script(),
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert runners.content(empty_database_url) == runners.content(database_url)


def test_an_install_script_that_fails_leaves_nothing(empty_database_url: str, psql: str) -> None:
    broken = install_script().replace("\ncommit;\n", "\nselect 1 / 0;\ncommit;\n")

    done = subprocess.run(
        [psql, "--no-psqlrc", "--quiet", "-v", "ON_ERROR_STOP=1", "-f", "-", empty_database_url],
        input=broken,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 3
    assert status(empty_database_url).version is None


@pytest.fixture(scope="module")
def walked(server_url: str) -> Iterator[str]:
    """The name of a database that is brought from one migration to the next."""
    with temporary_database(server_url) as name:
        yield name


@pytest.fixture(scope="module")
def fresh(new_database: Callable[[], AbstractContextManager[str]]) -> tuple[str, Any]:
    """What is in a database that was just made."""
    with new_database() as url:
        return runners.content(url)


@pytest.mark.parametrize("version", range(1, runners.LATEST + 1))
def test_an_upgrade_from_each_earlier_migration_gives_the_same(
    version: int, walked: str, fresh: tuple[str, Any], server_url: str
) -> None:
    url = with_database(server_url, walked)
    early = migrate(url, to=version)
    assert runners.applied(url) == list(range(1, version + 1))
    assert early.code_applied == (version == runners.LATEST)

    with temporary_database(server_url, template=walked) as copy:
        late = migrate(with_database(server_url, copy))

        assert len(late.applied) == runners.LATEST - version
        assert runners.content(with_database(server_url, copy)) == fresh
