"""A store that is a folder: what obstore leaves to its user there.

It writes a file under a name with # and renames it when it is whole; one that was killed leaves
that behind, and lists it nowhere.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path


def sync(folder: Path, key: str) -> None:
    """Have a file on the disk before anybody is told of it: its content, then its names."""
    path = folder / key
    for each in (path, *path.parents):
        handle = os.open(each, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        if each == folder:
            return


def delete(folder: Path, key: str) -> None:
    """Delete a file, if it is there, and the folders that are empty then."""
    path = folder / key
    path.unlink(missing_ok=True)
    for above in path.parents:
        if above == folder:
            return
        with suppress(OSError):
            above.rmdir()


def walk(folder: Path, below: str, size: int) -> Iterator[list[tuple[str, float]]]:
    """Every file below a folder, as pages of keys and times."""
    found = _files(folder, below)
    while page := list(islice(found, size)):
        yield page


def _files(folder: Path, below: str) -> Iterator[tuple[str, float]]:
    waiting = [folder / below]
    while waiting:
        at = waiting.pop()
        # Another sweep, or a task, may take away what was just seen.
        with suppress(FileNotFoundError):
            for each in sorted(at.iterdir()):
                if each.is_dir():
                    waiting.append(each)
                    continue
                with suppress(FileNotFoundError):
                    yield each.relative_to(folder).as_posix(), each.stat().st_mtime
