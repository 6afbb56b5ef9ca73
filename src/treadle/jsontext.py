"""JSON for PostgreSQL: what producers send is checked, what handlers return is mended.

`encode` refuses what jsonb cannot hold and says where it is. `encode_safely` never refuses: an
answer that was paid for is stored with the odd character replaced.
"""

import math
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json

from treadle.errors import InvalidArgument, TooLarge

MAX_DEPTH = 64
# Bytes that can only stand in the text when a value needs a closer look.
_SUSPECTS = (b"\\u0000", b"NaN", b"Infinity")


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
    if any(suspect in text for suspect in _SUSPECTS) or len(text) > 2 * MAX_DEPTH:
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
        if not any(suspect in text for suspect in _SUSPECTS):
            return text
        return to_json(_mended(value, 0), fallback=repr)
    except (PydanticSerializationError, ValueError, RecursionError):
        return to_json(_mended(value, 0), fallback=repr)


def decode(text: bytes | str) -> Any:
    """Read JSON that came from the database."""
    return from_json(text)


def clean_text(text: str, limit: int = 20_000) -> str:
    """Text that PostgreSQL takes: no NUL, no lone surrogates, not too long."""
    cleaned = text.replace("\x00", "\u2400")
    cleaned = cleaned.encode("utf-8", "replace").decode("utf-8")
    if len(cleaned) > limit:
        half = limit // 2
        cleaned = (
            f"{cleaned[:half]}\n… {len(cleaned) - limit} characters left out …\n{cleaned[-half:]}"
        )
    return cleaned


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
            _examine(item, f"{path}.{key}", depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for index, item in enumerate(value):
            _examine(item, f"{path}[{index}]", depth + 1)
    if problem:
        raise InvalidArgument(
            f"{path} {problem}", hint="Remove it or replace it before you enqueue.", argument=path
        )


def _mended(value: object, depth: int) -> object:
    if isinstance(value, str):
        return clean_text(value, limit=len(value) + 1)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if depth >= MAX_DEPTH:
        return clean_text(repr(type(value)), 200) if isinstance(value, (dict, list)) else value
    if isinstance(value, dict):
        return {clean_text(str(key)): _mended(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_mended(item, depth + 1) for item in value]
    return value
