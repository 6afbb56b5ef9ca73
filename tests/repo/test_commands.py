"""Every command that a hint, a message, a comment or a page names exists with its options."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import cli_reference
from tests.drivers import tree
from treadle import cli

# `treadle`, a noun, a verb and the rest of the line or code span.
MENTION = re.compile(r"(?<![\w./@-])treadle ([a-z][a-z-]*)(?: ([a-z][a-z-]*)(?![\w.:/]))?([^`\n]*)")
OPTION = re.compile(r"(?<=\s)--[a-z][a-z-]*")
# What stands before a command; elsewhere `treadle` may be the subject of a sentence.
BEFORE_COMMAND = ("`", ": ", "$ ", "run ", "see ")
# Words that follow `treadle` in sentences.
PROSE = {"alone", "can", "does", "has", "is", "itself"}
FOLDERS = ("docs/", "examples/", "sql/", "src/")
SUFFIXES = (".md", ".py", ".sql", ".yaml", ".yml")


def commands() -> dict[str, Any]:
    """Every noun and command, by its words."""
    found = {}
    for section in cli.SECTIONS.values():
        for name in section:
            found[name] = cli.load(name)
            for verb, command in getattr(found[name], "commands", {}).items():
                found[f"{name} {verb}"] = command
    return found


COMMANDS = commands()


def problem(noun: str, verb: str | None, rest: str) -> str | None:
    """What is wrong with the name or the options of a command."""
    if noun not in COMMANDS:
        return f"there is no command {noun}"
    command = COMMANDS[noun]
    if verb is not None and hasattr(command, "commands"):
        if f"{noun} {verb}" not in COMMANDS:
            return f"{noun} has no verb {verb}"
        command = COMMANDS[f"{noun} {verb}"]
    elif "list" in getattr(command, "commands", {}):
        command = command.commands["list"]
    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    unknown = set(OPTION.findall(rest)) - known - {"--help"}
    return f"{noun} {verb or ''} has no {sorted(unknown)}" if unknown else None


def mentions(path: Path) -> Iterator[tuple[str, str, str | None, str]]:
    """The commands that a file names, each with its place."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        for found in MENTION.finditer(line):
            before = line[: found.start()]
            if found[1] in COMMANDS or (before.endswith(BEFORE_COMMAND) and found[1] not in PROSE):
                yield f"{tree.name(path)}:{number}", found[1], found[2], found[3]


def pages() -> list[Path]:
    """The files that people read, and those that print messages."""
    return [
        path
        for path in tree.files(*SUFFIXES)
        if tree.name(path).startswith(FOLDERS) or path.parent == tree.ROOT
        if tree.name(path) not in tree.GENERATED | {"CHANGELOG.md", "tests/repo/test_commands.py"}
    ]


def test_every_named_command_exists_with_its_options() -> None:
    found = [mention for path in pages() for mention in mentions(path)]
    wrong = [
        f"{place}: treadle {noun} {verb or ''}: {text}"
        for place, noun, verb, rest in found
        if (text := problem(noun, verb, rest)) is not None
    ]

    assert len(found) > 300
    assert wrong == []


@pytest.mark.parametrize(
    "line",
    [
        "hint='List them: treadle dag list'",
        "`treadle dags lst`",
        "treadle dags list --colour",
        "`treadle fly`",
    ],
)
def test_a_command_that_does_not_exist_would_be_noticed(line: str) -> None:
    [(noun, verb, rest)] = [found.groups() for found in MENTION.finditer(line)]

    assert problem(noun, verb, rest) is not None


def test_the_page_of_the_command_line_is_written_from_the_commands() -> None:
    assert cli_reference.PAGE.read_text(encoding="utf-8") == cli_reference.write(), (
        "run: make cli-reference"
    )


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_an_example_of_itself(name: str) -> None:
    _, examples, *_ = cli_reference.help_parts(COMMANDS[name].help)

    assert f"treadle {name}" in examples
