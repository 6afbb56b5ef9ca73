"""A SQL file is named for what it makes, explained at its head, and gives no rights unasked."""

import re
from collections.abc import Iterable
from pathlib import Path

from tests.repo import tree

CREATE = re.compile(r"^create or replace (?:function|procedure) treadle\.(\w+)\s*\(", re.MULTILINE)
HEAD = ("Concurrency:", "Lock order:", "Raises:")

FUNCTIONS = tree.functions()


def head(path: Path) -> list[str]:
    """The comment lines at the top of a file."""
    lines = path.read_text().splitlines()
    end = next((n for n, line in enumerate(lines) if not line.startswith("--")), len(lines))
    return lines[:end]


def statement(path: Path, beginning: str) -> str:
    """The first statement that begins so, up to the line that ends it; empty without one."""
    found = re.search(rf"^{beginning}.*?;$", path.read_text(), re.MULTILINE | re.DOTALL)
    return found.group(0) if found else ""


def names(paths: Iterable[Path]) -> list[str]:
    return [path.stem for path in paths]


def test_there_are_function_files() -> None:
    assert len(FUNCTIONS) > 500


def test_a_function_file_makes_the_one_function_it_is_named_for() -> None:
    wrong = [path for path in FUNCTIONS if CREATE.findall(path.read_text()) != [path.stem]]

    assert names(wrong) == []


def test_a_function_file_begins_with_its_purpose_concurrency_locks_and_errors() -> None:
    missing = {
        path.stem: said
        for path in FUNCTIONS
        if (said := [beginning for beginning in beginnings(path) if not has(path, beginning)])
    }

    assert missing == {}


def beginnings(path: Path) -> list[str]:
    """What the lines at the top of the file of a function begin with."""
    return [rf"-- {path.stem}: ", *(rf"-- {word}\s+\S" for word in HEAD)]


def has(path: Path, beginning: str) -> bool:
    """Whether a line at the top begins so; the one with the name is the first."""
    lines = head(path)
    found = lines[:1] if beginning.endswith(": ") else lines
    return any(re.match(beginning, line) for line in found)


def test_a_function_has_a_comment_that_psql_shows() -> None:
    wrong = [path for path in FUNCTIONS if not re.search(r"\bis\s+'.+'", comment(path), re.DOTALL)]

    assert names(wrong) == []


def comment(path: Path) -> str:
    return statement(path, rf"comment on (function|procedure) treadle\.{path.stem}\b")


def test_a_function_is_revoked_from_public_in_its_own_file() -> None:
    wrong = [path for path in FUNCTIONS if not revoke(path).endswith("from public;")]

    assert names(wrong) == []


def revoke(path: Path) -> str:
    return statement(path, rf"revoke all on (function|procedure) treadle\.{path.stem}\b")


def test_a_security_definer_function_pins_its_search_path() -> None:
    declared = {path: path.read_text().split("$$", 1)[0] for path in FUNCTIONS}
    wrong = [
        path
        for path, text in declared.items()
        if "security definer" in text and "set search_path = pg_catalog, pg_temp" not in text
    ]

    assert names(wrong) == []


def test_a_function_that_steers_the_planner_does_without_jit() -> None:
    # Before PostgreSQL 18 a plan with a disabled node costs so much that every call is compiled.
    texts = {path: path.read_text() for path in FUNCTIONS}
    wrong = [
        path
        for path, text in texts.items()
        if ("\nset enable_" in text) != ("\nset jit = off" in text)
    ]

    assert names(wrong) == []


def test_migrations_are_numbered_without_gaps() -> None:
    found = sorted(path.name for path in (tree.ROOT / "sql" / "migrations").iterdir())

    assert len(found) > 0
    for number, name in enumerate(found, start=1):
        assert re.fullmatch(rf"{number:04}_[a-z0-9_]+\.sql", name)


def test_a_migration_begins_with_its_name_and_purpose() -> None:
    wrong = [
        path.name
        for path in sorted((tree.ROOT / "sql" / "migrations").glob("*.sql"))
        if not re.match(rf"-- {path.stem}: \S", path.read_text())
    ]

    assert wrong == []


def test_function_names_are_unique_over_all_folders() -> None:
    stems = [path.stem for path in tree.functions()]

    assert sorted(stems) == sorted(set(stems))
