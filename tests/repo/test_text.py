"""The text of the project is free of local paths, open ends and unusual wording."""

import re

from tests.drivers import tree

# Written in pieces, so that this file does not find itself.
MACHINE = re.compile("|".join(["/" + "root/", "/" + r"home/[a-z]", "/" + "Users/"]))
OPEN = re.compile("|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "NotImplemented" + "Error"]))


def found(pattern: re.Pattern[str], *tops: str) -> list[str]:
    """Where the pattern occurs, in all files or in those below `tops`."""
    places = []
    for path in tree.files():
        if tops and not tree.name(path).startswith(tops):
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:  # a picture
            continue
        lines = enumerate(text.splitlines(), start=1)
        places += [f"{tree.name(path)}:{n}" for n, line in lines if pattern.search(line)]
    return places


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    assert found(MACHINE) == []


def test_nothing_is_left_open_in_the_product() -> None:
    assert found(OPEN, "src/", "sql/") == []
