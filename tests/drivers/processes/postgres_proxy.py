"""A proxy in front of PostgreSQL that counts requests and loses answers on purpose."""

import asyncio
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Literal, Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

READY = b"Z"
When = Literal["before", "after", "silent"]


class Proxy:
    """A Unix socket that leads to the server of a URL."""

    def __init__(self, url: str) -> None:
        self._target = conninfo_to_dict(url)
        self._folder = Path(tempfile.mkdtemp(prefix="tp-"))
        self._plans: list[tuple[bytes, When]] = []
        self._links: set[_Link] = set()
        self._slow: dict[bytes, float] = {}
        self._mute = False
        self.requests = 0
        self.swallowed = 0
        self.lost: list[bytes] = []
        self.url = make_conninfo(url, host=str(self._folder), port=5432)

    def lose(self, needle: str, when: When = "after") -> None:
        """Cut the connection of the next request with this text, before or after it is done.

        With "silent" the connection stays open, and neither the request nor an answer passes.
        """
        self._plans.append((needle.encode(), when))

    def slow(self, needle: str, seconds: float) -> None:
        """Hold back the answers to requests with this text."""
        self._slow[needle.encode()] = seconds

    def silence(self, *, new: bool = False) -> None:
        """Stop forwarding on the current connections, which stay open.

        New ones work, unless they are to be silent too.
        """
        self._mute = new
        for link in self._links:
            link.silent = True

    def speak(self) -> None:
        """Let new connections work again; the silent ones stay silent."""
        self._mute = False

    def held_back(self, request: bytes) -> float:
        """The delay of the answer to this request."""
        return max((time for needle, time in self._slow.items() if needle in request), default=0)

    async def __aenter__(self) -> Self:
        path = self._folder / ".s.PGSQL.5432"
        self._server = await asyncio.start_unix_server(self._serve, path=path)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for link in list(self._links):
            await link.close()
        shutil.rmtree(self._folder)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = str(self._target.get("host") or "localhost"), self._target.get("port") or 5432
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, int(port))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(self, (reader, writer), await self._connect())
        link.silent = self._mute
        self._links.add(link)
        await link.run()
        self._links.discard(link)

    def planned(self, request: bytes) -> When | None:
        """The plan for this request; a plan is used once."""
        for plan in self._plans:
            if plan[0] in request:
                self._plans.remove(plan)
                return plan[1]
        return None


class _Link:
    """One connection of a client and the one behind it."""

    def __init__(
        self,
        proxy: Proxy,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._proxy = proxy
        self._client, self._to_client = client
        self._server, self._to_server = server
        self._request = b""
        self._losing = False
        self.silent = False
        self._both: list[asyncio.Future[None]] = []

    async def run(self) -> None:
        """Forward data in both directions until one side disconnects."""
        self._both = [asyncio.ensure_future(self._up()), asyncio.ensure_future(self._down())]
        await asyncio.wait(self._both, return_when=asyncio.FIRST_COMPLETED)
        await self.close()

    async def close(self) -> None:
        """Close both connections."""
        for each in self._both:
            each.cancel()
        await asyncio.gather(*self._both, return_exceptions=True)
        for writer in (self._to_client, self._to_server):
            writer.close()

    async def _up(self) -> None:
        with suppress(ConnectionError):
            while data := await self._client.read(65536):
                if self.silent:
                    self._proxy.swallowed += 1
                    continue
                self._request += data
                plan = None if self._losing else self._proxy.planned(self._request)
                if plan == "silent":
                    self.silent = True
                    self._proxy.swallowed += 1
                    continue
                if plan == "before":
                    self._proxy.lost.append(self._request)
                    return
                self._losing = self._losing or plan == "after"
                self._to_server.write(data)
                await self._to_server.drain()

    async def _down(self) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await self._server.readexactly(5)
                body = await self._server.readexactly(int.from_bytes(head[1:]) - 4)
                if head[:1] == READY:
                    await asyncio.sleep(self._proxy.held_back(self._request))
                if self.silent:
                    self._proxy.swallowed += 1
                elif not self._losing:
                    self._to_client.write(head + body)
                    await self._to_client.drain()
                if head[:1] != READY:
                    continue
                # The transaction is committed: now the answer can get lost.
                if self._losing:
                    self._proxy.lost.append(self._request)
                    return
                self._proxy.requests += 1
                self._request = b""
