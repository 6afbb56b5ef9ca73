"""Imports point one way, and each external library is imported in one package."""

import ast
import subprocess
import sys
from pathlib import Path

from tests.drivers import tree
from tests.drivers.tree import imported


def test_the_layers_are_respected() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]

    done = subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr


def test_only_db_imports_psycopg() -> None:
    guilty = [
        path
        for path, module in tree.modules()
        if not path.startswith("db/")
        and any(name.split(".")[0] in ("psycopg", "psycopg_pool") for name in imported(module))
    ]

    assert guilty == []


def test_only_settings_reads_the_environment() -> None:
    doors = ("environ", "environb", "getenv", "getenvb")
    guilty = [
        f"{path}:{node.lineno}"
        for path, module in tree.modules()
        if path != "settings.py"
        for node in ast.walk(module)
        if (isinstance(node, ast.Attribute) and node.attr in doors)
        or (isinstance(node, ast.alias) and node.name in doors)
    ]

    assert guilty == []


def test_only_the_command_line_prints() -> None:
    guilty = [
        f"{path}:{node.lineno}"
        for path, module in tree.modules()
        if not path.startswith("cli/")
        for node in ast.walk(module)
        if isinstance(node, ast.Name) and node.id == "print"
    ]

    assert guilty == []


def test_no_module_of_the_package_imports_treadle_itself() -> None:
    """`from treadle import Treadle` is for users; inside, it would hide the direction."""
    inside = {path.stem for path in tree.SOURCE.iterdir()} | {"__version__"}
    guilty = [
        f"{path}:{node.lineno}"
        for path, module in tree.modules()
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and node.module == "treadle"
        if not inside.issuperset(alias.name for alias in node.names)
    ]

    assert guilty == []


def test_every_module_has_a_docstring() -> None:
    silent = [path for path, module in tree.modules() if not ast.get_docstring(module)]

    assert silent == []
