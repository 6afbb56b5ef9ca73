"""What the worker has heard of gates that are closed, for handlers to see.

A hint: what may start is decided in the database, with every claim.
"""

import time
from collections.abc import Iterable
from datetime import datetime

import structlog
from pydantic_core import from_json

log = structlog.get_logger(__name__)
CHANNEL = "slowdown"


class Slowdowns:
    """Gates and until when they are closed."""

    def __init__(self) -> None:
        self._until: dict[str, tuple[datetime, float]] = {}

    def hear(self, payload: str) -> None:
        """Remember a notification `{"key": …, "until": …, "in_s": …}`."""
        try:
            told = from_json(payload)
            key, until = str(told["key"]), datetime.fromisoformat(told["until"])
            left_s = float(told["in_s"])
        except (ValueError, TypeError, KeyError) as error:
            log.warning("slowdown.not_understood", payload=payload[:200], error=str(error))
            return
        now = time.monotonic()
        self._until = {name: each for name, each in self._until.items() if each[1] > now}
        self._until[key] = until, now + left_s
        log.warning("slowdown", key=key, until=until.isoformat(), seconds=round(left_s, 1))

    def until(self, keys: Iterable[str]) -> datetime | None:
        """Until when the last of these gates is closed; None when all are open."""
        now = time.monotonic()
        found = [self._until[key] for key in keys if key in self._until]
        return max((until for until, ends in found if ends > now), default=None)
