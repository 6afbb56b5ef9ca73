"""The docs name only what exists: links, commands and options, SQL functions, settings, errors."""

import ast
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.drivers import tree
from tests.drivers.commands import parse
from tests.drivers.pages import SHELLS, blocks, commands, pages, treadle_words
from tests.drivers.tree import error_classes
from treadle.db.install.files import functions
from treadle.settings import Settings

PAGES = pages()
REFERENCE = tree.ROOT / "docs" / "reference"
# Made by the migrations, not from a file of its own.
IN_MIGRATIONS = {"uuidv7"}


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
        for command, _ in commands(block.text)
        for words in treadle_words(command)
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
