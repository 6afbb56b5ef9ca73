"""Connections: one pool per process, and single ones for LISTEN.

Connections are in autocommit: one call of a function is one transaction and one round trip.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool

from treadle.db.translate import translated
from treadle.jsontext import decode

Connection = AsyncConnection[tuple[Any, ...]]
Pool = AsyncConnectionPool[Connection]


def options(*, prepare: bool, connect_timeout_s: float, name: str) -> Mapping[str, Any]:
    """What every connection of treadle is opened with."""
    return {
        "autocommit": True,
        # Behind a transaction pooler a prepared statement may be on another server connection.
        "prepare_threshold": 0 if prepare else None,
        "connect_timeout": max(1, round(connect_timeout_s)),
        "application_name": name,
        "target_session_attrs": "read-write",
    }


def make_pool(
    url: str,
    *,
    size: int,
    prepare: bool,
    connect_timeout_s: float,
    statement_timeout_s: float = 0,
    name: str = "treadle",
) -> Pool:
    """A pool that is not open yet; it reconnects by itself.

    Behind a transaction pooler a limit for statements cannot be sent: it would refuse the
    connection, or keep the limit for others.
    """
    given = dict(options(prepare=prepare, connect_timeout_s=connect_timeout_s, name=name))
    if statement_timeout_s > 0 and prepare:
        given["options"] = _limited(url, statement_timeout_s)
    return AsyncConnectionPool(
        url,
        min_size=1,
        max_size=size,
        open=False,
        timeout=connect_timeout_s,
        reconnect_timeout=float("inf"),
        configure=_configure,
        kwargs=given,
        connection_class=Connection,
    )


async def connect(url: str, *, connect_timeout_s: float, name: str) -> Connection:
    """One connection of its own, outside the pool."""
    with translated():
        return await AsyncConnection.connect(
            url, **options(prepare=False, connect_timeout_s=connect_timeout_s, name=name)
        )


def _limited(url: str, seconds: float) -> str:
    """The options of a URL with a limit for statements; one that it has already stays."""
    with translated():
        given = conninfo_to_dict(url).get("options") or ""
    return f"-c statement_timeout={round(seconds * 1000)} {given}".strip()


async def _configure(conn: Connection) -> None:
    set_json_loads(decode, conn)


def is_sync(conn: object) -> TypeGuard[psycopg.Connection[Any]]:
    """Whether a caller's connection is a plain psycopg one."""
    return isinstance(conn, psycopg.Connection)
