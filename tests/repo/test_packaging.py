"""What is installed is complete: SQL and browser files are part of the wheel."""

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.drivers import tree


def test_the_wheel_carries_the_sql_and_the_browser_files(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    [wheel] = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())

    expected = {f"treadle/{tree.name(path)}" for path in (tree.ROOT / "sql").rglob("*.sql")}
    assert len(expected) > 0
    assert expected <= inside
    static = [path for path in (tree.SOURCE / "api" / "static").rglob("*") if path.is_file()]
    assert len(static) > 0
    assert {f"treadle/{path.relative_to(tree.SOURCE).as_posix()}" for path in static} <= inside
    assert "treadle/py.typed" in inside
