"""Read events, and list the kinds of events that the engine writes."""

import re
from pathlib import Path

from tests.drivers.engine import Driver
from treadle.db.install import files as sql_files


def read(driver: Driver, after: str | None, *kinds: str, limit: int = 500) -> tuple[list[int], str]:
    """The numbers of the next events, and the place that is reached."""
    rows = driver.rows(
        "select wanted, place, id from treadle.read_events(%s, %s::text[], %s)",
        *(after, list(kinds) or None, limit),
    )
    return [row[2] for row in rows if row[0]], rows[-1][1]


# Texts of this form that are not kinds: a channel and a table.
NO_KINDS = {"task_ready.", "treadle.tasks", "timeout_s."}
# The kind of incoming calls, which callers may emit.
FROM_OUTSIDE = {"webhook.received"}
_COMMENT = re.compile(r"--[^\n]*")
_KIND = re.compile(r"'([a-z_]+\.(?:[a-z_]+)?)'")


def own_kinds() -> set[str]:
    """The kinds, or prefixes of kinds, that the functions write."""
    files = Path(sql_files.sql_dir(), "functions").rglob("*.sql")
    texts = [_COMMENT.sub("", file.read_text()) for file in files]
    found = {kind for text in texts for kind in _KIND.findall(text)}
    return found - NO_KINDS - FROM_OUTSIDE
