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
    return encode_output(value)[0]


def encode_output(value: object) -> tuple[bytes, list[str]]:
    """Encode any value as JSON for jsonb; also return which parts were replaced.

    Values with a usual form in JSON, such as dates, sets and models, are not replaced.
    """
    replaced: list[str] = []

    def to_repr(part: object) -> str:
        replaced.append(f"{type(part).__name__} became text")
        return repr(part)

    try:
        text = to_json(value, fallback=to_repr)
        if not _is_suspect(text):
            return text, replaced
    except (PydanticSerializationError, ValueError, RecursionError):
        pass
    replaced = []
    return to_json(_sanitized(value, 0, frozenset(), "output", replaced)), replaced


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


def _sanitized(
    value: object, depth: int, parents: frozenset[int], path: str, replaced: list[str]
) -> object:
    """Convert a value to JSON types; `parents` has the ids of the containers around it."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        replaced.append(f"{path}: {value} became null")
        return None
    if isinstance(value, (bytes, bytearray)):
        value = value.decode("utf-8", "replace")
        if "\ufffd" in value:
            replaced.append(f"{path}: bytes that are not UTF-8")
    if isinstance(value, str):
        cleaned = clean_text(value, limit=len(value) + 1)
        if cleaned != value:
            replaced.append(f"{path}: characters that PostgreSQL cannot store")
        return cleaned
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        if depth >= MAX_DEPTH or id(value) in parents:
            problem = "contains itself" if id(value) in parents else "is nested too deeply"
            replaced.append(f"{excerpt_name(path)}: {type(value).__name__} {problem}")
            return f"<{type(value).__name__}>"
        parents |= {id(value)}
        if isinstance(value, dict):
            found = {}
            for key, item in value.items():
                name, inner = clean_text(str(key)), f"{path}.{excerpt_name(str(key))}"
                if name != str(key):
                    replaced.append(f"{inner}: characters that PostgreSQL cannot store")
                found[name] = _sanitized(item, depth + 1, parents, inner, replaced)
            return found
        return [
            _sanitized(item, depth + 1, parents, f"{path}[{number}]", replaced)
            for number, item in enumerate(value)
        ]

    def to_repr(part: object) -> str:
        replaced.append(f"{path}: {type(part).__name__} became text")
        return repr(part)

    try:
        plain = to_jsonable_python(value, fallback=to_repr)
    except (PydanticSerializationError, ValueError, RecursionError):
        plain = to_repr(value)
    return _sanitized(plain, depth, parents, path, replaced)
