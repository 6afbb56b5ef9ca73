"""A mutant is selected when its function or its own file has changed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.drivers.mutants import Mutant, functions
from tests.drivers.mutants_since import ROOT, Commit

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def commit(tmp_path: Path) -> Commit:
    """A commit with two functions in one file, one of them with another text, and a test."""
    texts = {
        "sql/functions/elsewhere/both.sql": f"-- Both.\n\n{functions()['clock']}\n\n"
        + functions()["format_rfc3339"].replace("milliseconds", "seconds"),
        "tests/test_one.py": "ONE = 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "One"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    return Commit("HEAD", tmp_path)


def mutant(function: str) -> Mutant:
    return Mutant(function, {}, lambda _: None)


def test_a_function_that_only_moved_is_the_same(commit: Commit) -> None:
    assert commit.has_mutant(mutant("clock"))


@pytest.mark.parametrize("name", ["format_rfc3339", "format_usd"])
def test_a_function_with_another_text_or_a_new_one_is_not(commit: Commit, name: str) -> None:
    assert not commit.has_mutant(mutant(name))


def test_a_test_file_is_compared_by_its_text(commit: Commit, tmp_path: Path) -> None:
    file = tmp_path / "tests" / "test_one.py"
    assert commit.has_file(file)

    file.write_text("ONE = 2\n")

    assert not commit.has_file(file)
    (file.parent / "test_two.py").write_text("ONE = 1\n")
    assert not commit.has_file(file.parent / "test_two.py")


def test_a_commit_that_does_not_exist_is_named() -> None:
    with pytest.raises(pytest.UsageError, match="MUTANTS_SINCE=nothing"):
        Commit("nothing").has_file(ROOT / "pyproject.toml")
