"""A TCP proxy on loopback in front of PostgreSQL whose connections can stop responding.

A silent connection stays open and passes no bytes in either direction: neither side notices, as
behind a firewall that dropped the connection. The kernel still acknowledges what the
client sends, so only a deadline of the client's own notices it.
"""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Self, TypeVar

from psycopg.conninfo import conninfo_to_dict, make_conninfo

T = TypeVar("T")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class TcpProxy:
    """Listens on a port of its own and connects to the server of a URL; runs in a thread."""

    def __init__(self, url: str) -> None:
        self._target = conninfo_to_dict(url)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._links: set[_Link] = set()
        self._new_are_silent = False
        self._server = self._run(self._listen())
        self.port = int(self._server.sockets[0].getsockname()[1])
        self.url = make_conninfo(url, host="127.0.0.1", port=self.port)

    def silence(self, *, new: bool = False) -> int:
        """Silence all connections there are, and those to come if `new`; returns how many."""
        return self._run(self._silence(new))

    def restore(self) -> None:
        """Let new connections work again; silent ones stay silent."""
        self._new_are_silent = False

    def close(self) -> None:
        """Close every connection and stop."""
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def _silence(self, new: bool) -> int:
        self._new_are_silent = new
        fresh = [link for link in self._links if not link.silent]
        for link in fresh:
            link.silent = True
        return len(fresh)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link((reader, writer), await self._connect(), silent=self._new_are_silent)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    async def _connect(self) -> Streams:
        host, port = str(self._target.get("host") or "localhost"), self._target.get("port") or 5432
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, int(port))

    async def _close(self) -> None:
        self._server.close()
        for link in list(self._links):
            link.close()
        if left := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(left, timeout=5)


class _Link:
    """One connection of a client and the one behind it."""

    def __init__(self, client: Streams, server: Streams, *, silent: bool) -> None:
        self._client = client
        self._server = server
        self.silent = silent

    async def run(self) -> None:
        """Forward data in both directions until both sides have disconnected."""
        await asyncio.gather(
            self._pump(self._client[0], self._server[1]),
            self._pump(self._server[0], self._client[1]),
        )

    def close(self) -> None:
        self._client[1].close()
        self._server[1].close()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65536):
                if not self.silent:
                    sink.write(data)
                    await sink.drain()
        # The end of a silent connection does not arrive either.
        if not self.silent:
            sink.close()
