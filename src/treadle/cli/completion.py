"""Completion of states, queues, types and task ids in the shell."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.db.database import Database


def states(incomplete: str) -> list[str]:
    from treadle.cli.output import STATES

    return [each for each in STATES if each.startswith(incomplete)]


def queues(incomplete: str) -> list[str]:
    async def read(db: Database) -> list[str]:
        return [each["queue"] for each in await db.queues.list()]

    return _matching(incomplete, read)


def types(incomplete: str) -> list[str]:
    async def read(db: Database) -> list[str]:
        return [each["type"] for each in await db.types.list()]

    return _matching(incomplete, read)


def task_ids(incomplete: str) -> list[str]:
    """The ends of the newest ids, as lists show them."""

    async def read(db: Database) -> list[str]:
        return [str(each["id"])[-12:] for each in await db.tasks.list(limit=100)]

    return _matching(incomplete, read)


def _matching(incomplete: str, read: Callable[[Database], Awaitable[list[str]]]) -> list[str]:
    """The names that begin like this; none if the database cannot be asked."""
    from treadle.cli.common import call_db

    try:
        found = call_db(read)
    except Exception:
        # An error message would end up on the command line that is being typed.
        return []
    return [each for each in found if each.startswith(incomplete)]
