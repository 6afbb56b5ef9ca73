"""Options that several commands share, and options made from the fields of a task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Annotated, Any, TypeVar, get_origin

import typer

from treadle.cli import common
from treadle.errors import InvalidArgument
from treadle.fields import After, Field, Inputs, Kind

T = TypeVar("T")
_TYPES: dict[Kind, Any] = {"integer": int, "number": float, "names": list[str], "boolean": bool}
_HINTS: dict[Kind, str] = {
    "names": " May be repeated.",
    "time": " 45m, 2h, 1d, or a time with its zone.",
    "json": " JSON, @file or -.",
}


def with_options(
    **sources: Callable[..., Any],
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Replace a parameter of a command by the options of a function, and pass what it returns.

    Several commands share their filters or settings in this way.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        own = inspect.signature(function, eval_str=True)
        shared = {
            name: inspect.signature(source, eval_str=True).parameters
            for name, source in sources.items()
        }

        @wraps(function)
        def run(**given: Any) -> T:
            for name, source in sources.items():
                given[name] = source(**{each: given.pop(each) for each in shared[name]})
            return function(**given)

        parameters = [
            each.replace(kind=each.KEYWORD_ONLY)
            for parameter in own.parameters.values()
            for each in shared.get(parameter.name, {parameter.name: parameter}).values()
        ]
        run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def field_options(fields: Iterable[Field]) -> Callable[..., dict[str, Any]]:
    """A function for `with_options`: it returns the fields that were given, by name."""
    by_parameter = {_flag(field)[2:].replace("-", "_"): field for field in fields}

    def read(**given: Any) -> dict[str, Any]:
        return {
            field.name: _value(field, value)
            for parameter, field in by_parameter.items()
            # Not `if value`: 0 is a value.
            if (value := given[parameter]) is not None and value is not False and value != []
        }

    parameters = [
        inspect.Parameter(
            parameter,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if field.kind == "boolean" else None,
            annotation=_annotation(field),
        )
        for parameter, field in by_parameter.items()
    ]
    read.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return read


def _flag(field: Field) -> str:
    return field.option or f"--{field.name.replace('_', '-')}"


def _annotation(field: Field) -> Any:
    hint = _TYPES.get(field.kind, str)
    hint_text = f" One of {', '.join(field.words)}." if field.words else _HINTS.get(field.kind, "")
    if field.type in _METAVARS:
        hint, hint_text = list[str], _HINTS["names"]
    option = typer.Option(_flag(field), metavar=_metavar(field), help=field.help + hint_text)
    return Annotated[hint if hint is bool else hint | None, option]


# Fields that refer to other tasks: one option for each reference.
_METAVARS: dict[Any, str] = {After: "ID", Inputs: "NAME=REFERENCE"}


def _metavar(field: Field) -> str | None:
    if field.type in _METAVARS:
        return _METAVARS[field.type]
    if field.kind == "number":
        units = {"usd": "USD", "s": "SECONDS"}
        return units.get(field.wire.rpartition("_")[2], "N")
    if field.name.endswith("key"):
        return "KEY"
    names: dict[Kind, str] = {
        "integer": "N",
        "names": "NAME",
        "time": "TIME",
        "json": "JSON",
        "word": "WORD",
        "text": "TEXT",
    }
    return names.get(field.kind)


def _value(field: Field, given: Any) -> Any:
    if field.type == Inputs:
        return _inputs(given)
    if field.type == After:
        return given
    if field.kind == "time":
        return common.parse_time(given, field.name)
    if field.kind == "json":
        read = common.json_value if get_origin(field.type) is Sequence else common.json_argument
        return read(given, field.name)
    return given


def _inputs(pairs: list[str]) -> dict[str, str]:
    """The inputs of a task that are given with --input."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, reference = pair.partition("=")
        if not name or not equals or name in found:
            raise InvalidArgument(
                f"--input {name} is given twice"
                if name in found
                else f"--input {pair!r} is not NAME=REFERENCE",
                hint="For example: --input brief=task:9f3a21c4:output",
                argument="input",
            )
        found[name] = reference
    return found
