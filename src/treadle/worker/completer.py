"""Send results in batches: results that arrive during one flush are sent with the next.

This adds no delay at low load and makes large batches at high load. While the database is
unreachable, results are kept and sent again: every call is safe to repeat.
"""

import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import structlog

from treadle.db.database import Database
from treadle.errors import TreadleError, Unavailable
from treadle.models import Claim, FailedAttempt, Failure
from treadle.worker.outcomes import report_missing

log = structlog.get_logger(__name__)
ends = structlog.get_logger("treadle.worker")
MAX_BATCH = 1000
# A worker may complete 20,000 tasks a second, and a log line for each would slow it down. So it
# writes at most this many lines in a second, and then one line with the number of the others.
MAX_LINES = 100
SECOND_S = 1.0
# The claim, the output, the run time in milliseconds, and the decision report.
Done = tuple[Claim, bytes, int, bytes | None]
# The claim, the failure and the run time in milliseconds.
Failed = tuple[Claim, Failure, int]
T = TypeVar("T")


class EndLog:
    """Writes a line for each ended attempt, up to a limit, and counts the others."""

    def __init__(self) -> None:
        self._lines_left = MAX_LINES
        self._until = 0.0
        self._since = 0.0
        self._counts: dict[str, Counter[str]] = {}
        self._counted = anyio.Event()

    async def run(self) -> None:
        """Write the counts of each second when it is over, until cancelled."""
        try:
            while True:
                await self._counted.wait()
                await anyio.sleep(max(0.0, self._until - time.monotonic()))
                self.flush()
        finally:
            self.flush()

    def completed(self, ended: list[Done]) -> None:
        """Log completed tasks."""
        shown = self._take(len(ended))
        for claim, _, run_ms, _ in ended[:shown]:
            ends.info("task.completed", **_fields(claim, run_ms))
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
                ends.info("task.cancelled", **fields)
                continue
            if trace.strip():
                fields["exception"] = trace.strip()
            # Nobody retries a dead letter but people.
            write = ends.error if attempt.verdict == "dead_lettered" else ends.warning
            write("task.failed", **fields)
        if shown < len(ended):
            self._count("tasks.failed", [failed[0].type for failed, _ in ended[shown:]])

    def flush(self) -> None:
        """Write the counts."""
        counts, self._counts = self._counts, {}
        if counts:
            self._counted = anyio.Event()
        for event, types in counts.items():
            write = ends.info if event == "tasks.completed" else ends.warning
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
        self._counted.set()


def _fields(claim: Claim, run_ms: int) -> dict[str, Any]:
    return {
        "type": claim.type,
        "task_id": str(claim.id),
        "attempt": claim.attempt,
        "duration_s": run_ms / 1000,
    }


