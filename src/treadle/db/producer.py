"""Enqueue on the caller's own connection: the tasks are there exactly if the caller commits.

Takes a psycopg connection, plain or async, in whatever transaction it is.
"""

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from treadle.db.gateway import enqueue_call
from treadle.db.translate import translated
from treadle.models import Enqueued

SyncConnection = psycopg.Connection[Any]
AsyncConn = AsyncConnection[Any]
AnyConnection = SyncConnection | AsyncConn


def enqueue_here(
    conn: SyncConnection,
    queue: str,
    type: str,
    *,
    specs: Sequence[bytes],
    options: bytes,
    keys: Sequence[str | None] | None,
) -> list[Enqueued]:
    """Enqueue on a plain connection."""
    query, *parameters = enqueue_call(queue, type, specs=specs, options=options, keys=keys)
    with translated(), conn.cursor(row_factory=tuple_row) as cursor:
        cursor.execute(query, parameters)
        return [Enqueued(*row) for row in cursor.fetchall()]


async def enqueue_there(
    conn: AsyncConnection[Any],
    queue: str,
    type: str,
    *,
    specs: Sequence[bytes],
    options: bytes,
    keys: Sequence[str | None] | None,
) -> list[Enqueued]:
    """Enqueue on an async connection."""
    query, *parameters = enqueue_call(queue, type, specs=specs, options=options, keys=keys)
    with translated():
        async with conn.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(query, parameters)
            return [Enqueued(*row) for row in await cursor.fetchall()]
