"""Enqueueing, on our own connections or on the caller's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from treadle.db.pool import is_sync
from treadle.db.tasks import AnyConnection, AsyncConn, SyncConnection, enqueue_async, enqueue_sync
from treadle.fields import EnqueueOptions, make_options
from treadle.json import encode
from treadle.models import Enqueued
from treadle.producer.handle import Handle

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.database import Gateway


class Producing(ABC):
    """What producers call; mixed into the application."""

    @abstractmethod
    async def gateway(self) -> Gateway:
        """The SQL interface."""

    @overload
    def enqueue(
        self,
        type: str,
        spec: Mapping[str, Any] | None = None,
        *,
        conn: SyncConnection,
        **options: Unpack[EnqueueOptions],
    ) -> Handle: ...

    @overload
    def enqueue(
        self,
        type: str,
        spec: Mapping[str, Any] | None = None,
        *,
        conn: AsyncConn | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> Awaitable[Handle]: ...

    def enqueue(
        self,
        type: str,
        spec: Mapping[str, Any] | None = None,
        *,
        conn: AnyConnection | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> Handle | Awaitable[Handle]:
        """Enqueue a task by the name of its type, without its handler."""
        made = self.enqueue_specs(type, [spec or {}], conn=conn, options=options)
        if isinstance(made, list):
            return made[0]
        return _first(made)

    def enqueue_specs(
        self,
        type: str,
        specs: Sequence[Mapping[str, Any]],
        *,
        conn: AnyConnection | None,
        options: EnqueueOptions,
        define: Mapping[str, Any] | None = None,
    ) -> list[Handle] | Awaitable[list[Handle]]:
        """Enqueue many of one type: at once on a plain connection, else to be awaited."""
        queue, given, keys = make_options(options, len(specs), define)
        call: dict[str, Any] = {
            "specs": [encode(spec) for spec in specs],
            "options": encode(given, name="options"),
            "keys": keys,
        }
        if conn is not None and is_sync(conn):
            return self._handles(enqueue_sync(conn, queue, type, **call))
        return self._enqueue_later(conn, queue, type, call)

    async def _enqueue_later(
        self, conn: Any, queue: str, type: str, call: dict[str, Any]
    ) -> list[Handle]:
        if conn is not None:
            return self._handles(await enqueue_async(conn, queue, type, **call))
        return self._handles(await (await self.gateway()).enqueue_batch(queue, type, **call))

    def _handles(self, made: list[Enqueued]) -> list[Handle]:
        return [Handle(cast("Treadle", self), each.id, created=each.created) for each in made]


async def _first(made: Awaitable[list[Handle]]) -> Handle:
    return (await made)[0]
