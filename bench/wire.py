"""Count the statements that a client sends, with a proxy between client and server.

A proxy on a Unix socket reads the frames of the PostgreSQL protocol and counts `Q` (simple query)
and `E` (execute). The server's own counters would add autovacuum and miss statements that share a
transaction. The way to the server is not encrypted, so it is meant for a server on this machine.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from psycopg.conninfo import conninfo_to_dict

PORT = 5432
STATEMENTS = (b"Q", b"E")
LOGIN = ("user", "password")


class Counter:
    """Counts the statements of a connection."""

    def __init__(self, url: str) -> None:
        self.statements = 0
        self.target = {key: str(value) for key, value in conninfo_to_dict(url).items() if value}

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until either side closes, or the proxy ends."""
        host, port = self.target.get("host", "localhost"), self.target.get("port", "5432")
        if host.startswith("/"):
            up = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            up = await asyncio.open_connection(host, int(port))
        ways = [self.count(reader, up[1]), copy(up[0], writer)]
        try:
            await asyncio.gather(*ways, return_exceptions=True)
        except asyncio.CancelledError:
            return
        finally:
            up[1].close()
            writer.close()

    async def count(self, reader: asyncio.StreamReader, up: asyncio.StreamWriter) -> None:
        """Every frame has a type and a length, except for the first, which has only a length."""
        kind = b""
        while True:
            head = await reader.readexactly(4)
            body = await reader.readexactly(int.from_bytes(head) - 4)
            up.write(kind + head + body)
            self.statements += kind in STATEMENTS
            await up.drain()
            kind = await reader.read(1)
            if not kind:
                up.close()
                return


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()


@contextmanager
def counted(url: str) -> Iterator[tuple[str, Counter]]:
    """Yield a URL that leads to the same database through a counter."""
    counter = Counter(url)
    listening, finished = threading.Event(), threading.Event()
    with tempfile.TemporaryDirectory(prefix="tb-") as folder:

        async def proxy() -> None:
            await asyncio.start_unix_server(counter.pass_on, Path(folder) / f".s.PGSQL.{PORT}")
            listening.set()
            await asyncio.to_thread(finished.wait)

        thread = threading.Thread(target=lambda: asyncio.run(proxy()), daemon=True)
        thread.start()
        listening.wait()
        login = {key: counter.target[key] for key in counter.target if key in LOGIN}
        query = urlencode({**login, "host": folder, "port": str(PORT)})
        try:
            yield f"postgresql:///{counter.target['dbname']}?{query}", counter
        finally:
            finished.set()
            thread.join()
