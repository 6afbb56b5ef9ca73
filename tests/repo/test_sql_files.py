"""A SQL file is named after what it creates, has a header, and grants no unneeded rights."""

import re
from pathlib import Path

from tests.drivers import tree
from treadle.db.install.files import functions, functions_in

GRANT = re.compile(r"^grant execute on function\s+treadle\.(\w+)", re.MULTILINE)
NOTHING = re.compile(r"-- (Concurrency|Lock order|Raises): +(none|nothing)\.?")
STATEMENT = re.compile(r"^(create|comment|grant) ", re.MULTILINE)

FILES = {tree.name(path): path.read_text() for path in tree.functions()}
# The options of each function, without its body.
OPTIONS = {name: text.split("$$", 1)[0] for name, text in functions().items()}


def test_a_function_file_begins_with_its_name_and_purpose() -> None:
    wrong = [name for name, text in FILES.items() if not text.startswith(f"-- {Path(name).stem}: ")]

    assert len(FILES) > 100
    assert wrong == [], "the first line is: -- name: purpose"


def test_every_function_of_a_file_has_its_purpose_above_it() -> None:
    def purpose(text: str, name: str) -> str:
        above = text[: text.index(f"function treadle.{name}(")]
        return above.rstrip().rsplit("\n\n", 1)[-1]

    wrong = [
        (file, name)
        for file, text in FILES.items()
        for name in functions_in(text)
        if name != Path(file).stem and not purpose(text, name).startswith(f"-- {name}: ")
    ]

    assert wrong == []


def test_a_helper_stands_above_its_caller() -> None:
    wrong = []
    for file, text in FILES.items():
        made = functions_in(text)
        calls = {
            name: set(re.findall(r"treadle\.(\w+)\s*\(", re.sub(r"--[^\n]*", "", made[name])))
            for name in made
        }
        names = list(made)
        wrong += [
            (file, caller, helper)
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


def test_rights_stand_at_the_end_of_a_file() -> None:
    def has_rights_at_its_end(text: str) -> bool:
        kinds = STATEMENT.findall(re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL))
        rights = [kind for kind in kinds if kind == "grant"]
        return len(functions_in(text)) > 0 and kinds[len(kinds) - len(rights) :] == rights

    assert [name for name, text in FILES.items() if not has_rights_at_its_end(text)] == []


def test_a_header_has_no_empty_fields() -> None:
    empty = [
        f"{name}: {line}"
        for name, text in FILES.items()
        for line in text.splitlines()
        if NOTHING.fullmatch(line)
    ]

    assert empty == []


def test_a_function_that_a_role_may_call_has_a_comment_that_psql_shows() -> None:
    wrong = [
        (file, name)
        for file, text in FILES.items()
        for name in GRANT.findall(text)
        if not re.search(rf"^comment on function\s+treadle\.{name}\b[^;']*\bis\s+'.+'", text, re.M)
    ]

    assert wrong == []


def test_a_security_definer_function_pins_its_search_path() -> None:
    wrong = [
        name
        for name, declared in OPTIONS.items()
        if "security definer" in declared
        and "set search_path = pg_catalog, pg_temp" not in declared
    ]

    assert len(OPTIONS) > 300
    assert wrong == []


def test_a_function_that_steers_the_planner_does_without_jit() -> None:
    # Before PostgreSQL 18 a plan with a disabled node costs so much that every call is compiled.
    wrong = [
        name
        for name, declared in OPTIONS.items()
        if ("\nset enable_" in declared) != ("\nset jit = off" in declared)
    ]

    assert wrong == []


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


def test_a_view_reads_no_clock_but_that_of_treadle() -> None:
    """Tests set that one, and a view must not contradict the functions."""
    clocks = re.compile(
        r"\b(now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\s*\("
        r"|\b(current_timestamp|localtimestamp|current_date|current_time|localtime)\b"
        r"|\btreadle\.clock\(|'now'"
        # Not read once for the whole query.
        r"|(?<!\(select )treadle\.view_clock\("
    )
    wrong = [
        (path.name, found[0])
        for path in sorted((tree.ROOT / "sql" / "views").glob("*.sql"))
        for found in clocks.finditer(re.sub(r"--[^\n]*", "", path.read_text()))
    ]

    assert wrong == [], "views use (select treadle.view_clock())"


def test_a_function_has_one_file_and_one_signature() -> None:
    made = [name for path in tree.functions() for name in functions_in(path.read_text())]

    assert sorted(made) == sorted(set(made))
    created = sum(path.read_text().count("\ncreate or replace ") for path in tree.functions())
    assert created == len(made), "a file that creates a function twice, or something else"


def test_file_names_are_unique_over_all_folders() -> None:
    stems = [path.stem for path in tree.functions()]

    assert sorted(stems) == sorted(set(stems))
