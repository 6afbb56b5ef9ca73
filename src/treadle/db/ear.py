"""Hear that something happened, for who reads events; reading does not depend on it."""

import secrets
import time
from collections.abc import Sequence
from contextlib import suppress

import anyio
import psycopg
import structlog

from treadle.db.connection import Connection
from treadle.db.pool import connect
from treadle.db.triggers import TriggerCalls
from treadle.errors import TreadleError

log = structlog.get_logger(__name__)
LISTEN_S = 60.0
CONNECT_S = 10.0
ANSWER_S = 5.0


class Ear:
    """Listens on a connection of its own; without one it only sleeps."""

    def __init__(self, gateway: TriggerCalls, url: str | None, kinds: Sequence[str] | None) -> None:
        self._gateway = gateway
        self._url = url
        self._kinds = kinds
        self._name = f"follower:{secrets.token_hex(8)}"
        self._conn: Connection | None = None
        self._until = 0.0
        self._retry_at = 0.0

    async def open(self) -> None:
        """Listen, and say for how long; trouble with it is no trouble for who reads."""
        now = time.monotonic()
        if self._url is None or now < self._retry_at:
            return
        try:
            if self._conn is None or self._conn.closed:
                with anyio.fail_after(2 * CONNECT_S):
                    self._conn = await connect(
                        self._url,
                        connect_timeout_s=CONNECT_S,
                        name="treadle-events",
                        call_timeout_s=ANSWER_S,
                    )
                self._until = 0.0
            if now > self._until - LISTEN_S / 2:
                # Also again: a connection that fell silent is noticed by its missing answer.
                await self._conn.execute("listen treadle_events")
                await self._gateway.listen_events(self._name, LISTEN_S, self._kinds)
                self._until = now + LISTEN_S
        except (psycopg.Error, TreadleError, OSError) as error:
            log.warning("events.not_listening", error=str(error).strip())
            self._retry_at = now + LISTEN_S

    async def wait(self, seconds: float) -> None:
        """Until something is new, but no longer than this."""
        if self._conn is not None and not self._conn.closed:
            with suppress(psycopg.Error):
                async for _ in self._conn.notifies(timeout=seconds, stop_after=1):
                    pass
                return
        await anyio.sleep(seconds)

    async def close(self) -> None:
        with anyio.CancelScope(shield=True), suppress(psycopg.Error, TreadleError, OSError):
            if self._conn is not None:
                await self._conn.close()
            if self._until:
                with anyio.move_on_after(2):
                    await self._gateway.listen_events(self._name, 0)
