"""Select the mutants that a change concerns.

With `MUTANTS_SINCE=<commit>` only those run whose function, or whose own test file, has another
text than in that commit. A function is found by its name, so moving it between files selects
nothing. A test without a mutant of `MUTANTS` always runs.
"""

import io
import os
import subprocess
import tarfile
from functools import cached_property
from pathlib import Path

import pytest

from tests.drivers.mutants import Mutant, functions
from treadle.db.install.files import functions_in

ROOT = Path(__file__).resolve().parents[2]


class Commit:
    """The SQL functions and the test files as a commit has them."""

    def __init__(self, ref: str, root: Path = ROOT) -> None:
        self._ref = ref
        self._root = root

    def has_mutant(self, mutant: Mutant) -> bool:
        """Whether the function of a mutant has the same text there."""
        return self._functions.get(mutant.function) == functions().get(mutant.function)

    def has_file(self, path: Path) -> bool:
        """Whether a file has the same text there."""
        name = path.relative_to(self._root).as_posix()
        return self._texts.get(name) == path.read_text(encoding="utf-8")

    @cached_property
    def _texts(self) -> dict[str, str]:
        # Another account may own the checkout.
        command = ["git", "-c", "safe.directory=*", "archive", self._ref, "sql", "tests"]
        done = subprocess.run(command, cwd=self._root, capture_output=True)
        if done.returncode != 0:
            message = done.stderr.decode(errors="replace").strip()
            raise pytest.UsageError(f"MUTANTS_SINCE={self._ref}: {message}")
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            return {
                member.name: file.read().decode("utf-8")
                for member in archive
                if member.name.endswith((".sql", ".py"))
                and (file := archive.extractfile(member)) is not None
            }

    @cached_property
    def _functions(self) -> dict[str, str]:
        return {
            name: statement
            for path, text in self._texts.items()
            if path.startswith("sql/functions/")
            for name, statement in functions_in(text).items()
        }


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the mutants that have not changed since the commit of `MUTANTS_SINCE`."""
    ref = os.environ.get("MUTANTS_SINCE")
    if not ref:
        return
    commit = Commit(ref)
    unchanged = [
        item
        for item in items
        if (mutant := mutant_of(item)) is not None
        and commit.has_mutant(mutant)
        and commit.has_file(item.path)
    ]
    config.hook.pytest_deselected(items=unchanged)
    left_out = set(unchanged)
    items[:] = [item for item in items if item not in left_out]


def mutant_of(item: pytest.Item) -> Mutant | None:
    """The mutant that a test is about, where it is about one."""
    if not isinstance(item, pytest.Function) or item.get_closest_marker("mutant") is None:
        return None
    mutants: dict[str, Mutant] = getattr(item.module, "MUTANTS", {})
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return mutants.get(str(parameters.get("name")))
