"""JSON for PostgreSQL.

`encode` is for the input of producers: it rejects values that jsonb cannot store, with their path.
`encode_safely` is for the output of handlers, which may be expensive: it replaces such values.
"""

import json
import math
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from treadle.errors import InvalidArgument, TooLarge
from treadle.masking import excerpt_name

MAX_DEPTH = 64


def encode(value: object, *, name: str = "spec", max_bytes: int | None = None) -> bytes:
    """Encode a value as JSON for jsonb; raise InvalidArgument with the path if it is invalid."""
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
    """Encode any value as JSON for jsonb; replace what jsonb cannot store."""
    try:
        text = to_json(value, fallback=repr)
        if not _is_suspect(text):
            return text
    except (PydanticSerializationError, ValueError, RecursionError):
        pass
    return to_json(_sanitized(value, 0, frozenset()))


def decode(text: bytes | str) -> Any:
    """Decode any JSON from the database.

    An integer that is too long becomes a float; a document that is nested too deeply stays text.
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
    """Return a text without NUL and lone surrogates, shortened to `limit` characters."""
    cleaned = text.replace("\x00", "\u2400")
    cleaned = cleaned.encode("utf-8", "replace").decode("utf-8")
    if len(cleaned) > limit:
        # Keep both ends, and leave room for the line between them.
        half = limit // 2 - 20
        gone = len(cleaned) - 2 * half
        cleaned = f"{cleaned[:half]}\n… {gone} characters left out …\n{cleaned[-half:]}"
    return cleaned


def _is_suspect(text: bytes) -> bool:
    """Return whether the text may contain what jsonb rejects, so that it must be examined."""
    return b"\\u0000" in text or b"NaN" in text or b"Infinity" in text


def _examine(value: object, path: str, depth: int = 0) -> None:
    """Raise InvalidArgument for the first part of the value that jsonb cannot store."""
    problem: str | None = None
    if depth > MAX_DEPTH:
        raise InvalidArgument(
            f"{path.split('.')[0]} is nested more than {MAX_DEPTH} levels deep",
            hint="Flatten it, or pass the deep part as text.",
            argument=path.split(".")[0],
        )
    if isinstance(value, str):
        if "\x00" in value:
            problem = "contains a NUL character, which PostgreSQL cannot store"
        elif any("\ud800" <= char <= "\udfff" for char in value):
            problem = "contains a lone surrogate, which is not valid text"
    elif isinstance(value, float) and not math.isfinite(value):
        problem = f"is {value}, which JSON does not support"
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


def _sanitized(value: object, depth: int, parents: frozenset[int]) -> object:
    """Convert a value to JSON types; `parents` has the ids of the containers around it."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (bytes, bytearray)):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return clean_text(value, limit=len(value) + 1)
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        if depth >= MAX_DEPTH or id(value) in parents:
            return f"<{type(value).__name__}>"
        parents |= {id(value)}
        if isinstance(value, dict):
            return {
                clean_text(str(key)): _sanitized(item, depth + 1, parents)
                for key, item in value.items()
            }
        return [_sanitized(item, depth + 1, parents) for item in value]
    try:
        plain = to_jsonable_python(value, fallback=repr)
    except (PydanticSerializationError, ValueError, RecursionError):
        plain = repr(value)
    return _sanitized(plain, depth, parents)
