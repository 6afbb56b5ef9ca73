"""Which tests cover which requirement; `make requirements` prints it.

Items are read from docs/requirements.md, marks from the source of the tests. An item without a
test is a failure unless it stands under the heading "Not yet"; so is a mark without an item.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ITEM = re.compile(r"- ([A-Z]\d+) (.+)")


@dataclass
class Item:
    """One numbered requirement."""

    id: str
    text: str
    shown: bool
    tests: list[str] = field(default_factory=list)


def read_items(text: str) -> dict[str, Item]:
    """The items of docs/requirements.md by their number."""
    items: dict[str, Item] = {}
    last: Item | None = None
    shown = True
    for line in text.splitlines():
        if line.startswith("## "):
            shown = line != "## Not yet"
        elif found := ITEM.match(line):
            number = found.group(1)
            if number in items:
                raise ValueError(f"{number} is listed twice")
            items[number] = last = Item(number, found.group(2), shown)
        elif last is not None and line.startswith("  "):
            last.text += f" {line.strip()}"
        else:
            last = None
    return items


def marks(source: str) -> Iterator[tuple[str, str]]:
    """The (number, test) pairs of one test file; marks of a class or the module count for all."""
    module = ast.parse(source)
    tops = [node for node in module.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    whole = [
        number
        for node in tops
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id == "pytestmark" and node.value is not None
        for number in _numbers(node.value)
    ]
    yield from _tests(module.body, whole)


def _tests(body: list[ast.stmt], outer: list[str]) -> Iterator[tuple[str, str]]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            own = outer + [number for mark in node.decorator_list for number in _numbers(mark)]
            if isinstance(node, ast.ClassDef):
                yield from _tests(node.body, own)
            elif node.name.startswith("test_"):
                yield from ((number, node.name) for number in own)


def _numbers(node: ast.expr) -> Iterator[str]:
    for call in ast.walk(node):
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == "requirement"
        ):
            yield from (str(arg.value) for arg in call.args if isinstance(arg, ast.Constant))


def collect(root: Path = ROOT) -> tuple[dict[str, Item], list[str]]:
    """The items with their tests, and what is wrong."""
    items = read_items((root / "docs" / "requirements.md").read_text())
    problems = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        place = path.relative_to(root).as_posix()
        for number, test in marks(path.read_text()):
            if number in items:
                items[number].tests.append(f"{place}::{test}")
            else:
                problems.append(f"{place}::{test} names {number}, which is not a requirement")
    problems += [
        f"{item.id} has no test: {item.text}"
        for item in items.values()
        if item.shown and not item.tests
    ]
    return items, problems


def main() -> int:
    """Print item -> tests; 1 when something is wrong."""
    items, problems = collect()
    for item in items.values():
        if item.shown or item.tests:
            print(f"{item.id} {item.text}")
            print(*(f"    {test}" for test in item.tests), sep="\n")
    waiting = [item.id for item in items.values() if not item.shown]
    print(f"\nnot yet ({len(waiting)}): {' '.join(waiting)}")
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
