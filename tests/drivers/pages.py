"""The pages of the documentation: their fenced blocks, and the commands in them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.drivers import tree

SHELLS = {"sh", "bash", "console"}


class Block(NamedTuple):
    """A fenced block of a page, and the comment before it."""

    place: str
    language: str
    text: str
    comment: str = ""

    @property
    def not_run(self) -> bool:
        return self.comment.startswith("not run: ")


def pages() -> list[Path]:
    """Every page that people read, with the generated ones."""
    found = [
        path for path in tree.files(".md") if not tree.name(path).startswith(("tests/", "bench/"))
    ]
    return sorted(found)


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, and its setups in their places."""
    text = page.read_text(encoding="utf-8")
    comment = r"(?:^ *<!-- (?P<comment>[^>]*?) -->\n+)?"
    fence = r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$"
    setup = r"^<!-- setup: (?P<setup>.*?) -->$"
    for found in re.finditer(f"{setup}|{comment}{fence}", text, re.MULTILINE | re.DOTALL):
        place = f"{tree.name(page)}:{text.count(chr(10), 0, found.start()) + 1}"
        if found["setup"] is not None:
            yield Block(place, "setup", found["setup"])
        else:
            body = re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE)
            yield Block(place, found["language"], body, found["comment"] or "")


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a shell block, each with what the block says that it prints."""
    lines = text.replace("\\\n", " ").splitlines()
    if not any(line.startswith("$ ") for line in lines):
        lines = [f"$ {line}" for line in lines if line.strip() and not line.startswith("#")]
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return [(command, "\n".join(output).strip()) for command, output in found]


def treadle_words(command: str) -> Iterator[list[str]]:
    """The words after `treadle`, for each time that a line of a shell has it as a program."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
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
