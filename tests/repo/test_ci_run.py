"""The CI script runs existing targets as a new user would, and as root what needs root."""

import re
import subprocess

from tests.drivers import tree

SCRIPT = tree.ROOT / ".ci" / "run"
TEXT = SCRIPT.read_text()


def words_of(name: str) -> list[str]:
    """The words of an array of the script."""
    found = re.search(rf"^{name}=\((.*)\)$", TEXT, re.MULTILINE)
    assert found is not None
    return found[1].split()


def test_it_is_a_script_without_errors_of_syntax() -> None:
    assert SCRIPT.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", str(SCRIPT)], check=True)


def test_its_targets_exist() -> None:
    makefile = (tree.ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))

    steps = re.findall(r"^ *step ([a-z0-9-]+)$", TEXT, re.MULTILINE)

    assert {*words_of("names"), *steps} <= targets
    assert {"venv", "mutants"} <= set(steps)


def test_its_folders_and_tests_exist() -> None:
    named = re.findall(r"\btests/[\w/.*]+", re.sub(r"^#.*", "", TEXT, flags=re.MULTILINE))

    assert len(named) > 5
    assert [each for each in named if not list(tree.ROOT.glob(each))] == []


def test_a_new_user_has_a_home_and_the_programs_of_the_system_and_nothing_else() -> None:
    [environment] = re.findall(r"env -i (.*) \"\$@\"\)", TEXT)

    names = [each.partition("=")[0] for each in environment.split()]
    assert names == ["HOME", "PATH", "LANG"]
    assert "PATH=/usr/bin:/bin" in environment
    assert re.search(r'checkout="\$place/[^"]* [^"]*"', TEXT), "its path has a space"


def test_what_is_skipped_for_plain_users_runs_as_root() -> None:
    files = (tree.ROOT / "tests").rglob("test_*.py")
    skipped = re.compile(r"skipif\(\s*os\.gete?uid\(\) != 0")
    found = [tree.name(file) for file in files if skipped.search(file.read_text())]

    assert len(found) > 0
    assert set(found) <= set(words_of("as_root"))


def test_every_mutant_is_marked_and_in_the_folder_of_its_target() -> None:
    files = [
        file
        for file in (tree.ROOT / "tests").rglob("test_*.py")
        if "\nMUTANTS = {" in file.read_text()
    ]
    [folder] = re.findall(
        r"-m mutant \$\(or \$\(ARGS\),(\S+)\)", (tree.ROOT / "Makefile").read_text()
    )

    assert len(files) > 20
    for file in files:
        assert "pytest.mark.mutant" in file.read_text(), tree.name(file)
        assert tree.name(file).startswith(f"{folder}/")
