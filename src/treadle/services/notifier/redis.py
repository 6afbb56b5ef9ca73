"""Deliver events to a Redis stream: one XADD for each event, to a checked address."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import anyio

from treadle.db.webhooks import WebhookTarget
from treadle.errors import extra
from treadle.services.notifier.http import Answer
from treadle.services.outbound import PORTS, AddressRefused, OutboundPolicy, checked_addresses


class RedisSender:
    """Appends to one stream over one connection."""

    def __init__(self, target: WebhookTarget, policy: OutboundPolicy) -> None:
        self._target = target
        self._policy = policy
        self._client: Any = None

    async def send(self, message_id: str, kind: str, document: str) -> Answer:
        """Append one event; after an error the next call opens a new connection."""
        from redis.exceptions import RedisError

        began = time.monotonic()
        error: str | None = None
        try:
            with anyio.fail_after(self._policy.timeout_s):
                if self._client is None:
                    self._client = await self._connect()
                await self._client.xadd(
                    self._target.stream,
                    {"id": message_id, "kind": kind, "data": document},
                    maxlen=self._target.max_length,
                    approximate=True,
                )
        except (RedisError, AddressRefused, OSError, ValueError) as problem:
            reason = (
                f"no response within {self._policy.timeout_s:g} s"
                if type(problem) is TimeoutError
                else str(problem).strip() or type(problem).__name__
            )
            # The errors of a lost connection do not name the server.
            error = f"{_place(self._target.url)}: {reason}"
            await self.close()
        return Answer(None, error, int((time.monotonic() - began) * 1000))

    async def _connect(self) -> Any:
        from redis.asyncio import Redis
        from redis.asyncio.connection import Connection, ConnectionPool, SSLConnection
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        url = urlsplit(self._target.url)
        host, port = url.hostname or "", url.port or PORTS["redis"]
        addresses = await checked_addresses(
            url.scheme, host, port, policy=self._policy, allowed=self._target.allow_private
        )

        class VerifiedConnection(SSLConnection):
            """Verifies the certificate against the host name, not the address."""

            def _connection_arguments(self) -> Any:
                return {**super()._connection_arguments(), "server_hostname": host}

        pool = ConnectionPool(
            connection_class=VerifiedConnection if url.scheme == "rediss" else Connection,
            max_connections=1,
            host=addresses[0],
            port=port,
            socket_timeout=self._policy.timeout_s,
            socket_connect_timeout=self._policy.timeout_s / 2,
            # A retry inside the client could append an event twice.
            retry=Retry(NoBackoff(), 0),
            **_login(url),
        )
        return Redis(connection_pool=pool)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with anyio.move_on_after(1, shield=True):
                await client.connection_pool.disconnect()


def _place(url: str) -> str:
    """Return host and port of a URL, without the password, even if the URL is invalid."""
    return url.partition("://")[2].rpartition("@")[2].partition("/")[0]


def _login(url: SplitResult) -> dict[str, Any]:
    database = url.path.strip("/")
    return {
        "db": int(database) if database else 0,
        "username": unquote(url.username) if url.username else None,
        "password": unquote(url.password) if url.password else None,
    }


@asynccontextmanager
async def redis_sender(target: WebhookTarget, policy: OutboundPolicy) -> AsyncIterator[RedisSender]:
    """Open a sender for one stream."""
    with extra("redis", "Redis streams need redis"):
        import_module("redis.asyncio")
    sender = RedisSender(target, policy)
    try:
        yield sender
    finally:
        await sender.close()
