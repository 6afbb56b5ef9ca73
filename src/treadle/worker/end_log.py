"""Log how attempts end: each one, or a count per second while there are many.

A worker may complete 20,000 tasks a second, and a line for each would slow it down. So it writes at
most `MAX_LINES` lines in a second, and then one line with the number of the others by type.
"""

import time
from collections import Counter
from typing import Any

import structlog

from treadle.models import Claim, FailedAttempt, Failure

log = structlog.get_logger("treadle.worker")
MAX_LINES = 100
SECOND_S = 1.0
# The claim, the output, the run time in milliseconds, and the decision report.
Done = tuple[Claim, bytes, int, bytes | None]
# The claim, the failure and the run time in milliseconds.
Failed = tuple[Claim, Failure, int]


class EndLog:
    """Writes a line for each ended attempt, up to a limit, and counts the others."""

    def __init__(self) -> None:
        self._lines_left = MAX_LINES
        self._until = 0.0
        self._since = 0.0
        self._counts: dict[str, Counter[str]] = {}

    def completed(self, ended: list[Done]) -> None:
        """Log completed tasks."""
        shown = self._take(len(ended))
        for claim, _, run_ms, _ in ended[:shown]:
            log.info("task.completed", **_fields(claim, run_ms))
        if shown < len(ended):
            self._count("tasks.completed", [done[0].type for done in ended[shown:]])

    def failed(self, ended: list[tuple[Failed, FailedAttempt]]) -> None:
        """Log failed attempts with their errors and what becomes of their tasks."""
        shown = self._take(len(ended))
        for (claim, failure, run_ms), attempt in ended[:shown]:
            fields = _fields(claim, run_ms)
            error, _, trace = failure.error.partition("\n")
            fields["outcome"] = attempt.verdict
            fields["failure_class"] = attempt.failure_class
            fields["error"] = error[:500]
            if attempt.verdict == "cancelled":
                log.info("task.cancelled", **fields)
                continue
            if trace.strip():
                fields["exception"] = trace.strip()
            # Nobody retries a dead letter but people.
            write = log.error if attempt.verdict == "dead_lettered" else log.warning
            write("task.failed", **fields)
        if shown < len(ended):
            self._count("tasks.failed", [failed[0].type for failed, _ in ended[shown:]])

    @property
    def wait_s(self) -> float | None:
        """The seconds until counts are to be written; None if there are none."""
        return max(0.0, self._until - time.monotonic()) if self._counts else None

    def flush(self) -> None:
        """Write the counts."""
        counts, self._counts = self._counts, {}
        for event, types in counts.items():
            write = log.info if event == "tasks.completed" else log.warning
            seconds = round(time.monotonic() - self._since, 3)
            write(event, count=types.total(), seconds=seconds, types=dict(types))

    def _take(self, wanted: int) -> int:
        """Return how many lines may be written now."""
        now = time.monotonic()
        if now >= self._until:
            self.flush()
            self._lines_left, self._since, self._until = MAX_LINES, now, now + SECOND_S
        taken = min(wanted, self._lines_left)
        self._lines_left -= taken
        return taken

    def _count(self, event: str, types: list[str]) -> None:
        self._counts.setdefault(event, Counter()).update(types)


def _fields(claim: Claim, run_ms: int) -> dict[str, Any]:
    return {
        "type": claim.type,
        "task_id": str(claim.id),
        "attempt": claim.attempt,
        "duration_s": run_ms / 1000,
    }
