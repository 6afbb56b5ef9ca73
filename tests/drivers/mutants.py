"""Mutants: a SQL guard that is broken on purpose, and the test that has to fail."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from tests.drivers.engine import Connection, Driver
from treadle.db.install import files

# The errors of a failing test.
FAILED = (AssertionError, pytest.fail.Exception)

functions = cache(files.functions)


class Killers:
    """The tests of a file in tests/behaviour, which is imported when the first of them is called.

    A test file does not import another one; tests/repo/test_tests.py checks that the names exist.
    """

    def __init__(self, module: str) -> None:
        self._module = f"tests.behaviour.{module}"

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("test_"):
            return getattr(import_module(self._module), name)
        return lambda *given, **more: getattr(import_module(self._module), name)(*given, **more)


@dataclass
class Mutant:
    """A function's name, what is changed in its text, and the test that fails with it."""

    function: str
    changes: dict[str, str]
    killer: Callable[[Driver], None]
    # Other errors, where PostgreSQL itself rejects the mutant.
    noticed: type[BaseException] | tuple[type[BaseException], ...] = FAILED
    # How often a killer is run that races sessions; it must be able to run on what it left.
    tries: int = 1

    def check(self, driver: Driver) -> None:
        """Break the guard in a database, and check that the killer fails."""
        driver.conn.execute(self.text().encode())
        for _ in range(self.tries - 1):
            try:
                self._kill(driver)
            except self.noticed:
                return
        with pytest.raises(self.noticed):
            self._kill(driver)

    def _kill(self, driver: Driver) -> None:
        """Run the killer once, and close the sessions that it opened."""
        opened: list[Connection] = []

        def connect() -> Connection:
            opened.append(driver.connect())
            return opened[-1]

        try:
            self.killer(Driver(driver.url, connect))
        finally:
            for conn in opened:
                conn.close()

    def text(self) -> str:
        """The statement that creates the broken function, in any file."""
        text = functions()[self.function]
        for old, new in self.changes.items():
            assert old in text, f"{self.function} does not say {old!r} any more: change the mutant"
            text = text.replace(old, new)
        return text
