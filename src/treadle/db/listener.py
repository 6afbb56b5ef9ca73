"""LISTEN on dedicated connections, for workers, services and readers of events.

NOTIFY is only a hint: without notifications, workers and readers poll. After every (re)connect a
`Listener` starts to listen and then calls back, so that its caller polls once more. It checks its
connection with an echo: if the echo does not arrive in time, the connection is replaced.
"""

import random
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import anyio
import psycopg
import structlog
from psycopg import sql

from treadle.db.events import Events
from treadle.db.pool import Connection, connect
from treadle.errors import TreadleError

log = structlog.get_logger(__name__)
ECHO = "treadle_echo"
ECHO_EVERY_S = 30.0
ECHO_WITHIN_S = 5.0
BLOCKED_FOR_S = 300.0
_BLOCKED_HINT = (
    "Behind a transaction pooler, set TREADLE_LISTEN_URL to a direct connection. Until then,"
    " only polling is used."
)
LISTEN_S = 60.0
CONNECT_S = 10.0
ANSWER_S = 5.0


class _NotificationsBlocked(Exception):
    """LISTEN succeeds on this connection, but no notifications arrive."""


class Listener:
    """Calls `on_notify` with a channel name, or with None after a (re)connect.

    A notification with a payload goes to `on_payload` instead, if that is given.
    """

    def __init__(
        self,
        url: str,
        channels: Sequence[str],
        on_notify: Callable[[str | None], None],
        *,
        on_payload: Callable[[str, str], None] | None = None,
        connect_timeout_s: float = 10.0,
        echo_every_s: float = ECHO_EVERY_S,
    ) -> None:
        self._url = url
        self._channels = list(channels)
        self._on_notify = on_notify
        self._on_payload = on_payload
        self._connect_timeout_s = connect_timeout_s
        self._echo_every_s = echo_every_s
        self.listening = False

    async def run(self) -> None:
        """Listen until cancelled; reconnect after errors."""
        delay = 0.2
        while True:
            try:
                conn = await self._connect()
                try:
                    await self._listen(conn)
                    delay = 0.2
                    await self._check(conn)
                    await self._receive(conn)
                finally:
                    self.listening = False
                    with anyio.CancelScope(shield=True):
                        await conn.close()
            except _NotificationsBlocked:
                log.warning("listener.blocked", hint=_BLOCKED_HINT, retry_in_s=BLOCKED_FOR_S)
                delay = BLOCKED_FOR_S
            except (psycopg.Error, TreadleError, OSError) as error:
                log.warning(
                    "listener.disconnected", error=str(error).strip(), retry_in_s=round(delay, 1)
                )
            await anyio.sleep(random.uniform(delay / 2, delay))
            delay = min(delay * 2, 30.0)

    async def _connect(self) -> Connection:
        """Open a connection with a short call timeout: all its statements are small."""
        with anyio.fail_after(2 * self._connect_timeout_s):
            return await connect(
                self._url,
                connect_timeout_s=self._connect_timeout_s,
                name="treadle-listener",
                call_timeout_s=ECHO_WITHIN_S,
            )

    async def _listen(self, conn: Connection) -> None:
        for channel in [*self._channels, self._echo_channel(conn)]:
            await conn.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        self.listening = True
        self._on_notify(None)

    async def _check(self, conn: Connection) -> None:
        """Raise if a transaction pooler keeps notifications from arriving.

        An echo sent from the same connection is no proof: it may arrive on the same connection.
        """
        cursor = await conn.execute("select pg_backend_pid()")
        if await cursor.fetchone() == (conn.info.backend_pid,):
            return
        other = await self._connect()
        try:
            await self._call(other, self._echo_channel(conn))
        finally:
            await other.close()
        if not await self._echoed(conn):
            # The pooler gives the server connection to others, so it must not keep listening.
            await conn.execute("unlisten *")
            raise _NotificationsBlocked

    async def _receive(self, conn: Connection) -> None:
        echo = self._echo_channel(conn)
        while True:
            async for notify in conn.notifies(timeout=self._echo_every_s):
                if notify.channel != echo:
                    self._pass_on(notify)
            await self._call(conn, echo)
            if not await self._echoed(conn):
                raise psycopg.OperationalError("no echo")

    async def _call(self, conn: Connection, channel: str) -> None:
        await conn.execute("select pg_notify(%s, '')", (channel,))

    async def _echoed(self, conn: Connection) -> bool:
        echo = self._echo_channel(conn)
        async for notify in conn.notifies(timeout=ECHO_WITHIN_S):
            if notify.channel == echo:
                return True
            self._pass_on(notify)
        return False

    def _pass_on(self, notify: psycopg.Notify) -> None:
        if notify.payload and self._on_payload is not None:
            self._on_payload(notify.channel, notify.payload)
        else:
            self._on_notify(notify.channel)

    @staticmethod
    def _echo_channel(conn: Connection) -> str:
        return f"{ECHO}.{conn.info.backend_pid}"


class EventListener:
    """Waits for events on a dedicated connection; without a URL it only sleeps."""

    def __init__(self, events: Events, url: str | None, kinds: Sequence[str] | None) -> None:
        self._events = events
        self._url = url
        self._kinds = kinds
        self._name = f"follower:{secrets.token_hex(8)}"
        self._conn: Connection | None = None
        self._until = 0.0
        self._retry_at = 0.0

    async def open(self) -> None:
        """Listen and request notifications; errors are logged, since readers also poll."""
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
                # Repeated, because a dead connection is noticed by a statement that fails.
                await self._conn.execute("listen treadle_events")
                await self._events.listen(self._name, LISTEN_S, self._kinds)
                self._until = now + LISTEN_S
        except (psycopg.Error, TreadleError, OSError) as error:
            log.warning("events.listen_failed", error=str(error).strip())
            self._retry_at = now + LISTEN_S

    async def wait(self, seconds: float) -> None:
        """Wait for a notification, for at most this time."""
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
                    await self._events.listen(self._name, 0)
