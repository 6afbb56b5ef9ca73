"""A guard that is broken on purpose, and the test that has to notice."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.behaviour.driver import Driver
from treadle.db.install import files

# How a test fails on its own account.
FAILED = (AssertionError, pytest.fail.Exception)


@dataclass
class Mutant:
    """A function's file, what is changed in its text, and the test that fails with it."""

    file: str
    changes: dict[str, str]
    killer: Callable[[Driver], None]
    # Something else where PostgreSQL itself is what stops the mutant.
    noticed: type[BaseException] | tuple[type[BaseException], ...] = FAILED

    def text(self) -> str:
        """The text of the broken function."""
        text = Path(files.sql_dir(), "functions", f"{self.file}.sql").read_text()
        for old, new in self.changes.items():
            assert old in text, f"{self.file} does not say {old!r} any more: change the mutant"
            text = text.replace(old, new)
        return text
