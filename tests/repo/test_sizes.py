"""A long file is an exception: it is listed here with the reason why it is one file."""

from pathlib import Path

from tests.drivers import tree
from treadle.db.install.files import functions

# Path: why a split would be worse.
REVIEWED = {
    "src/treadle/api/access.py": "the one place that decides what a caller may see and do",
    "src/treadle/api/v1/tasks.py": "one module per noun: the routes of tasks share their bodies",
    "src/treadle/fields.py": "the one list of the fields of a task",
}


def too_long(paths: list[Path], limit: int) -> dict[str, int]:
    """The files with `limit` lines or more that are not in REVIEWED."""
    counts = {tree.name(path): len(path.read_text().splitlines()) for path in paths}
    return {
        name: count for name, count in counts.items() if count >= limit and name not in REVIEWED
    }


def test_a_reviewed_file_is_still_long() -> None:
    lengths = {name: len((tree.ROOT / name).read_text().splitlines()) for name in REVIEWED}

    assert {name: count for name, count in lengths.items() if count < 200} == {}


def test_a_python_module_has_fewer_than_500_lines() -> None:
    assert too_long(tree.files(".py"), 500) == {}


def test_a_test_file_has_fewer_than_400_lines() -> None:
    tests = [path for path in tree.files(".py") if tree.name(path).startswith("tests/")]

    assert len(tests) > 0
    assert too_long(tests, 400) == {}


def test_a_sql_function_has_fewer_than_200_lines() -> None:
    """Files of functions follow meaning, not a line count; a function should fit in one view."""
    counts = {name: len(text.splitlines()) for name, text in functions().items()}

    assert len(counts) > 0
    assert {name: count for name, count in counts.items() if count >= 200} == {}


def test_a_line_has_at_most_100_columns() -> None:
    checked = [
        path
        for path in [*tree.files(".py", ".sql", ".toml", ".yml"), tree.ROOT / "Makefile"]
        if tree.name(path) not in tree.GENERATED
    ]

    wide = [
        f"{tree.name(path)}:{number}"
        for path in checked
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if len(line) > 100
    ]

    assert wide == []
