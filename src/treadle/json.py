"""JSON for PostgreSQL: what producers send is checked, what handlers return is mended.

`encode` refuses what jsonb cannot hold and says where it is. `encode_safely` never refuses: an
answer that was paid for is stored with the odd character replaced.
"""

import json
import math
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from treadle.errors import InvalidArgument, TooLarge
from treadle.masking import excerpt_name

MAX_DEPTH = 64


def encode(value: object, *, name: str = "spec", max_bytes: int | None = None) -> bytes:
    """Turn a value into JSON that jsonb takes; raise InvalidArgument with the path if it cannot."""
    try:
        text = to_json(value)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        _examine(value, name)
        raise InvalidArgument(
            f"{name} cannot be written as JSON: {error}",
            hint="Use strings, numbers, booleans, lists and dicts.",
            argument=name,
        ) from None
    if _is_suspect(text) or text.count(b"[") + text.count(b"{") > MAX_DEPTH:
        _examine(value, name)
    if max_bytes is not None and len(text) > max_bytes:
        raise TooLarge(
            f"{name} has {len(text)} bytes, {max_bytes} are allowed",
            hint="Store the data elsewhere and pass a reference.",
            argument=name,
            bytes=len(text),
            max_bytes=max_bytes,
        )
    return text


def encode_safely(value: object) -> bytes:
    """Turn any value into JSON that jsonb takes; what it cannot hold is replaced."""
    try:
        text = to_json(value, fallback=repr)
        if not _is_suspect(text):
            return text
    except (PydanticSerializationError, ValueError, RecursionError):
        pass
    return to_json(_mended(value, 0, frozenset()))


def decode(text: bytes | str) -> Any:
    """Read JSON that came from the database, whatever it is.

    A number too long for an int becomes a float; what is nested too deep to read stays text.
    """
    try:
        return from_json(text)
    except ValueError:
        pass
    try:
        return json.loads(text, parse_int=_number)
    except RecursionError:
        return text if isinstance(text, str) else bytes(text).decode()


def clean_text(text: str, limit: int = 20_000) -> str:
    """Text that PostgreSQL takes: no NUL, no lone surrogates, not too long."""
    cleaned = text.replace("\x00", "\u2400")
    cleaned = cleaned.encode("utf-8", "replace").decode("utf-8")
    if len(cleaned) > limit:
        # With room for the line between: the end is what is read first, and is not cut off later.
        half = limit // 2 - 20
        gone = len(cleaned) - 2 * half
        cleaned = f"{cleaned[:half]}\n… {gone} characters left out …\n{cleaned[-half:]}"
    return cleaned


def _is_suspect(text: bytes) -> bool:
    """Whether the text may hold what jsonb refuses, so that a closer look is worth it."""
    return b"\\u0000" in text or b"NaN" in text or b"Infinity" in text


def _examine(value: object, path: str, depth: int = 0) -> None:
    """Raise for the first thing in the value that jsonb cannot hold."""
    problem: str | None = None
    if depth > MAX_DEPTH:
        raise InvalidArgument(
            f"{path.split('.')[0]} is nested more than {MAX_DEPTH} levels deep",
            hint="Flatten it, or pass the deep part as text.",
            argument=path.split(".")[0],
        )
    if isinstance(value, str):
        if "\x00" in value:
            problem = "holds a NUL character, which PostgreSQL cannot store"
        elif any("\ud800" <= char <= "\udfff" for char in value):
            problem = "holds half of a surrogate pair, which is not text"
    elif isinstance(value, float) and not math.isfinite(value):
        problem = f"is {value}, which JSON does not have"
    elif isinstance(value, dict):
        for key, item in value.items():
            _examine(key, f"{path} key", depth)
            _examine(item, f"{path}.{excerpt_name(str(key))}", depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for index, item in enumerate(value):
            _examine(item, f"{path}[{index}]", depth + 1)
    if problem:
        raise InvalidArgument(
            f"{path} {problem}", hint="Remove it or replace it before you enqueue.", argument=path
        )


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _mended(value: object, depth: int, inside: frozenset[int]) -> object:
    """The value in plain types; `inside` are the containers around it: one may hold itself."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (bytes, bytearray)):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return clean_text(value, limit=len(value) + 1)
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        if depth >= MAX_DEPTH or id(value) in inside:
            return f"<{type(value).__name__}>"
        inside |= {id(value)}
        if isinstance(value, dict):
            return {
                clean_text(str(key)): _mended(item, depth + 1, inside)
                for key, item in value.items()
            }
        return [_mended(item, depth + 1, inside) for item in value]
    try:
        plain = to_jsonable_python(value, fallback=repr)
    except (PydanticSerializationError, ValueError, RecursionError):
        plain = repr(value)
    return _mended(plain, depth, inside)
