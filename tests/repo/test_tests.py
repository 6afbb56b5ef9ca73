"""No test file imports another: what tests share is in tests/drivers, and mutants name tests."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.drivers import tree
from tests.drivers.tree import imported

TESTS = tree.ROOT / "tests"


def killers(file: Path) -> Iterator[tuple[str, str]]:
    """The module and the name of each test that the mutants of a file name."""
    module = ast.parse(file.read_text())
    modules = {
        node.targets[0].id: str(node.value.args[0].value)
        for node in module.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "Killers"
        and isinstance(node.value.args[0], ast.Constant)
    }
    for node in ast.walk(module):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in modules
        ):
            yield modules[node.value.id], node.attr


def names_in(file: Path) -> set[str]:
    """What a file defines at its top."""
    found = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
    return found


def test_no_test_file_and_no_conftest_is_imported() -> None:
    files = sorted(TESTS.rglob("*.py"))
    guilty = [
        f"{tree.name(file)}: {name}"
        for file in files
        for name in imported(ast.parse(file.read_text()))
        if name.startswith("tests.")
        and any(part == "conftest" or part.startswith("test_") for part in name.split("."))
    ]

    assert len(files) > 400
    assert guilty == []


def test_every_test_that_a_mutant_names_exists() -> None:
    named = [
        (file.name, module, name)
        for file in sorted((TESTS / "mutants").glob("test_*.py"))
        for module, name in killers(file)
    ]
    behaviour = TESTS / "behaviour"
    known = {
        module: names_in(behaviour / f"{module.replace('.', '/')}.py")
        for module in {module for _, module, _ in named}
    }

    assert len(named) > 300
    assert [each for each in named if each[2] not in known[each[1]]] == []


def test_every_folder_of_behaviour_tests_is_a_noun_of_the_engine() -> None:
    """The same names as in sql/functions, and those of what has no functions of its own."""
    nouns = {path.name for path in (tree.ROOT / "sql" / "functions").iterdir()}
    folders = {path.name for path in (TESTS / "behaviour").iterdir() if path.is_dir()}

    assert folders - {"__pycache__"} - nouns == {"engine"}
