"""Ages on the command line: 30d, 12h, 90m, 45s, a number of seconds, or forever."""

from __future__ import annotations

import re

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
