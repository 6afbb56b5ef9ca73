"""The files of the project, for tests of its conventions."""

import ast
from collections.abc import Iterator
from pathlib import Path

from treadle.errors import TreadleError

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "treadle"
FOLDERS = (".ci", ".github", "bench", "docs", "examples", "sql", "src", "tests")
# Made by running things, or by others: see vendor.lock.
NOT_OURS = {"__pycache__", "results", "vendor"}
GENERATED = {"sql/install.sql", "sql/schema.snapshot.sql"}


def name(path: Path) -> str:
    """The path as people write it, for messages."""
    return path.relative_to(ROOT).as_posix()


def files(*suffixes: str) -> list[Path]:
    """Every file of the project with one of these endings; all of them without any."""
    top = [path for path in ROOT.iterdir() if path.is_file()]
    deep = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    kept = [path for path in top + deep if not NOT_OURS & set(path.parts)]
    return sorted(path for path in kept if not suffixes or path.suffix in suffixes)


def functions() -> list[Path]:
    """Every file with a SQL function."""
    return sorted((ROOT / "sql" / "functions").rglob("*.sql"))


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every Python module of the package, by its path below src/treadle."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text())


def error_classes(cls: type[TreadleError] = TreadleError) -> Iterator[type[TreadleError]]:
    yield cls
    for below in cls.__subclasses__():
        yield from error_classes(below)


def imported(module: ast.Module) -> Iterator[str]:
    """The full names that a module imports, wherever in it."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
