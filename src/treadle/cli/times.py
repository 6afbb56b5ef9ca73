"""Times on the command line: 30d, 12h, 90m, 45s; ages may last forever, moments have a zone."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from treadle.errors import InvalidArgument

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
FOREVER = "forever"


def parse(text: str, name: str) -> float | None:
    """Seconds; None is for ever."""
    if text == FOREVER:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw]?)", text.strip())
    if found is None:
        raise InvalidArgument(
            f"{name} is not an age: {text!r}",
            hint="Write 30d, 12h, 90m, 45s or a number of seconds; forever keeps everything.",
            argument=name,
        )
    return float(found[1]) * UNITS[found[2]]


def moment(text: str, name: str) -> datetime | timedelta:
    """A moment with its zone, or a time from now or before: 90s, 45m, 2h, 1d, 1w."""
    if found := re.fullmatch(r"(\d{1,6}(?:\.\d+)?)([smhdw])", text):
        return timedelta(seconds=float(found[1]) * UNITS[found[2]])
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise InvalidArgument(
            f"{name} {text!r} is no time",
            hint="Say 45m, 2h or 1d, or a moment with its zone: 2027-01-31T17:00+01:00",
            argument=name,
        )
    return at
