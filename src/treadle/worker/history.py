"""What was tried before, in words that an agent's prompt can take."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from treadle.models import Step

MAX_ERROR = 300


def tried(previous: Sequence[Mapping[str, Any]], steps: Iterable[Step]) -> str:
    """One line per attempt that failed, and one with the steps that need no repeat."""
    lines = [
        f"Attempt {past['attempt']} ({past['agent']}, {past['duration_s'] or 0:.0f} s) "
        f"{past['outcome']}: {past['class'] or past['reason']}: {_first_line(past['error'])}"
        for past in previous
    ]
    done = [step.name for step in steps]
    if lines and done:
        lines.append(f"Done and kept: {', '.join(done)}")
    return "\n".join(lines)


def _first_line(error: str | None) -> str:
    return (error or "no details").strip().split("\n", 1)[0][:MAX_ERROR]
