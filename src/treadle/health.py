"""A health file for supervisors: written while the loop is alive, old when it is not.

`{"status": "ok", "agent": …, "pid": …, "running": …, "at": …, "last_contact_at": …}`; replaced
whole, never half written. The status is `no_database` when the database has not answered for three
heartbeats.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from pydantic_core import from_json, to_json

from treadle.db.database import Database
from treadle.errors import ConfigurationError, TreadleError

EVERY_S = 5.0
# After so many heartbeats without an answer from the database a process is not well.
MISSED = 3
NO_DATABASE = "no_database"


async def keep_health_file(
    path: Path, facts: Callable[[], dict[str, Any]], db: Database, heartbeat_s: float
) -> None:
    """Write the file every few seconds until cancelled, then take it away."""
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_keep_contact, db, heartbeat_s)
            while True:
                write_health_file(path, {**facts(), **contact_facts(db, heartbeat_s)})
                await anyio.sleep(min(EVERY_S, heartbeat_s))
    finally:
        remove_health_file(path)


def contact_facts(db: Database, heartbeat_s: float) -> dict[str, Any]:
    """When the database last answered, and a bad status when that is too long ago."""
    silent_s = time.monotonic() - db.calls.contact_at
    found: dict[str, Any] = {"last_contact_at": round(time.time() - silent_s, 3)}
    if silent_s > MISSED * heartbeat_s:
        found["status"] = NO_DATABASE
    return found


async def _keep_contact(db: Database, heartbeat_s: float) -> None:
    """Ask the database something when there was nothing to ask for a heartbeat."""
    while True:
        await anyio.sleep(heartbeat_s)
        if time.monotonic() - db.calls.contact_at >= heartbeat_s:
            try:
                await db.calls.ping()
            except TreadleError:
                # It shows in the file; the loop beside us has said so already.
                continue


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
    if facts.get("status") == NO_DATABASE:
        silent_s = time.time() - float(facts.get("last_contact_at", 0))
        raise TreadleError(f"the process of {path} has had no database for {silent_s:.0f} s")
    return facts
