"""What a handler may store as a file, as chunks of bytes: none is ever whole in memory."""

import inspect
import os
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import anyio

from treadle.errors import InvalidArgument

CHUNK = 1024 * 1024


class Readable(Protocol):
    """A file that was opened for bytes, plain or async."""

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


def chunks_of(data: Data) -> AsyncGenerator[bytes, None]:
    """The data in chunks; an error at once when it is none."""
    if isinstance(data, bytes | bytearray | memoryview):
        return _slices(memoryview(data).cast("B"))
    if isinstance(data, str):
        raise InvalidArgument(
            "a text is no data",
            hint="For a file pass Path(…), for a text: text.encode()",
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
        f"{type(data).__name__} is no data",
        hint="Pass bytes, a Path, an open file, or an iterable of bytes.",
        argument="data",
    )


async def _slices(data: memoryview) -> AsyncGenerator[bytes, None]:
    for at in range(0, len(data), CHUNK):
        yield bytes(data[at : at + CHUNK])


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
    """The next of a plain iterator may have to wait for something: not on the loop."""
    nothing = object()
    while (chunk := await anyio.to_thread.run_sync(next, data, nothing)) is not nothing:
        yield chunk


async def _checked(data: AsyncIterable[Any]) -> AsyncGenerator[bytes, None]:
    async for given in data:
        async for chunk in _slices(memoryview(_bytes(given))):
            yield chunk


def _bytes(chunk: object) -> bytes:
    if isinstance(chunk, bytes):
        return chunk
    if isinstance(chunk, bytearray | memoryview):
        return bytes(chunk)
    raise InvalidArgument(
        f"the data gives {type(chunk).__name__}, not bytes",
        hint="Open the file with mode 'rb', or encode the text.",
        argument="data",
    )