class Completer:
    """Collects completions, failures and releases, and flushes them."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._done: list[Done] = []
        self._failed: list[Failed] = []
        self._released: list[Claim] = []
        self._progress: list[tuple[Claim, bytes]] = []
        self._work = anyio.Event()
        self._flushing = False
        self._idle = anyio.Event()
        self._log = EndLog()
        self.completed = 0
        self.failed = 0

    def complete(
        self, claim: Claim, output: bytes, run_ms: int, report: bytes | None = None
    ) -> None:
        self._done.append((claim, output, run_ms, report))
        self._work.set()

    def completed_by_handler(self, claim: Claim, run_ms: int) -> None:
        """Log a task that its handler has completed in a transaction of its own."""
        self._log.completed([(claim, b"", run_ms, None)])

    def fail(self, claim: Claim, failure: Failure, run_ms: int) -> None:
        self._failed.append((claim, failure, run_ms))
        self._work.set()

    def release(self, claim: Claim) -> None:
        self._released.append(claim)
        self._work.set()

    def store_progress(self, claim: Claim, progress: bytes) -> None:
        """Store what a task reached, before the result of the same task."""
        self._progress.append((claim, progress))

    @property
    def waiting(self) -> int:
        """The number of results that the database has not confirmed."""
        return len(self._done) + len(self._failed) + len(self._released) + self._flushing

    async def drained(self) -> None:
        """Wait until every result so far is confirmed."""
        while self.waiting:
            self._idle = anyio.Event()
            await self._idle.wait()

    async def run(self) -> None:
        """Flush results until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._log.run)
            while True:
                if not (self._done or self._failed or self._released):
                    self._idle.set()
                    self._work = anyio.Event()
                    await self._work.wait()
                await self._flush()

    async def _flush(self) -> None:
        self._flushing = True
        done, self._done = self._done[:MAX_BATCH], self._done[MAX_BATCH:]
        failed, self._failed = self._failed[:MAX_BATCH], self._failed[MAX_BATCH:]
        released, self._released = self._released, []
        if self._progress:
            progress, self._progress = self._progress, []
            await self._send(progress, self._store_progress)
        if done:
            await self._send(done, self._complete)
            self.completed += len(done)
        if failed:
            await self._send(failed, self._fail)
            self.failed += len(failed)
        if released:
            await self._send(released, self._release)
        self._flushing = False

    async def _send(self, batch: list[T], send: Callable[[list[T]], Awaitable[None]]) -> None:
        """Send a batch until it succeeds; split it to find results that are rejected."""
        delay = 0.05
        while True:
            try:
                await send(batch)
                return
            except Unavailable as error:
                log.warning("completer.flush_failed", results=len(batch), error=str(error))
                await anyio.sleep(random.uniform(delay / 2, delay))
                delay = min(delay * 2, 5.0)
            except TreadleError as error:
                if len(batch) == 1:
                    self._rejected(batch[0], error)
                    return
                half = len(batch) // 2
                await self._send(batch[:half], send)
                batch = batch[half:]

    def _rejected(self, result: Any, error: Exception) -> None:
        """Fail the attempt if its output cannot be stored; the reaper handles other rejections."""
        claim = result[0] if isinstance(result, tuple) else result
        # Do not log the claim itself: it contains the token and the payload.
        log.error(
            "completer.result_rejected", task_id=str(claim.id), type=claim.type, error=str(error)
        )
        if isinstance(result, tuple) and len(result) == 4:
            failure = Failure(f"the output cannot be stored: {error}", "invalid_output")
            self.fail(claim, failure, result[2])

    async def _complete(self, batch: list[Done]) -> None:
        verdicts = await self._db.claims.complete(
            [(done[0].id, done[0].token) for done in batch],
            [done[1] or None for done in batch],
            [done[2] for done in batch],
            [done[3] for done in batch],
        )
        if not verdicts:
            self._log.completed(batch)
            return
        for done in batch:
            match verdicts.get(done[0].id):
                case "stale":
                    _report_stale(done[0])
                case "report_required":
                    self.completed -= 1
                    self.fail(done[0], report_missing(), done[2])
                case _:
                    self._log.completed([done])

    async def _fail(self, batch: list[Failed]) -> None:
        verdicts = await self._db.claims.fail(
            [(claim.id, claim.token) for claim, *_ in batch], [failure for _, failure, _ in batch]
        )
        ended = []
        for failed, attempt in zip(batch, verdicts, strict=True):
            if attempt.verdict == "stale":
                _report_stale(failed[0])
            else:
                ended.append((failed, attempt))
        self._log.failed(ended)

    async def _store_progress(self, batch: list[tuple[Claim, bytes]]) -> None:
        await self._db.claims.heartbeat(
            [(claim.id, claim.token) for claim, _ in batch], [progress for _, progress in batch]
        )

    async def _release(self, batch: list[Claim]) -> None:
        await self._db.claims.release([(claim.id, claim.token) for claim in batch])


def _report_stale(claim: Claim) -> None:
    log.warning("task.result_stale", type=claim.type, task_id=str(claim.id), attempt=claim.attempt)
