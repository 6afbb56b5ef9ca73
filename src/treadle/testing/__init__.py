"""Test your tasks on a real PostgreSQL: fixtures for pytest, and a harness to drive them by hand.

    async def test_a_summary_is_stored(treadle_harness):
        async with treadle_harness(app) as harness:
            assert await harness.run_inline(summarise, url="https://example.org") == "short"

* treadle_url         a fresh database with the schema, for this test only
* treadle_harness     call it with your app: the app uses that database inside the block
* treadle_server_url  the server: TREADLE_TEST_DATABASE_URL (a login that may create databases
                      and roles), else the embedded one; override it to bring your own

This module is a plugin that pytest loads everywhere, so it imports nothing but pytest until a
fixture is used.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.testing.runner import Clock, Harness

__all__ = ["Clock", "Harness"]


@pytest.fixture(scope="session")
def treadle_server_url() -> Iterator[str]:
    """The server of the tests: the one that is configured, or an embedded one for this run."""
    from treadle.testing.runner import server_for_tests

    with server_for_tests() as url:
        yield url


@pytest.fixture(scope="session")
def _treadle_template(treadle_server_url: str) -> Iterator[str]:
    """The name of a migrated database; to copy it is much faster than to migrate."""
    from treadle.db.install.migrate import migrate
    from treadle.db.testing import temporary_database, with_database

    with temporary_database(treadle_server_url) as name:
        migrate(with_database(treadle_server_url, name))
        yield name


@pytest.fixture
def treadle_url(treadle_server_url: str, _treadle_template: str) -> Iterator[str]:
    """A fresh database with the schema; it is gone after the test."""
    from treadle.db.testing import temporary_database, with_database

    with temporary_database(treadle_server_url, template=_treadle_template) as name:
        yield with_database(treadle_server_url, name)


@pytest.fixture
def treadle_harness(treadle_url: str) -> "Callable[[Treadle], Harness]":
    """`async with treadle_harness(app) as harness:` puts the app on `treadle_url`."""
    from treadle.testing.runner import Harness

    return lambda app: Harness(app, treadle_url)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in __all__:
            from treadle.testing import runner

            return getattr(runner, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
