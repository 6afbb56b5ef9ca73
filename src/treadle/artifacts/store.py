"""The store of artifact files: a folder or an S3-compatible store, through obstore.

Files are written and read as streams, never loaded into memory as a whole. In a folder, obstore
writes a file under a name with # and renames it when it is complete. A killed process leaves the
temporary file behind, which obstore does not list.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import anyio

from treadle.errors import (
    ArtifactNotFound,
    ConfigurationError,
    StoreError,
    TooLarge,
    TreadleError,
    extra,
)
from treadle.settings import Settings, data_home

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PART = 8 * 1024 * 1024
# S3 allows 10,000 parts per file.
MAX_PARTS = 9000
PAGE = 1000
GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Written:
    """The size and the hash of a written file."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in the store."""

    key: str
    modified_at: datetime


class Store:
    """Writes, reads, lists and deletes files by key."""

    def __init__(self, url: str, *, endpoint: str | None = None, max_bytes: int = GIB) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("file", "s3", "memory") or parts.username or parts.query:
            raise ConfigurationError(
                "the URL of the artifact store must not contain credentials or a query"
                if parts.username or parts.query
                else f"artifacts cannot be stored at {url}",
                hint="Set TREADLE_ARTIFACTS_URL=file:///folder or s3://bucket/prefix; "
                "credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
            )
        self.url = url.rstrip("/")
        self.max_bytes = max_bytes
        self.folder = Path(unquote(parts.path)) if parts.scheme == "file" else None
        self._endpoint = endpoint
        self._object_store: ObjectStore | None = None

    def ready(self) -> None:
        """Open the store; raise if it cannot be opened."""
        self._store()

    async def write(
        self, key: str, chunks: AsyncGenerator[bytes, None], *, media_type: str, max_bytes: int
    ) -> Written:
        """Write a file completely or not at all; return its size and hash."""
        store = self._store()
        import obstore

        digest, size = hashlib.sha256(), 0
        with _store_errors(f"write to {self.url}"):
            writer = obstore.open_writer_async(
                store,
                key,
                # Folders do not support attributes.
                attributes=None if self.folder else {"Content-Type": media_type},
                buffer_size=max(PART, max_bytes // MAX_PARTS),
                max_concurrency=2,
            )
            try:
                async with aclosing(chunks):
                    while chunk := await _next(chunks):
                        size += len(chunk)
                        if size > max_bytes:
                            raise _too_large(max_bytes)
                        digest.update(chunk)
                        await writer.write(chunk)
                await writer.close()
            except BaseException as error:
                # Abort the upload; this fails if the writer is already closed.
                with anyio.move_on_after(10, shield=True), suppress(Exception):
                    await writer.__aexit__(type(error), error, error.__traceback__)
                raise
            if self.folder is not None:
                await anyio.to_thread.run_sync(sync_file, self.folder, key)
        return Written(size, digest.hexdigest())

    async def read(self, key: str, size: int, sha256: str) -> AsyncIterator[bytes]:
        """Yield a file in chunks; raise, perhaps at the end, if it differs from what was stored."""
        store = self._store()
        digest, start = hashlib.sha256(), 0
        with _store_errors(f"read from {self.url}", missing=True):
            if (await store.head_async(key))["size"] != size:
                raise _damaged(key, "size")
            while start < size:
                end = min(start + PART, size)
                part = bytes(await store.get_range_async(key, start=start, end=end))
                digest.update(part)
                start += len(part)
                yield part
                if not part:
                    break
        if digest.hexdigest() != sha256:
            raise _damaged(key, "sha256")

    async def delete(self, key: str) -> None:
        """Delete a file; a missing file is not an error."""
        if self.folder is not None:
            with _store_errors(f"delete from {self.url}"):
                await anyio.to_thread.run_sync(delete_file, self.folder, key)
            return
        try:
            with _store_errors(f"delete from {self.url}", missing=True):
                await self._store().delete_async(key)
        except ArtifactNotFound:
            return

    async def pages(self, folder: str) -> AsyncGenerator[list[StoredFile], None]:
        """Yield all files below a folder of the store in pages, including incomplete files."""
        with _store_errors(f"list {self.url}"):
            if self.folder is not None:
                pages = walk_folder(self.folder, folder, PAGE)
                while page := await anyio.to_thread.run_sync(next, pages, None):
                    yield [StoredFile(key, datetime.fromtimestamp(at, UTC)) for key, at in page]
                return
            async for some in self._store().list(folder, chunk_size=PAGE):
                yield [StoredFile(each["path"], each["last_modified"]) for each in some]

    async def check(self) -> None:
        """Write, read and delete a small file."""

        async def chunks() -> AsyncGenerator[bytes, None]:
            yield b"treadle"

        key = f"check/{hashlib.sha256(str(datetime.now(UTC)).encode()).hexdigest()[:16]}"
        written = await self.write(key, chunks(), media_type="text/plain", max_bytes=100)
        async for _ in self.read(key, written.bytes, written.sha256):
            pass
        await self.delete(key)

    def _store(self) -> ObjectStore:
        if self._object_store is None:
            with _store_errors(f"open {self.url}"):
                self._object_store = self._open()
        return self._object_store

    def _open(self) -> ObjectStore:
        with extra("artifacts", "artifacts need obstore"):
            from obstore.store import LocalStore, MemoryStore, S3Store
        if self.folder is not None:
            # Only the owner may read the files, unless the folder was created with other rights.
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return LocalStore(self.folder)
        if self.url.startswith("memory:"):
            return MemoryStore()
        plain = self._endpoint is not None and self._endpoint.startswith("http:")
        return S3Store.from_url(
            self.url,
            config={} if self._endpoint is None else {"endpoint": self._endpoint},
            client_options={"timeout": "120s", "connect_timeout": "5s", "allow_http": plain},
            retry_config={"max_retries": 5, "retry_timeout": timedelta(seconds=60)},
        )


class _SourceError(Exception):
    """Wraps an error of the data source, which must not be reported as an error of the store."""

    def __init__(self, error: Exception) -> None:
        self.error = error


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    try:
        return await anext(chunks, None)
    except Exception as error:
        raise _SourceError(error) from error


@contextmanager
def _store_errors(action: str, *, missing: bool = False) -> Iterator[None]:
    """Translate the errors of a store; errors of the data source are raised unchanged."""
    try:
        yield
    except _SourceError as error:
        raise error.error from None
    except TreadleError:
        raise
    except Exception as error:
        text = str(error).split("\n\n")[0].replace("\n", " ")[:500]
        if missing and isinstance(error, FileNotFoundError) and "NoSuchBucket" not in text:
            raise ArtifactNotFound(
                f"the file of the artifact is not in the store: {text}",
                hint="It was deleted from the store, or TREADLE_ARTIFACTS_URL names another store.",
            ) from error
        if isinstance(error, OSError | ValueError) or _is_obstore_error(error):
            raise StoreError(
                f"cannot {action}: {text or type(error).__name__}",
                hint="Check TREADLE_ARTIFACTS_URL and its credentials: treadle doctor",
            ) from error
        raise


def _is_obstore_error(error: Exception) -> bool:
    from obstore.exceptions import BaseError

    return isinstance(error, BaseError)


def _damaged(key: str, attribute: str) -> StoreError:
    return StoreError(
        f"the file {key} is damaged: its {attribute} differs from what was stored",
        hint="It was changed in the store. Run the task that created it again.",
        key=key,
    )


def _too_large(max_bytes: int) -> TooLarge:
    return TooLarge(
        f"the artifact has more than {max_bytes} bytes, which is the maximum",
        hint="Raise max_bytes of this call, or TREADLE_ARTIFACT_MAX_BYTES.",
        argument="data",
    )


def make_store(settings: Settings) -> Store:
    """Return the store of the settings; without one, a folder of the user."""
    url = settings.artifacts_url or (data_home() / "treadle" / "artifacts").absolute().as_uri()
    return Store(url, endpoint=settings.artifacts_endpoint, max_bytes=settings.artifact_max_bytes)


def sync_file(folder: Path, key: str) -> None:
    """Flush a file and the folders above it to disk."""
    path = folder / key
    for each in (path, *path.parents):
        handle = os.open(each, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        if each == folder:
            return


def delete_file(folder: Path, key: str) -> None:
    """Delete a file if it exists, and the folders that are empty then."""
    path = folder / key
    path.unlink(missing_ok=True)
    for above in path.parents:
        if above == folder:
            return
        with suppress(OSError):
            above.rmdir()


def walk_folder(folder: Path, below: str, size: int) -> Iterator[list[tuple[str, float]]]:
    """Yield every file below a folder as pages of keys and modification times."""
    found = _files(folder / below, below)
    while page := list(islice(found, size)):
        yield page


def _files(at: Path, key: str) -> Iterator[tuple[str, float]]:
    """Yield files lazily: a folder may contain millions."""
    # Another sweep or a task may delete a file after it was listed.
    with suppress(FileNotFoundError), os.scandir(at) as entries:
        for each in entries:
            if each.is_dir():
                yield from _files(at / each.name, f"{key}/{each.name}")
                continue
            with suppress(FileNotFoundError):
                yield f"{key}/{each.name}", each.stat().st_mtime
