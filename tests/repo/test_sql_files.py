"""A SQL file is named for what it makes, explained at its head, and gives no rights unasked."""

import re
from pathlib import Path

import pytest

from tests.repo import tree

CREATE = re.compile(r"^create or replace (?:function|procedure) treadle\.(\w+)\s*\(", re.MULTILINE)
HEAD = ("Concurrency:", "Lock order:", "Raises:")

every_function = pytest.mark.parametrize("path", tree.functions(), ids=lambda path: path.stem)


def head(path: Path) -> list[str]:
    """The comment lines at the top of a file."""
    lines = path.read_text().splitlines()
    end = next((n for n, line in enumerate(lines) if not line.startswith("--")), len(lines))
    return lines[:end]


def statement(path: Path, beginning: str) -> str:
    """The first statement that begins so, up to the line that ends it; empty without one."""
    found = re.search(rf"^{beginning}.*?;$", path.read_text(), re.MULTILINE | re.DOTALL)
    return found.group(0) if found else ""


@every_function
def test_a_function_file_makes_the_one_function_it_is_named_for(path: Path) -> None:
    assert CREATE.findall(path.read_text()) == [path.stem]


@every_function
def test_a_function_file_begins_with_its_purpose_concurrency_locks_and_errors(path: Path) -> None:
    lines = head(path)

    assert lines[0].startswith(f"-- {path.stem}: "), "the first line is: -- name: purpose"
    for word in HEAD:
        assert any(re.match(rf"-- {word}\s+\S", line) for line in lines), f"no line: -- {word} ..."


@every_function
def test_a_function_has_a_comment_that_psql_shows(path: Path) -> None:
    comment = statement(path, rf"comment on (function|procedure) treadle\.{path.stem}\b")

    assert re.search(r"\bis\s+'.+'", comment, re.DOTALL)


@every_function
def test_a_function_is_revoked_from_public_in_its_own_file(path: Path) -> None:
    revoke = statement(path, rf"revoke all on (function|procedure) treadle\.{path.stem}\b")

    assert revoke.endswith("from public;")


@every_function
def test_a_security_definer_function_pins_its_search_path(path: Path) -> None:
    declared = path.read_text().split("$$", 1)[0]

    if "security definer" in declared:
        assert "set search_path = pg_catalog, pg_temp" in declared


@every_function
def test_a_function_that_steers_the_planner_does_without_jit(path: Path) -> None:
    # Before PostgreSQL 18 a plan with a disabled node costs so much that every call is compiled.
    text = path.read_text()

    assert ("\nset enable_" in text) == ("\nset jit = off" in text)


def test_migrations_are_numbered_without_gaps() -> None:
    names = sorted(path.name for path in (tree.ROOT / "sql" / "migrations").iterdir())

    assert len(names) > 0
    for number, name in enumerate(names, start=1):
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
