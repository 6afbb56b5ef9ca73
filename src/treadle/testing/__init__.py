"""Test your tasks on a real PostgreSQL: fixtures for pytest, and a runner for tasks.

    async def test_a_summary_is_stored(treadle_runner):
        async with treadle_runner(app) as runner:
            assert await runner.run_inline(summarise, url="https://example.org") == "short"

* treadle_url         a new database with the schema, for this test only
* treadle_runner      call it with your app: the app uses that database inside the block
* treadle_server_url  the server: TREADLE_TEST_DATABASE_URL (a login that may create databases
                      and roles), else an embedded one; override it to use another server

pytest loads this plugin wherever treadle is installed, so it imports only pytest until a fixture
is used.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.testing.runner import Clock, TaskRunner

__all__ = ["Clock", "TaskRunner"]


@pytest.fixture(scope="session")
def treadle_server_url() -> Iterator[str]:
    """The server of the tests: the configured one, or an embedded one for this run."""
    from treadle.testing.runner import server_for_tests

    with server_for_tests() as url:
        yield url


@pytest.fixture(scope="session")
def _treadle_template(treadle_server_url: str) -> Iterator[str]:
    """The name of a migrated database; copying it is much faster than migrating."""
    from treadle.db.install.migrate import migrate
    from treadle.db.testing import temporary_database, with_database

    with temporary_database(treadle_server_url) as name:
        migrate(with_database(treadle_server_url, name))
        yield name


@pytest.fixture
def treadle_url(treadle_server_url: str, _treadle_template: str) -> Iterator[str]:
    """A new database with the schema; it is dropped after the test."""
    from treadle.db.testing import temporary_database, with_database

    with temporary_database(treadle_server_url, template=_treadle_template) as name:
        yield with_database(treadle_server_url, name)


@pytest.fixture
def treadle_runner(treadle_url: str) -> "Callable[[Treadle], TaskRunner]":
    """`async with treadle_runner(app) as runner:` connects the app to `treadle_url`."""
    from treadle.testing.runner import TaskRunner

    return lambda app: TaskRunner(app, treadle_url)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in __all__:
            from treadle.testing import runner

            return getattr(runner, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
