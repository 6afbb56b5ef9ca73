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
    found = _files(folder / below, below)
    while page := list(islice(found, size)):
        yield page


def _files(at: Path, key: str) -> Iterator[tuple[str, float]]:
    """One after the other: a folder of a million is never whole in memory."""
    # Another sweep, or a task, may take away what was just seen.
    with suppress(FileNotFoundError), os.scandir(at) as entries:
        for each in entries:
            if each.is_dir():
                yield from _files(at / each.name, f"{key}/{each.name}")
                continue
            with suppress(FileNotFoundError):
                yield f"{key}/{each.name}", each.stat().st_mtime
