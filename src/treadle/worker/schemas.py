"""Check outputs against JSON schemas that came with a task, so that no schema can stop the worker.

The checker holds the interpreter while it works, and a schema of a few lines can ask for a check
that never ends: definitions that refer to each other twice. So a schema is weighed first. A light
one, for an output of its size, is checked here in microseconds; any other in a child that is
killed when its time is up.
"""

import json
import math
import re
import sys
from functools import lru_cache
from importlib import import_module
from typing import Any

from pydantic_core import from_json

from treadle.errors import extra
from treadle.settings import bare_environment
from treadle.worker.children import run_child
from treadle.worker.schema_child import compiled, messages_of, shortened

# Weight of the schema times bytes of the output: some hundredths of a second.
LIGHT = 20_000_000
LEAST_BYTES = 100
CHILD = (sys.executable, "-I", "-m", "treadle.worker.schema_child")
CHILD_OUTPUT = 1024 * 1024
# Their weight depends on more than the size of the schema.
_BOUNDLESS = frozenset(
    {"$dynamicRef", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems", "$id", "$anchor"}
)


class BadSchema(ValueError):
    """The schema cannot be used; the text says why."""


class SchemaCheck:
    """One schema, ready to be used."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.weight = weigh(json.loads(text))
        self._compiled: Any = None
        if self.weight * LEAST_BYTES <= LIGHT:
            try:
                self._compiled = compiled(json.loads(text))
            except ValueError as error:
                raise BadSchema(shortened(str(error).partition("\n\n")[0])) from None

    async def messages(self, output: bytes) -> list[str]:
        """What is wrong with an output; empty when nothing is."""
        output = output or b"null"
        if self.weight * (LEAST_BYTES + len(output)) <= LIGHT:
            return messages_of(self._compiled, from_json(output))
        finished = await run_child(
            CHILD,
            stdin=b'{"schema":%s,"output":%s}' % (self.text.encode(), output),
            output_limit=CHILD_OUTPUT,
            env=bare_environment(),
        )
        if finished.code != 0:
            said = finished.output[-500:].decode(errors="replace")
            raise RuntimeError(f"the check ended with {finished.code}: {said}")
        answer = from_json(finished.output)
        if "problem" in answer:
            raise BadSchema(answer["problem"])
        found: list[str] = answer["messages"]
        return found


def schema_check(schema: Any) -> SchemaCheck:
    """The check of a schema; made once for each text of one."""
    with extra("schema", "the validators json_schema and regex need jsonschema-rs"):
        import_module("jsonschema_rs")
    return _made(json.dumps(schema, sort_keys=True))


@lru_cache(maxsize=256)
def _made(text: str) -> SchemaCheck:
    return SchemaCheck(text)


def weigh(schema: Any) -> float:
    """How many parts a schema has with all references written out; infinite when in doubt."""
    try:
        return _weight(schema, schema, {})
    except RecursionError:
        return math.inf


def _weight(part: Any, root: Any, known: dict[str, float]) -> float:
    if isinstance(part, list):
        return 1 + sum(_weight(each, root, known) for each in part)
    if not isinstance(part, dict):
        return 1
    total = 1.0
    for key, value in part.items():
        if key in _BOUNDLESS:
            return math.inf
        if key == "$ref" and isinstance(value, str):
            total += _referred(value, root, known)
        elif key == "pattern" and isinstance(value, str):
            total += pattern_weight(value)
        elif key == "patternProperties" and isinstance(value, dict):
            total += sum(pattern_weight(name) for name in value)
        total += _weight(value, root, known)
    return total


def _referred(reference: str, root: Any, known: dict[str, float]) -> float:
    """The weight of a definition; one that refers to itself has no end."""
    if reference not in known:
        known[reference] = math.inf
        found: Any = root
        for step in reference.removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            found = found.get(step) if isinstance(found, dict) else None
        if not reference.startswith("#/") or found is None:
            return math.inf
        known[reference] = _weight(found, root, known)
    return known[reference]


def pattern_weight(pattern: str) -> float:
    """The worst that a linear engine does for each character of a text."""
    counted = re.findall(r"\{(\d*),?(\d*)\}", pattern)
    times = math.prod(max(1.0, float(low[:9] or 0), float(high[:9] or 0)) for low, high in counted)
    return 4 * len(pattern) * times
