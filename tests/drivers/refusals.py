"""Assert that a call is refused with an SQLSTATE, and that it changed nothing."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.drivers.engine import Driver


@contextmanager
def refused(sqlstate: str, words: str | None = None) -> Iterator[None]:
    """The block must fail with this SQLSTATE; ours come with a json detail."""
    with pytest.raises(psycopg.Error, match=words) as raised:
        yield
    error = raised.value
    assert error.sqlstate == sqlstate, f"{error.sqlstate}: {error}"
    if sqlstate.startswith("TR"):
        assert isinstance(json.loads(error.diag.message_detail or ""), dict)


@contextmanager
def unchanged(driver: Driver) -> Iterator[None]:
    """The block must leave every table as it was."""
    before = driver.contents()
    yield
    assert driver.contents() == before


@contextmanager
def allowed(*states: str) -> Iterator[None]:
    """The block may be refused with one of these."""
    try:
        yield
    except psycopg.DatabaseError as error:
        if error.sqlstate not in states:
            raise
