"""Values for the fields of a task: examples, the bounds, and values beyond the bounds."""

from collections.abc import Iterator
from typing import Any

from treadle.fields import Field, settable_fields, uses_of

FIELDS = settable_fields()
BOUNDED = [field for field in FIELDS if field.high is not None or field.words]
# Values of fields that must name an existing object.
LETTERS = {"queue": "q", "type": "t", "project": "p"}
# The objects that must exist before a task can name them.
SEEDS = """
select treadle.define_queue(name) from unnest(array['default', 'q', repeat('q', 48)]) as name;
select treadle.define_type(name) from unnest(array['code', 't', repeat('t', 100)]) as name;
select treadle.define_project(name) from unnest(array['p', repeat('p', 200)]) as name;
select treadle.define_gate('g' || number) from generate_series(0, 9) as number;
"""
EXAMPLES: dict[str, Any] = {
    "spec": {"n": 1},
    "type": "t",
    "queue": "q",
    "priority": 7,
    "max_attempts": 4,
    "timeout_s": 2.5,
    "ageing_rate": 0.25,
    "retry": {"strategy": "fixed", "initial_delay_s": 3},
    "gates": ["g0"],
    "max_cost_usd": 1.5,
    "max_tokens": 2**53,
    "on_budget": "fail",
    "validation": [{"validator": "regex", "pattern": "^ok"}],
    "report": "required",
    "output_type": "markdown",
    "models": ["large", "small"],
    "fallback_models": ["other"],
    "run_at": "2026-01-31T12:00:00+00:00",
    "deadline_at": "2099-01-31T12:00:00+00:00",
    "capabilities": ["git"],
    "assigned_agent": "a",
    "consumer": "reader",
    "title": "A title",
    "tags": ["x", "y"],
    "source": "tests",
    "source_job": "nightly",
    "external_ref": "ticket-7",
    "notes": "Some notes.",
    "concurrency_key": "tenant-1",
    "idempotency_key": "key-1",
    "created_by": "ada",
}
# The new value of a changed field.
CHANGES: dict[str, Any] = {
    "spec": {"n": 2},
    "type": "code",
    "queue": "default",
    "priority": 8,
    "max_attempts": 6,
    "timeout_s": 3.5,
    "ageing_rate": 0.5,
    "retry": {"strategy": "fixed", "initial_delay_s": 4},
    "max_cost_usd": 2.5,
    "max_tokens": 8,
    "on_budget": "ask",
    "validation": [{"validator": "regex", "pattern": "^yes"}],
    "report": "optional",
    "output_type": "json",
    "models": ["medium"],
    "fallback_models": ["small"],
    "capabilities": ["git", "gpu"],
    "assigned_agent": "b",
    "title": "Another title",
}


def usable(use: str) -> list[Field]:
    """The fields that can be set for a use."""
    return [field for field in FIELDS if use in uses_of(field)]


def allowed(field: Field) -> Iterator[Any]:
    """The bounds of a field."""
    if field.words:
        yield from field.words
    elif field.kind in ("integer", "number"):
        yield from (field.low, field.high)
    elif field.kind == "text":
        yield from (text(field, count) for count in (field.low, field.high))
    else:
        yield from ([], entries(field, int(field.high or 0)))


def refused(field: Field) -> Iterator[Any]:
    """Values one step beyond the bounds."""
    assert field.words or (field.low is not None and field.high is not None)
    if field.words:
        yield "other"
        return
    low, high = field.low or 0, field.high or 0
    if field.kind == "integer":
        yield from (low - 1, high + 1)
    elif field.kind == "number":
        yield from (low - 0.001, high + 0.1)
    elif field.kind == "text":
        yield text(field, high + 1)
        if low:
            yield text(field, low - 1)
    else:
        yield entries(field, int(high) + 1)
        if field.kind == "names":
            yield from ([""], ["é" * 201])


def text(field: Field, count: float | None) -> str:
    """Letters of two bytes: texts are limited in characters."""
    return LETTERS.get(field.wire, "é") * int(count or 0)


def entries(field: Field, count: int) -> list[Any]:
    if field.kind == "json":
        return [{"validator": "none"}] * count
    return [f"g{number}" for number in range(count)]


def beside(field: Field) -> dict[str, Any]:
    """Options that a field requires."""
    return {"concurrency_key": "k"} if field.name == "concurrency_limit" else {}


def cases(values: Any) -> list[tuple[Field, Any]]:
    """Each bounded field with each of these values."""
    return [(field, value) for field in BOUNDED for value in values(field)]


def label(value: Any) -> str:
    """A short name of a case."""
    if isinstance(value, Field):
        return value.wire
    shown = repr(value)
    return shown if len(shown) <= 20 else f"{type(value).__name__}-of-{len(value)}"
