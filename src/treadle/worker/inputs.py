"""What a step was called with: a hash to compare, and a line for people.

The hash is the sha256 of canonical JSON. What is not JSON, such as a client,
counts as its type.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from treadle.json import MAX_DEPTH, clean_text

SHOWN = 500
_WRITABLE = (UUID, date, time, timedelta, Decimal, PurePath)


class Input(NamedTuple):
    """The hash of an input and the beginning of it; both None when it is not compared."""

    hash: str | None
    shown: str | None


def of_call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Input:
    """The input that the arguments of a call make."""
    plain = {"args": [_plain(each, 0) for each in args], "kwargs": _plain(kwargs, 0)}
    words = [
        *map(_canonical, plain["args"]),
        *(f"{name}={_canonical(value)}" for name, value in sorted(plain["kwargs"].items())),
    ]
    return Input(_hash(_canonical(plain)), clean_text(", ".join(words)[:SHOWN]))


def of_key(key: object) -> Input:
    """The input that a key stands for; nothing for None."""
    if key is None:
        return Input(None, None)
    text = _canonical(_plain(key, 0))
    return Input(_hash(text), clean_text(text[:SHOWN]))


def _canonical(plain: object) -> str:
    return json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _plain(value: Any, depth: int) -> Any:
    """The value in types that JSON has."""
    if value is None or (isinstance(value, (bool, int, float)) and not isinstance(value, Enum)):
        return value
    if depth > MAX_DEPTH:
        return _type(value)
    if isinstance(value, Enum):
        return _plain(value.value, depth + 1)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": hashlib.sha256(value).hexdigest()}
    if isinstance(value, _WRITABLE):
        return to_jsonable_python(value)
    if isinstance(value, BaseModel):
        return _plain(dict(value), depth + 1)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value)]
        return _plain({name: getattr(value, name) for name in names}, depth + 1)
    if isinstance(value, Mapping):
        return {str(_plain(key, depth + 1)): _plain(value[key], depth + 1) for key in value}
    if isinstance(value, (list, tuple)):
        return [_plain(each, depth + 1) for each in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(each, depth + 1) for each in value), key=_canonical)
    return _type(value)


def _type(value: object) -> str:
    return f"<{type(value).__name__}>"
