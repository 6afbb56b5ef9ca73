"""What was tried before, in words that an agent's prompt can take."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from treadle.models import Step

MAX_ERROR = 300


def tried(previous: Sequence[Mapping[str, Any]], steps: Iterable[Step]) -> str:
    """Some lines for each attempt that failed, and one with the steps that need no repeat."""
    lines = [line for past in previous for line in _attempt(past)]
    done = [step.name for step in steps]
    if lines and done:
        lines.append(f"Done and kept: {', '.join(done)}")
    return "\n".join(lines)


def _attempt(past: Mapping[str, Any]) -> Iterator[str]:
    """What came of it, what validators and the attempt itself had to say, what a person said."""
    yield (
        f"Attempt {past['attempt']} ({past['agent']}, {past['duration_s'] or 0:.0f} s) "
        f"{past['outcome']}: {past['class'] or past['reason']}: {_first_line(past['error'])}"
    )
    for message in past.get("feedback") or ():
        yield f"  refused because: {message}"
    for note in past.get("notes") or ():
        yield f"  note: {note}"
    review = past.get("review") or {}
    if review.get("note"):
        yield f"  {review['by']} says: {review['note']}"


def _first_line(error: str | None) -> str:
    return (error or "no details").strip().split("\n", 1)[0][:MAX_ERROR]
