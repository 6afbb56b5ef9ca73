"""Take away files that belong to nobody: never finished, or of tasks that are gone.

A row is there before its file and goes after it. So a file is nobody's when it has no row, and a
row that is not stored is nobody's when its claim has ended: neither can be of a live put.
"""

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

log = structlog.get_logger(__name__)
BATCH = 500
GRACE_S = 3600.0
EVERY_S = 86_400.0


@dataclass(slots=True)
class SweepResult:
    """What a sweep took away, or would take."""

    rows: int = 0
    files: int = 0
    failed: int = 0
    # Of another store than this one: left for a sweep there.
    elsewhere: int = 0
    keys: list[str] = field(default_factory=list)


async def sweep(
    db: Database,
    store: Store,
    *,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
    stopping: Callable[[], bool] = lambda: False,
) -> SweepResult:
    """Delete doomed files and then their rows, then files that have no row.

    Safe to run beside workers and other sweeps, to stop between two pages, and to repeat. What is
    younger than the grace stays; a file that cannot be deleted, or that lies in another store, is
    counted, and left for a later sweep.
    """
    store.ready()
    swept = SweepResult()
    after: UUID | None = None
    while not stopping() and (
        doomed := await db.artifacts.removable(BATCH, grace_s, after, dry_run=dry_run)
    ):
        after = doomed[-1].id
        gone = [each.id for each in doomed if await _deleted(store, each, swept, dry_run=dry_run)]
        swept.rows += len(gone)
        if not dry_run:
            await db.artifacts.forget(gone)
    if swept.elsewhere:
        log.warning("artifacts.elsewhere", store=store.url, files=swept.elsewhere)
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
    """Sweeps once in a while, for a process that has other things to do too."""

    def __init__(
        self, db: Database, store: Callable[[], Store], *, every_s: float = EVERY_S
    ) -> None:
        self._db = db
        self._store = store
        self._every_s = every_s
        self._next_at = 0.0

    async def tick(self, stopping: Callable[[], bool] = lambda: False) -> SweepResult | None:
        """Sweep if it is time; a store that is away is for the next time, a database is not."""
        if time.monotonic() < self._next_at:
            return None
        if await self._db.artifacts.folder() is None:
            return None
        self._next_at = time.monotonic() + self._every_s
        try:
            swept = await sweep(self._db, self._store(), stopping=stopping)
        except (ConfigurationError, StoreError) as error:
            log.warning("artifacts.not_swept", error=str(error), hint=error.hint)
            return None
        log.info(
            "artifacts.swept",
            rows=swept.rows,
            files=swept.files,
            failed=swept.failed,
            elsewhere=swept.elsewhere,
        )
        return swept


async def _deleted(
    store: Store, doomed: RemovableArtifact, swept: SweepResult, *, dry_run: bool
) -> bool:
    if doomed.uri != f"{store.url}/{doomed.key}":
        swept.elsewhere += 1
        return False
    if dry_run:
        swept.keys.append(doomed.key)
        return True
    return await _delete(store, doomed.key, swept)


async def _sweep_page(
    db: Database,
    store: Store,
    page: list[StoredFile],
    oldest: datetime,
    swept: SweepResult,
    *,
    dry_run: bool,
) -> None:
    """Delete the old files of a page that the database does not know; it is asked after."""
    ours = {found.key: artifact_of(found.key) for found in page if found.modified_at < oldest}
    ids = {artifact for artifact in ours.values() if artifact is not None}
    unknown = await db.artifacts.unknown(list(ids)) if ids else set()
    for key, artifact in ours.items():
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
        log.warning("artifact.not_deleted", key=key, error=str(error))
        swept.failed += 1
        return False
    swept.keys.append(key)
    return True


def artifact_of(key: str) -> UUID | None:
    """The artifact of a file, also of one half written; None for a file that is not ours."""
    try:
        return UUID(key.rsplit("/", 1)[-1].split("#")[0])
    except ValueError:
        return None
