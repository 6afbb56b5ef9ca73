"""`ctx.artifact`: the output files and input files of a task.

A file is reserved in the database, written to the store in chunks, and only then marked as stored.
A crash before that leaves an invisible reservation, which `treadle artifacts sweep` removes. Files
are never loaded into memory as a whole.
"""

import inspect
import mimetypes
import os
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from pathlib import Path
from typing import Any, Protocol, overload
from uuid import UUID, uuid4

import anyio
import structlog

from treadle.artifacts.store import Store
from treadle.db.database import Database
from treadle.errors import ConfigurationError, InvalidArgument, TreadleError
from treadle.masking import excerpt
from treadle.models import Artifact, ListedArtifact
from treadle.worker.journal import Journal

CHUNK = 1024 * 1024
log = structlog.get_logger(__name__)
UNKNOWN_TYPE = "application/octet-stream"

# An id, artifact:<id>, the name of a file of this task, or an Artifact from put() or an input.
Reference = str | UUID | Mapping[str, Any]


class Readable(Protocol):
    """A sync or async file that was opened in binary mode."""

    def read(self, size: int, /) -> Any: ...


Data = (
    bytes
    | bytearray
    | memoryview
    | os.PathLike[str]
    | Readable
    | Iterable[bytes]
    | AsyncIterable[bytes]
)


def iter_chunks(data: Data) -> AsyncGenerator[bytes, None]:
    """Return the data in chunks; raise InvalidArgument if its type is not supported."""
    if isinstance(data, bytes | bytearray | memoryview):
        return _slices(memoryview(data).cast("B"))
    if isinstance(data, str):
        raise InvalidArgument(
            "data must not be a str",
            hint="Pass Path(…) for a file, or text.encode() for text.",
            argument="data",
        )
    if isinstance(data, os.PathLike):
        return _file(Path(data))
    if hasattr(data, "read"):
        return _reads(data.read)
    if isinstance(data, AsyncIterable):
        return _checked(data)
    if isinstance(data, Iterable):
        return _checked(_in_threads(iter(data)))
    raise InvalidArgument(
        f"data must not be of type {type(data).__name__}",
        hint="Pass bytes, a Path, an open file, or an iterable of bytes.",
        argument="data",
    )


async def _slices(data: memoryview) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(data), CHUNK):
        yield bytes(data[start : start + CHUNK])


async def _file(path: Path) -> AsyncGenerator[bytes, None]:
    async with await anyio.open_file(path, "rb") as file:
        while chunk := await file.read(CHUNK):
            yield chunk


async def _reads(read: Callable[[int], Any]) -> AsyncGenerator[bytes, None]:
    on_loop = inspect.iscoroutinefunction(read)
    while True:
        found = read(CHUNK) if on_loop else await anyio.to_thread.run_sync(read, CHUNK)
        chunk = _bytes(await found if inspect.isawaitable(found) else found)
        if not chunk:
            return
        yield chunk


async def _in_threads(data: Iterator[Any]) -> AsyncGenerator[Any, None]:
    """Iterate in a thread: the next item of a sync iterator may block."""
    end = object()
    while (chunk := await anyio.to_thread.run_sync(next, data, end)) is not end:
        yield chunk


async def _checked(data: AsyncIterable[Any]) -> AsyncGenerator[bytes, None]:
    async for item in data:
        async for chunk in _slices(memoryview(_bytes(item))):
            yield chunk


def _bytes(chunk: object) -> bytes:
    if isinstance(chunk, bytes):
        return chunk
    if isinstance(chunk, bytearray | memoryview):
        return bytes(chunk)
    raise InvalidArgument(
        f"data must yield bytes, not {type(chunk).__name__}",
        hint="Open the file with mode 'rb', or encode the text.",
        argument="data",
    )


