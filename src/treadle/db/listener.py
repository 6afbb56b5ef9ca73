"""LISTEN on a connection of its own and pass notifications on.

NOTIFY is a hint: when the listener is deaf or gone, workers poll. After every (re)connect it
listens first and then says so, so that whoever waits looks once more. An echo checks its health.
"""

import random
from collections.abc import Callable, Sequence

import anyio
import psycopg
import structlog
from psycopg import sql

from treadle.db.pool import Connection, connect
from treadle.errors import TreadleError

log = structlog.get_logger(__name__)
ECHO = "treadle_echo"
ECHO_EVERY_S = 30.0
ECHO_WITHIN_S = 5.0


class Listener:
    """Calls `heard` with a channel name, or with None after a (re)connect."""

    def __init__(
        self,
        url: str,
        channels: Sequence[str],
        heard: Callable[[str | None], None],
        *,
        connect_timeout_s: float = 10.0,
        echo_every_s: float = ECHO_EVERY_S,
    ) -> None:
        self._url = url
        self._channels = list(channels)
        self._heard = heard
        self._connect_timeout_s = connect_timeout_s
        self._echo_every_s = echo_every_s
        self.listening = False

    async def run(self) -> None:
        """Listen for ever; connection trouble is logged and mended."""
        delay = 0.2
        while True:
            try:
                conn = await connect(
                    self._url, connect_timeout_s=self._connect_timeout_s, name="treadle-listener"
                )
                try:
                    await self._listen(conn)
                    delay = 0.2
                    await self._hear(conn)
                finally:
                    self.listening = False
                    with anyio.CancelScope(shield=True):
                        await conn.close()
            except (psycopg.Error, TreadleError, OSError) as error:
                log.warning("listener.lost", error=str(error).strip(), retry_in_s=round(delay, 1))
            await anyio.sleep(random.uniform(delay / 2, delay))
            delay = min(delay * 2, 30.0)

    async def _listen(self, conn: Connection) -> None:
        for channel in [*self._channels, self._echo_channel(conn)]:
            await conn.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        self.listening = True
        self._heard(None)

    async def _hear(self, conn: Connection) -> None:
        echo = self._echo_channel(conn)
        while True:
            async for notify in conn.notifies(timeout=self._echo_every_s):
                if notify.channel != echo:
                    self._heard(notify.channel)
            await conn.execute("select pg_notify(%s, '')", (echo,))
            answered = False
            async for notify in conn.notifies(timeout=ECHO_WITHIN_S):
                if notify.channel == echo:
                    answered = True
                    break
                self._heard(notify.channel)
            if not answered:
                raise psycopg.OperationalError(
                    "no echo: does this connection go through a transaction pooler? "
                    "Set TREADLE_LISTEN_URL to a direct one"
                )

    @staticmethod
    def _echo_channel(conn: Connection) -> str:
        return f"{ECHO}.{conn.info.backend_pid}"
