"""The server that treadle is compared with: `python -m bench.bare URL POOL` or `... raw`.

With a database it is FastAPI with a pool: GET runs `select 1` and POST inserts one row. `raw` is a
socket that always sends the same response: it shows how much the load generator can send.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import uvicorn
import uvloop
from fastapi import FastAPI
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool

HOST = "127.0.0.1"
ANSWER = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 8\r\n\r\n{"ok":1}'


def say(port: int) -> None:
    """Print the URL for the process that started this one."""
    print("BENCH " + json.dumps({"url": f"http://{HOST}:{port}"}), flush=True)


def make_app(url: str, pool_size: int) -> FastAPI:
    pool = AsyncConnectionPool(
        url,
        min_size=1,
        max_size=pool_size,
        open=False,
        kwargs={"autocommit": True, "prepare_threshold": 0},
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with pool:
            async with pool.connection() as conn:
                await conn.execute("create table public.bench_bare (body jsonb)")
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/")
    async def look() -> dict[str, int]:
        async with pool.connection() as conn:
            row = await (await conn.execute("select 1")).fetchone()
        return {"ok": row[0] if row else 0}

    @app.post("/", status_code=201)
    async def keep(body: dict[str, Any]) -> dict[str, int]:
        async with pool.connection() as conn:
            await conn.execute("insert into public.bench_bare values (%s)", (Jsonb(body),))
        return {"ok": 1}

    return app


class AnnouncingServer(uvicorn.Server):
    """A server that prints its URL."""

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup()
        say(self.servers[0].sockets[0].getsockname()[1])


async def serve(url: str, pool_size: int) -> None:
    """Run the server with the same settings as `treadle server`."""
    config = uvicorn.Config(
        make_app(url, pool_size),
        host=HOST,
        port=0,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        ws="none",
        http="h11",
    )
    await AnnouncingServer(config).serve()


class Raw(asyncio.Protocol):
    """Sends one response for each chunk of data."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(ANSWER)


async def serve_raw() -> None:
    server = await asyncio.get_running_loop().create_server(Raw, HOST, 0)
    say(server.sockets[0].getsockname()[1])
    await server.serve_forever()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["raw"]:
            uvloop.run(serve_raw())
        case [url, pool_size]:
            uvloop.run(serve(url, int(pool_size)))
