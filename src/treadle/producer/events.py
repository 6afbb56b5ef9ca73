"""Events for applications: the settings of triggers, and following events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, TypedDict

from treadle.db.database import Database
from treadle.db.listener import EventListener
from treadle.errors import InvalidArgument
from treadle.models import Event

BATCH = 500


class TriggerSettings(TypedDict, total=False):
    """The settings of a trigger; settings that are left out keep their values."""

    filter: Mapping[str, Any]
    task: Mapping[str, Any]
    dag: Mapping[str, Any]
    failure_rate: Mapping[str, Any]
    max_depth: int
    max_per_hour: int | None
    description: str


async def follow_events(
    db: Database,
    listen_url: str | None,
    kinds: Sequence[str] | None,
    *,
    after: str | None,
    poll_s: float,
) -> AsyncGenerator[Event]:
    """Yield events as they happen; see `Treadle.events`."""
    if isinstance(kinds, str):
        raise InvalidArgument("kinds must be a list of strings", argument="kinds")
    await db.calls.open()
    listener = EventListener(db.events, listen_url, kinds)
    found: list[Event]
    place = after
    try:
        while True:
            await listener.open()
            found, place = await db.events.read(place, kinds, BATCH)
            for event in found:
                yield event
            if not found:
                await listener.wait(poll_s)
    finally:
        await listener.close()
