"""A guard that is broken on purpose, and the test that has to notice."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest

from tests.behaviour.driver import Connection, Driver
from treadle.db.install import files

# How a test fails on its own account.
FAILED = (AssertionError, pytest.fail.Exception)

functions = cache(files.functions)


@dataclass
class Mutant:
    """A function's name, what is changed in its text, and the test that fails with it."""

    function: str
    changes: dict[str, str]
    killer: Callable[[Driver], None]
    # Something else where PostgreSQL itself is what stops the mutant.
    noticed: type[BaseException] | tuple[type[BaseException], ...] = FAILED
    # How often a killer is run that races sessions; it must be able to run on what it left.
    tries: int = 1

    def check(self, driver: Driver) -> None:
        """Break the guard in a database, and have the killer notice it."""
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
        """The statement that creates the broken function, in whatever file it stands."""
        text = functions()[self.function]
        for old, new in self.changes.items():
            assert old in text, f"{self.function} does not say {old!r} any more: change the mutant"
            text = text.replace(old, new)
        return text
