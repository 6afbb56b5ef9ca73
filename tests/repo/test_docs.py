"""The docs name only what exists: links, commands and options, SQL functions, settings, errors."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pytest

from tests.drivers import tree
from tests.drivers.commands import parse
from tests.drivers.tree import error_classes
from treadle.db.install.files import functions
from treadle.settings import Settings

PAGES = [tree.ROOT / "README.md", tree.ROOT / "CHANGELOG.md", *tree.files(".md")]
PAGES = sorted({path for path in PAGES if not tree.name(path).startswith(("tests/", "bench/"))})
REFERENCE = tree.ROOT / "docs" / "reference"
SHELLS = {"sh", "bash", "console"}
# Made by the migrations, not from a file of its own.
IN_MIGRATIONS = {"uuidv7"}


class Block(NamedTuple):
    """A fenced block of a page."""

    place: str
    language: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^( *)```(\w*)\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(f"{tree.name(page)}:{line}", found[2], found[3])


def prose(page: Path) -> str:
    """The text of a page without its blocks."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What a link into the page can name: its headings as GitHub spells them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    kept = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.strip().replace(" ", "-") for heading in kept}


def broken_links(page: Path) -> list[str]:
    """Links to places in this repository that are not there."""
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        goal = (page.parent / path).resolve() if path else page
        if not goal.exists() or (anchor and anchor not in anchors(goal)):
            found.append(target)
    return found


def commands(text: str) -> Iterator[list[str]]:
    """The words after `treadle` of each command line; in a transcript, those after a prompt."""
    lines = text.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    for line in lines:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        simple: list[list[str]] = [[]]
        for word in lexer:
            if set(word) <= set(";|&<>()"):
                # The file of a redirection is no argument.
                simple.append([word] if set(word) <= set("<>") else [])
            else:
                simple[-1].append(word)
        for words in simple:
            while words and (re.match(r"[A-Z_]+=", words[0]) or words[0] in {"exec", "sudo"}):
                words = words[1:]
            if words and Path(words[0]).name == "treadle":
                yield words[1:]


def rows(page: Path) -> list[list[str]]:
    """The cells of every table row of a page."""
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def shown(default: object) -> str:
    """A default as the table has it."""
    if default is None or default == []:
        return "none"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, int):
        return str(default)
    if isinstance(default, float):
        return f"{default:g}"
    return f"`{','.join(default) if isinstance(default, list) else default}`"


def test_every_link_has_a_target() -> None:
    found = {tree.name(page): broken_links(page) for page in PAGES}

    assert {name: links for name, links in found.items() if links} == {}


def test_every_page_can_be_reached_from_the_map() -> None:
    start = tree.ROOT / "docs" / "index.md"
    links = re.findall(r"\]\(([^)#\s]+)", start.read_text(encoding="utf-8"))
    reached = {(start.parent / link).resolve() for link in links}

    pages = {page for page in PAGES if "docs" in page.parts and page != start}
    missing = sorted(tree.name(page) for page in pages - reached)

    assert missing == []


def test_every_command_in_the_docs_exists_with_its_options() -> None:
    found = [
        (block.place, words)
        for page in PAGES
        for block in blocks(page)
        if block.language in SHELLS
        for words in commands(block.text)
    ]
    wrong = [f"{place}: treadle {' '.join(words)}: {parse(words)}" for place, words in found]

    assert len(found) > 10
    assert [line for line in wrong if not line.endswith(": None")] == []


@pytest.mark.parametrize(
    "words",
    [["fly"], ["tasks", "fly"], ["tasks", "list", "--colour", "red"], ["worker", "--slots", "x"]],
)
def test_a_wrong_command_would_be_noticed(words: list[str]) -> None:
    assert parse(words) is not None


def test_every_function_in_the_docs_exists() -> None:
    known = functions().keys() | IN_MIGRATIONS
    named = {
        (tree.name(page), name)
        for page in PAGES
        for name in re.findall(r"\btreadle\.(\w+)\(", page.read_text(encoding="utf-8"))
    }

    assert len(named) > 10
    assert sorted(f"{page}: {name}" for page, name in named if name not in known) == []


def test_every_python_snippet_compiles() -> None:
    found = [block for page in PAGES for block in blocks(page) if block.language == "python"]
    for block in found:
        compile(block.text, block.place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    assert len(found) > 10


def test_the_settings_page_has_every_setting_as_it_is() -> None:
    table = [row for row in rows(REFERENCE / "settings.md") if row[0].startswith("`")]

    expected = [
        [f"`{name}`", f"`TREADLE_{name.upper()}`", shown(field.default), field.description]
        for name, field in Settings.model_fields.items()
    ]

    assert table == expected


def test_the_errors_page_has_every_error_as_it_is() -> None:
    table = [row[:5] for row in rows(REFERENCE / "errors.md") if len(row) == 6]

    expected = [
        [
            f"`{cls.__name__}`",
            f"`{cls.sqlstate}`" if cls.sqlstate else "",
            str(cls.http_status),
            str(cls.exit_code),
            f"`{cls.code}`",
        ]
        for cls in error_classes()
        if cls.__module__ == "treadle.errors"
    ]

    assert table[2:] == expected
