"""Servers that require tokens, one for each file, and callers with tokens."""

from collections.abc import Iterator

import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.bound_tokens import Callers, bound, empty
from tests.drivers.http.tokens import Closed, closed


@pytest.fixture(scope="module")
def guarded(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Closed]:
    """A server that requires tokens."""
    with closed(new_database, tmp_path_factory.mktemp("closed")) as found:
        yield found


@pytest.fixture(scope="module")
def bound_callers(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callers]:
    """Callers whose tokens are bound."""
    with bound(new_database, tmp_path_factory.mktemp("bound")) as found:
        yield found


@pytest.fixture
def callers(bound_callers: Callers) -> Callers:
    """The same callers; no task is left from the last test."""
    empty(bound_callers)
    return bound_callers
