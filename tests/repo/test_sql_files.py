"""A SQL file is named for what it makes, explained at its head, and gives no rights unasked."""

import re
from pathlib import Path

import pytest

from tests.repo import tree
from treadle.db.install.files import functions, functions_in

FUNCTIONS = functions()
GRANT = re.compile(r"^grant execute on function\s+treadle\.(\w+)", re.MULTILINE)
NOTHING = re.compile(r"-- (Concurrency|Lock order|Raises): +(none|nothing)\.?")
STATEMENT = re.compile(r"^(create|comment|grant) ", re.MULTILINE)

every_file = pytest.mark.parametrize("path", tree.functions(), ids=lambda path: path.stem)
every_function = pytest.mark.parametrize("name", FUNCTIONS)


@every_file
def test_a_function_file_begins_with_its_name_and_purpose(path: Path) -> None:
    assert path.read_text().startswith(f"-- {path.stem}: "), "the first line is: -- name: purpose"


@every_file
def test_every_function_of_a_file_has_its_purpose_above_it(path: Path) -> None:
    text = path.read_text()

    for name in functions_in(text):
        above = text[: text.index(f"function treadle.{name}(")]
        last = above.rstrip().rsplit("\n\n", 1)[-1]
        assert name == path.stem or last.startswith(f"-- {name}: "), f"no comment above {name}"


@every_file
def test_a_helper_stands_above_its_caller(path: Path) -> None:
    made = functions_in(path.read_text())
    calls = {
        name: set(re.findall(r"treadle\.(\w+)\s*\(", re.sub(r"--[^\n]*", "", made[name])))
        for name in made
    }

    names = list(made)
    wrong = [
        (caller, helper)
        for at, caller in enumerate(names)
        for helper in names[at + 1 :]
        # Two that call each other have no order.
        if helper in calls[caller] and not reaches(helper, caller, calls)
    ]

    assert wrong == []


def reaches(start: str, end: str, calls: dict[str, set[str]]) -> bool:
    """Whether one function of a file comes to call another, over the others in it."""
    seen, left = {start}, [start]
    while left:
        found = (calls[left.pop()] & calls.keys()) - seen
        seen |= found
        left.extend(found)
    return end in seen


@every_file
def test_rights_stand_at_the_end_of_a_file(path: Path) -> None:
    kinds = STATEMENT.findall(re.sub(r"\$\$.*?\$\$", "", path.read_text(), flags=re.DOTALL))
    rights = [kind for kind in kinds if kind == "grant"]

    assert len(functions_in(path.read_text())) > 0
    assert kinds[len(kinds) - len(rights) :] == rights


@every_file
def test_a_header_has_no_lines_that_say_nothing(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if line.startswith("--")]

    assert [line for line in lines if NOTHING.fullmatch(line)] == []


@every_file
def test_a_function_that_a_role_may_call_has_a_comment_that_psql_shows(path: Path) -> None:
    text = path.read_text()

    for name in GRANT.findall(text):
        assert re.search(
            rf"^comment on function\s+treadle\.{name}\b[^;']*\bis\s+'.+'", text, re.M
        ), name


@every_function
def test_a_security_definer_function_pins_its_search_path(name: str) -> None:
    declared = FUNCTIONS[name].split("$$", 1)[0]

    if "security definer" in declared:
        assert "set search_path = pg_catalog, pg_temp" in declared


@every_function
def test_a_function_that_steers_the_planner_does_without_jit(name: str) -> None:
    # Before PostgreSQL 18 a plan with a disabled node costs so much that every call is compiled.
    declared = FUNCTIONS[name].split("$$", 1)[0]

    assert ("\nset enable_" in declared) == ("\nset jit = off" in declared)


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


def test_a_migration_calls_no_function_of_treadle_but_uuidv7() -> None:
    """Functions change with every release; a migration must do the same in all of them."""
    calls = {
        (path.name, name)
        for path in (tree.ROOT / "sql" / "migrations").glob("*.sql")
        for name in re.findall(
            r"\btreadle\.(\w+)\(",
            re.sub(r"--[^\n]*|^drop function [^;]*;", "", path.read_text(), flags=re.MULTILINE),
        )
        if name != "uuidv7"
    }

    assert calls == set()


def test_a_function_has_one_file_and_one_signature() -> None:
    made = [name for path in tree.functions() for name in functions_in(path.read_text())]

    assert sorted(made) == sorted(set(made))
    created = sum(path.read_text().count("\ncreate or replace ") for path in tree.functions())
    assert created == len(made), "a file that creates a function twice, or something else"


def test_file_names_are_unique_over_all_folders() -> None:
    stems = [path.stem for path in tree.functions()]

    assert sorted(stems) == sorted(set(stems))
