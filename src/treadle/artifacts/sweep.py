"""The sweep: delete artifact files and rows that no task needs.

A row is created before its file and deleted after it. So a file without a row is orphaned, and so
is a row that is not stored and whose claim has ended: neither can belong to a put in progress.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

import structlog

from treadle.artifacts.store import Store, StoredFile
from treadle.db.database import Database
from treadle.errors import ConfigurationError, StoreError
from treadle.models import RemovableArtifact

SWEEP_BATCH = 500
SWEEP_GRACE_S = 3600.0
SWEEP_EVERY_S = 86_400.0
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class SweepResult:
    """What a sweep deleted, or would delete in a dry run."""

    rows: int = 0
    files: int = 0
    failed: int = 0
    # Files in another store, which a sweep of that store deletes.
    elsewhere: int = 0
    keys: list[str] = field(default_factory=list)


async def sweep(
    db: Database,
    store: Store,
    *,
    grace_s: float = SWEEP_GRACE_S,
    dry_run: bool = False,
    stopping: Callable[[], bool] = lambda: False,
) -> SweepResult:
    """Delete removable files and their rows, then files without a row.

    It is safe to run this concurrently with workers and other sweeps, to stop it and to repeat it.
    Files younger than the grace period stay. Files that cannot be deleted, or that are in another
    store, are counted and left for a later sweep.
    """
    store.ready()
    swept = SweepResult()
    after: UUID | None = None
    while not stopping() and (
        removable := await db.artifacts.removable(SWEEP_BATCH, grace_s, after, dry_run=dry_run)
    ):
        after = removable[-1].id
        deleted = [
            each.id for each in removable if await _remove(store, each, swept, dry_run=dry_run)
        ]
        swept.rows += len(deleted)
        if not dry_run:
            await db.artifacts.forget(deleted)
    if swept.elsewhere:
        log.warning("artifacts.skipped", store=store.url, elsewhere=swept.elsewhere)
    folder = await db.artifacts.folder()
    if folder is not None:
        oldest = datetime.now(UTC) - timedelta(seconds=grace_s)
        async with aclosing(store.pages(folder)) as pages:
            async for page in pages:
                if stopping():
                    break
                await _sweep_page(db, store, page, oldest, swept, dry_run=dry_run)
    return swept


class Sweeper:
    """Sweeps at an interval, as part of another process."""

    def __init__(
        self, db: Database, store: Callable[[], Store], *, every_s: float = SWEEP_EVERY_S
    ) -> None:
        self._db = db
        self._store = store
        self._every_s = every_s
        self._next_at = 0.0

    async def tick(self, stopping: Callable[[], bool] = lambda: False) -> SweepResult | None:
        """Sweep if the interval has passed; errors of the store are logged, others are raised."""
        if time.monotonic() < self._next_at:
            return None
        if await self._db.artifacts.folder() is None:
            return None
        self._next_at = time.monotonic() + self._every_s
        try:
            swept = await sweep(self._db, self._store(), stopping=stopping)
        except (ConfigurationError, StoreError) as error:
            log.warning("artifacts.sweep_failed", error=str(error), hint=error.hint)
            return None
        log.info(
            "artifacts.swept",
            rows=swept.rows,
            files=swept.files,
            failed=swept.failed,
            elsewhere=swept.elsewhere,
        )
        return swept


async def _remove(
    store: Store, artifact: RemovableArtifact, swept: SweepResult, *, dry_run: bool
) -> bool:
    if artifact.uri != f"{store.url}/{artifact.key}":
        swept.elsewhere += 1
        return False
    if dry_run:
        swept.keys.append(artifact.key)
        return True
    return await _delete(store, artifact.key, swept)


async def _sweep_page(
    db: Database,
    store: Store,
    page: list[StoredFile],
    oldest: datetime,
    swept: SweepResult,
    *,
    dry_run: bool,
) -> None:
    """Delete the old files of a page that have no row, which is checked after they were listed."""
    old = {found.key: artifact_of(found.key) for found in page if found.modified_at < oldest}
    ids = {artifact for artifact in old.values() if artifact is not None}
    unknown = await db.artifacts.unknown(list(ids)) if ids else set()
    for key, artifact in old.items():
        if artifact not in unknown:
            continue
        if dry_run:
            swept.keys.append(key)
        elif not await _delete(store, key, swept):
            continue
        swept.files += 1


async def _delete(store: Store, key: str, swept: SweepResult) -> bool:
    try:
        await store.delete(key)
    except StoreError as error:
        log.warning("artifact.delete_failed", key=key, error=str(error))
        swept.failed += 1
        return False
    swept.keys.append(key)
    return True


def artifact_of(key: str) -> UUID | None:
    """Return the artifact id in a key, also of an incomplete file; None for an unrelated file."""
    try:
        return UUID(key.rsplit("/", 1)[-1].split("#")[0])
    except ValueError:
        return None
