"""LISTEN on a connection of its own and pass notifications on.

NOTIFY is a hint: when the listener is deaf or gone, workers poll. After every (re)connect it
listens first and then says so, so that whoever waits looks once more. An echo checks its health: a
connection that does not bring it back in time is given up, like one that is lost.
"""

import random
from collections.abc import Callable, Sequence

import anyio
import psycopg
import structlog
from psycopg import sql

from treadle.db.connection import Connection
from treadle.db.pool import connect
from treadle.errors import TreadleError

log = structlog.get_logger(__name__)
ECHO = "treadle_echo"
ECHO_EVERY_S = 30.0
ECHO_WITHIN_S = 5.0
DEAF_FOR_S = 300.0
_DEAF = "A transaction pooler? Set TREADLE_LISTEN_URL to a direct connection; it polls until then."


class _Deaf(Exception):
    """LISTEN is accepted on this connection, but nothing is heard."""


class Listener:
    """Calls `heard` with a channel name, or with None after a (re)connect.

    A notification with a payload goes to `told` instead, where that is given.
    """

    def __init__(
        self,
        url: str,
        channels: Sequence[str],
        heard: Callable[[str | None], None],
        *,
        told: Callable[[str, str], None] | None = None,
        connect_timeout_s: float = 10.0,
        echo_every_s: float = ECHO_EVERY_S,
    ) -> None:
        self._url = url
        self._channels = list(channels)
        self._heard = heard
        self._told = told
        self._connect_timeout_s = connect_timeout_s
        self._echo_every_s = echo_every_s
        self.listening = False

    async def run(self) -> None:
        """Listen for ever; connection trouble is logged and mended."""
        delay = 0.2
        while True:
            try:
                conn = await self._connect()
                try:
                    await self._listen(conn)
                    delay = 0.2
                    await self._check(conn)
                    await self._hear(conn)
                finally:
                    self.listening = False
                    with anyio.CancelScope(shield=True):
                        await conn.close()
            except _Deaf:
                log.warning("listener.deaf", hint=_DEAF, retry_in_s=DEAF_FOR_S)
                delay = DEAF_FOR_S
            except (psycopg.Error, TreadleError, OSError) as error:
                log.warning("listener.lost", error=str(error).strip(), retry_in_s=round(delay, 1))
            await anyio.sleep(random.uniform(delay / 2, delay))
            delay = min(delay * 2, 30.0)

    async def _connect(self) -> Connection:
        """A connection whose statements have to be answered soon: they are all small."""
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
        self._heard(None)

    async def _check(self, conn: Connection) -> None:
        """Find out whether a pooler stands in between that gives connections by transaction.

        An echo from the same connection would not tell: it may come back on the way.
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
            # The server connection goes on to others; it should not carry our channels.
            await conn.execute("unlisten *")
            raise _Deaf

    async def _hear(self, conn: Connection) -> None:
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
        if notify.payload and self._told is not None:
            self._told(notify.channel, notify.payload)
        else:
            self._heard(notify.channel)

    @staticmethod
    def _echo_channel(conn: Connection) -> str:
        return f"{ECHO}.{conn.info.backend_pid}"
