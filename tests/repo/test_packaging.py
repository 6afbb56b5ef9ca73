"""What is installed is complete: the SQL is part of the wheel."""

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.repo import tree


def test_the_wheel_carries_the_sql_files(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    [wheel] = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())

    expected = {f"treadle/{tree.name(path)}" for path in (tree.ROOT / "sql").rglob("*.sql")}
    assert len(expected) > 0
    assert expected <= inside
    assert "treadle/py.typed" in inside
