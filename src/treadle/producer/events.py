"""What follows from events: triggers, and code that reads events as they come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast
from uuid import UUID

from treadle.db.listener import EventListener
from treadle.errors import InvalidArgument
from treadle.models import Event

if TYPE_CHECKING:
    from treadle.app import Treadle

BATCH = 500


class TriggerSettings(TypedDict, total=False):
    """What `app.trigger()` takes besides the event; what is left out stays as it is."""

    filter: Mapping[str, Any]
    task: Mapping[str, Any]
    dag: Mapping[str, Any]
    failure_rate: Mapping[str, Any]
    max_depth: int
    max_per_hour: int | None
    description: str


class Reactions:
    """The part of an application that reacts to what happens."""

    async def trigger(
        self,
        name: str,
        *,
        on: str | None = None,
        by: str | None = None,
        **settings: Unpack[TriggerSettings],
    ) -> UUID:
        """Make or change a trigger: when the event `on`, then enqueue `task` or `dag`.

        Values of the event stand in the template as `{"$event": "data.url"}`. The filter is what
        the event must contain. It needs the rights of an operator.
        """
        given: dict[str, Any] = {**settings} if on is None else {"on": on, **settings}
        return await (await _app(self).gateway()).define_trigger(name, given, by)

    async def events(
        self,
        kinds: Sequence[str] | None = None,
        *,
        after: str | None = None,
        poll_s: float = 1.0,
    ) -> AsyncGenerator[Event]:
        """Events as they happen, each once and none left out, for ever.

        From now on, or after the `place` of an event that was read before; "0.0" is the beginning.
        An event comes when all transactions older than its own have ended.
        """
        if isinstance(kinds, str):
            raise InvalidArgument("kinds must be a list of kinds", argument="kinds")
        app = _app(self)
        gateway = await app.gateway()
        settings = app.settings
        ear = EventListener(
            gateway, (settings.listen_url or app.url) if settings.notify else None, kinds
        )
        found: list[Event]
        place = after
        try:
            while True:
                await ear.open()
                found, place = await gateway.read_events(place, kinds, BATCH)
                for event in found:
                    yield event
                if not found:
                    await ear.wait(poll_s)
        finally:
            await ear.close()


def _app(part: Reactions) -> Treadle:
    return cast("Treadle", part)
