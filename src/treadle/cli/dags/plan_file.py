"""Read the description of a DAG from a JSON or YAML file; errors name the line.

Only safe YAML is read. Aliases can expand a small file into a huge document, so the expanded size
is checked before the document is built.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from treadle.errors import InvalidArgument, TooLarge, extra

MAX_BYTES = 16 * 1024 * 1024
MAX_VALUES = 1_000_000
EXAMPLE = '{"name": "nightly", "tasks": [{"name": "a", "type": "code"}]}'
_TEXT = "tag:yaml.org,2002:str"
_MERGE = "tag:yaml.org,2002:merge"


def read_plan(name: str) -> dict[str, Any]:
    """The description of a DAG from a file, or from stdin for -."""
    text = _read(name)
    shown = "stdin" if name == "-" else name
    looks_like_yaml = not text.lstrip().startswith("{")
    is_yaml = looks_like_yaml if name == "-" else Path(name).suffix.lower() in (".yaml", ".yml")
    return _checked(_yaml(text, shown) if is_yaml else _json(text, shown), shown)


def _read(name: str) -> str:
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidArgument(f"{name} cannot be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise TooLarge(
            f"{name} has more than {MAX_BYTES // 1024 // 1024} MiB",
            hint="Store the data elsewhere and let the tasks refer to it.",
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidArgument(f"{name}, line {line}: not UTF-8", hint="Save it as UTF-8.") from None


def _checked(found: object, name: str) -> dict[str, Any]:
    """A plan that is an object with a name and tasks; the database checks the rest."""
    if not isinstance(found, dict):
        raise InvalidArgument(
            f"{name} must hold an object, not {_kind(found)}", hint=f"For example: {EXAMPLE}"
        )
    if not isinstance(found.get("name"), str):
        raise InvalidArgument(f"{name} has no name for the DAG", hint=f"For example: {EXAMPLE}")
    tasks = found.get("tasks")
    if not isinstance(tasks, list) or not tasks:
        raise InvalidArgument(f"{name} has no list of tasks", hint=f"For example: {EXAMPLE}")
    for number, task in enumerate(tasks, start=1):
        if not isinstance(task, dict):
            raise InvalidArgument(
                f"{name}: task {number} must be an object, not {_kind(task)}",
                hint='For example: {"name": "a", "type": "code"}',
            )
    return found


def _json(text: str, name: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_pairs(name))
    except json.JSONDecodeError as error:
        raise InvalidArgument(
            f"{name}, line {error.lineno}, column {error.colno}: {error.msg}",
            hint="Correct the JSON there. A YAML file must be named .yaml or .yml.",
        ) from None
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"{name} is not valid JSON: {error}") from None


def _pairs(name: str) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise InvalidArgument(
                f"{name}: {twice!r} occurs twice in one object", hint="Remove one."
            )
        return found

    return build


def _yaml(text: str, name: str) -> object:
    with extra("yaml", 'plans in YAML need "treadle[yaml]"', ", or write the plan in JSON."):
        yaml: Any = import_module("yaml")
    loader = yaml.SafeLoader(text)
    try:
        top = loader.get_single_node()
        if top is None:
            return None
        _examine(top, name)
        return loader.construct_document(top)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise InvalidArgument(
            f"{name}{place}: {error.problem or error.context}", hint="Correct the YAML there."
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"{name} is not valid YAML: {error}") from None
    finally:
        loader.dispose()


def _examine(top: Any, name: str) -> None:
    """Check the keys, and the size of the document with its aliases expanded."""
    waiting, values, size = [top], 0, 0
    while waiting:
        node = waiting.pop()
        values += 1
        if isinstance(node.value, str):
            size += len(node.value)
        elif node.id == "mapping":
            _check_keys(node.value, name)
            waiting.extend(each for pair in node.value for each in pair)
        else:
            waiting.extend(node.value)
        if values > MAX_VALUES or size > MAX_BYTES:
            raise TooLarge(
                f"{name} has more than {MAX_VALUES} values or"
                f" {MAX_BYTES // 1024 // 1024} MiB with its aliases expanded",
                hint="Use fewer aliases, or create several DAGs.",
            )


def _check_keys(pairs: Iterable[tuple[Any, Any]], name: str) -> None:
    seen = set()
    for key, _ in pairs:
        place = f"{name}, line {key.start_mark.line + 1}"
        if key.tag == _MERGE:
            raise InvalidArgument(
                f"{place}: the merge key << is not supported",
                hint="Put shared options under defaults:",
            )
        if key.tag != _TEXT:
            raise InvalidArgument(
                f"{place}: {str(key.value)[:40]!r} is not text", hint="Put it in quotes."
            )
        if key.value in seen:
            raise InvalidArgument(
                f"{place}: {key.value!r} occurs twice in one object", hint="Remove one."
            )
        seen.add(key.value)


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__
