"""What long-running processes share: the health file, and the exit after the grace period.

A supervisor reads the health file, which is replaced every few seconds while the event loop runs:
`{"status": "ok", "agent": …, "pid": …, "running": …, "at": …, "last_contact_at": …}`. The status
is `no_database` when the database has not responded for three heartbeats.
"""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import structlog
from pydantic_core import from_json, to_json

from treadle.db.database import Database
from treadle.errors import ConfigurationError, TreadleError

log = structlog.get_logger(__name__)
EVERY_S = 5.0
# A process is unhealthy after so many heartbeats without a response from the database.
MISSED = 3
NO_DATABASE = "no_database"
# Time to close connections and files after the grace period.
SPARE_S = 5.0


async def keep_health_file(
    path: Path, facts: Callable[[], dict[str, Any]], db: Database, heartbeat_s: float
) -> None:
    """Write the file every few seconds until cancelled, then remove it."""
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_keep_contact, db, heartbeat_s)
            while True:
                write_health_file(path, {**facts(), **contact_facts(db, heartbeat_s)})
                await anyio.sleep(min(EVERY_S, heartbeat_s))
    finally:
        remove_health_file(path)


def contact_facts(db: Database, heartbeat_s: float) -> dict[str, Any]:
    """Return when the database last responded, and `no_database` if that is too long ago."""
    silent_s = time.monotonic() - db.calls.contact_at
    found: dict[str, Any] = {"last_contact_at": round(time.time() - silent_s, 3)}
    if silent_s > MISSED * heartbeat_s:
        found["status"] = NO_DATABASE
    return found


async def _keep_contact(db: Database, heartbeat_s: float) -> None:
    """Ping the database when there was no other call for a heartbeat."""
    while True:
        await anyio.sleep(heartbeat_s)
        if time.monotonic() - db.calls.contact_at >= heartbeat_s:
            try:
                await db.calls.ping()
            except TreadleError:
                # The health file shows it, and the main loop logs it.
                continue


def remove_health_file(path: Path) -> None:
    """Remove the file if it exists."""
    path.unlink(missing_ok=True)


def write_health_file(path: Path, facts: dict[str, Any]) -> None:
    """Replace the file atomically."""
    text = to_json({"at": time.time(), "pid": os.getpid(), **facts})
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(text)
        temporary.replace(path)
    except OSError as error:
        raise ConfigurationError(
            f"the health file {path} cannot be written: {error.strerror}",
            hint="Choose a path in an existing folder with write permission.",
        ) from error


def read_health_file(path: Path, max_age_s: float) -> dict[str, Any]:
    """Return the facts in a health file; raise if it is missing, too old or not healthy."""
    try:
        facts: dict[str, Any] = from_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise TreadleError(f"the health file {path} cannot be read: {error}") from None
    age = time.time() - float(facts.get("at", 0))
    if age > max_age_s:
        raise TreadleError(f"the health file {path} is {age:.0f} s old, {max_age_s:g} are allowed")
    if facts.get("status") == NO_DATABASE:
        silent_s = time.time() - float(facts.get("last_contact_at", 0))
        raise TreadleError(f"the process of {path} has had no database for {silent_s:.0f} s")
    return facts


def exit_within(grace_s: float) -> None:
    """Exit this process soon after the grace period, even if a thread or a DNS lookup hangs.

    Call this on the first signal, and only in processes that treadle owns.
    """
    timer = threading.Timer(grace_s + SPARE_S, _exit, [grace_s])
    timer.daemon = True
    timer.start()


def _exit(grace_s: float) -> None:
    log.error("process.exit_forced", grace_s=grace_s, spare_s=SPARE_S)
    os._exit(1)