class ArtifactReader:
    """A file to read once, in chunks; raises at the end if the content is not what was stored."""

    def __init__(self, artifact: Artifact, chunks: AsyncIterator[bytes]) -> None:
        self.artifact = artifact
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def read(self) -> bytes:
        """Return the whole content."""
        return b"".join([chunk async for chunk in self])

    async def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the file at a path; the path exists only once the file is complete and verified."""
        target = anyio.Path(path)
        draft = target.with_name(f".{target.name[:200]}.{uuid4().hex[:8]}")
        try:
            async with await draft.open("xb") as file:
                async for chunk in self:
                    await file.write(chunk)
            await draft.rename(target)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await draft.unlink(missing_ok=True)
            raise
        return Path(path)


async def open_artifact(
    db: Database, store: Store, artifact: Reference, task_id: UUID | None = None
) -> ArtifactReader:
    """Open the file of a stored artifact; a name is looked up in the task."""
    key, found = await db.artifacts.read(_text_of(artifact), task_id)
    if key is None or found["bytes"] is None or found["sha256"] is None:
        raise InvalidArgument(
            f"artifact {found['name']} is not in the store: it is a link to {found['uri']}",
            hint="Read it from its uri.",
            artifact=found["id"],
        )
    return ArtifactReader(found, store.read(key, found["bytes"], found["sha256"]))


class Artifacts:
    """The files of a running task."""

    __slots__ = ("_journal", "_optional_store")

    def __init__(self, journal: Journal, store: Store | None) -> None:
        self._journal = journal
        self._optional_store = store

    async def put(
        self, name: str, data: Data, *, media_type: str | None = None, max_bytes: int | None = None
    ) -> Artifact:
        """Store a file; return its id, name, size, hash, media type and uri.

        `data` is bytes, a Path, an open file, or a sync or async iterable of bytes. If a name is
        used again, it refers to the newest file; the older ones are available by id.
        """
        store, journal, claim = self._store, self._journal, self._journal.claim
        _check_text("name", name)
        kind = media_type or mimetypes.guess_type(name)[0] or UNKNOWN_TYPE
        _check_text("media_type", kind)
        most = store.max_bytes if max_bytes is None else min(max_bytes, store.max_bytes)
        chunks, artifact_id = iter_chunks(data), uuid4()
        store.ready()
        async with journal.busy():
            key = await journal.call(
                lambda: journal.db.artifacts.reserve(
                    claim.id, claim.token, artifact_id, name, store.url, kind
                )
            )
            try:
                written = await store.write(key, chunks, media_type=kind, max_bytes=most)
            except BaseException:
                # Not if the call below fails: the database may have marked the file as stored.
                with anyio.move_on_after(10, shield=True):
                    await self._undo(key, artifact_id)
                raise
            return await journal.call(
                lambda: journal.db.artifacts.store(
                    claim.id, claim.token, artifact_id, written.bytes, written.sha256
                )
            )

    @overload
    async def get(self, artifact: Reference) -> bytes: ...

    @overload
    async def get(self, artifact: Reference, *, to: str | os.PathLike[str]) -> Path: ...

    async def get(
        self, artifact: Reference, *, to: str | os.PathLike[str] | None = None
    ) -> bytes | Path:
        """Return the content of an artifact; with `to`, save it there and return the path."""
        file = await self.open(artifact)
        return await file.read() if to is None else await file.save(to)

    async def open(self, artifact: Reference) -> ArtifactReader:
        """Open an artifact to read in chunks.

        `async for chunk in await ctx.artifact.open(report)`
        """
        journal = self._journal
        return await journal.call(
            lambda: open_artifact(journal.db, self._store, artifact, journal.claim.id)
        )

    async def link(
        self,
        name: str,
        uri: str,
        *,
        media_type: str | None = None,
        size: int | None = None,
        sha256: str | None = None,
    ) -> Artifact:
        """Record a file that is stored outside the store; other tasks can use it as an input."""
        journal, claim = self._journal, self._journal.claim
        _check_text("name", name)
        _check_text("uri", uri)
        async with journal.busy():
            artifact_id = await journal.call(
                lambda: journal.db.artifacts.record(
                    claim.id,
                    claim.token,
                    name,
                    uri,
                    media_type=media_type,
                    size=size,
                    sha256=sha256,
                )
            )
        return {
            "id": str(artifact_id),
            "name": name,
            "uri": uri,
            "media_type": media_type,
            "bytes": size,
            "sha256": None if sha256 is None else sha256.lower(),
        }

    async def list(self) -> tuple[ListedArtifact, ...]:
        """List the files of this task from all its attempts, oldest first."""
        journal = self._journal
        return await journal.call(lambda: journal.db.artifacts.of_task(journal.claim.id))

    @property
    def _store(self) -> Store:
        if self._optional_store is None:
            raise ConfigurationError(
                "this worker has no store for artifacts", hint="Set TREADLE_ARTIFACTS_URL."
            )
        return self._optional_store

    async def _undo(self, key: str, artifact_id: UUID) -> None:
        """Remove a file that was not stored completely; a sweep removes it if this fails."""
        claim = self._journal.claim
        try:
            await self._store.delete(key)
            await self._journal.db.artifacts.drop(claim.id, claim.token, artifact_id)
        except TreadleError as error:
            log.warning("artifact.cleanup_failed", task_id=str(claim.id), key=key, error=str(error))


def _text_of(artifact: Reference) -> str:
    found = artifact.get("id") if isinstance(artifact, Mapping) else artifact
    if isinstance(found, UUID):
        return str(found)
    if not isinstance(found, str) or "\0" in found:
        raise InvalidArgument(
            f"{str(artifact)[:200]!r} is not an artifact",
            hint="Pass its id, its name, or an artifact returned by put() or received as an input.",
            argument="artifact",
        )
    return found


def _check_text(argument: str, text: object) -> None:
    """Reject what PostgreSQL cannot store as text; SQL checks the rest."""
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidArgument(
            f"artifact: {argument} {excerpt(text)} is not a str, is empty, or contains a NUL",
            hint="Pass a non-empty str without NUL characters, such as report.pdf.",
            argument=argument,
        )
