"""A health file for supervisors: written while the loop is alive, old when it is not.

`{"status": "ok", "agent": …, "pid": …, "running": …, "at": …}`; replaced whole, never half written.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from pydantic_core import from_json, to_json

from treadle.errors import ConfigurationError, TreadleError

EVERY_S = 5.0


async def keep_health_file(path: Path, facts: Callable[[], dict[str, Any]]) -> None:
    """Write the file every few seconds until cancelled, then take it away."""
    try:
        while True:
            write_health_file(path, facts())
            await anyio.sleep(EVERY_S)
    finally:
        remove_health_file(path)


def remove_health_file(path: Path) -> None:
    """Nobody is healthy here any more."""
    path.unlink(missing_ok=True)


def write_health_file(path: Path, facts: dict[str, Any]) -> None:
    """Replace the file in one step."""
    text = to_json({"at": time.time(), "pid": os.getpid(), **facts})
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_bytes(text)
        fresh.replace(path)
    except OSError as error:
        raise ConfigurationError(
            f"the health file {path} cannot be written: {error.strerror}",
            hint="Give a path in a folder that exists and may be written.",
        ) from error


def read_health_file(path: Path, max_age_s: float) -> dict[str, Any]:
    """The facts in a health file; an error when it is missing or too old."""
    try:
        facts: dict[str, Any] = from_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise TreadleError(f"no health in {path}: {error}") from None
    age = time.time() - float(facts.get("at", 0))
    if age > max_age_s:
        raise TreadleError(f"the health in {path} is {age:.0f} s old, {max_age_s:g} are allowed")
    return facts
