"""Responses are bounded: pages in bytes, and clients that do not read in time."""

import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.abc
import httpx2
import pytest
import uvicorn
from starlette.requests import Request

from tests.drivers.http.servers import Conn
from tests.drivers.http.sockets import connect, head
from tests.drivers.processes.children import until
from treadle.api import server as api_server
from treadle.api.paging import MOST_BYTES, Paging
from treadle.api.server import bind

LARGE = 32 * 2**20


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """The loops that a server runs on."""
    return "asyncio", {"use_uvloop": request.param}


def emit_large(sql: Conn, *sizes: int) -> list[int]:
    """The ids of events with so many bytes, the newest first."""
    query = "select treadle.emit_event('big', jsonb_build_object('x', repeat('x', %s)))"
    found = [sql.execute(query, [size]).fetchone() for size in sizes]
    return [row[0] for row in found if row is not None][::-1]


def pages(http: httpx2.Client, url: str) -> Iterator[httpx2.Response]:
    """A page, and those that follow."""
    answer = http.get(url)
    yield answer
    while answer.json()["next_cursor"] is not None:
        answer = http.get(answer.links["next"]["url"])
        yield answer


def test_a_page_ends_when_it_is_large(http: httpx2.Client, sql: Conn) -> None:
    ids = emit_large(sql, *[1_000_000] * 9)

    found = list(pages(http, "/v1/events?kind=big&limit=9"))

    items = [page.json()["items"] for page in found]
    assert [len(each) for each in items] == [4, 4, 1]
    assert [item["id"] for each in items for item in each] == ids
    assert max(len(page.content) for page in found) < MOST_BYTES + 1000
    assert "next" not in found[-1].links


def test_a_page_has_one_item_however_large() -> None:
    rows = [{"id": number, "x": "x" * MOST_BYTES} for number in range(2)]
    request = Request({"type": "http", "path": "/", "headers": [], "query_string": b""})

    page = json.loads(bytes(Paging(request, 2, None).answer(rows, "id").body))

    assert page["items"] == rows[:1]
    assert Paging(request, 2, page["next_cursor"]).after(int) == 0


async def large(scope: Any, receive: Any, send: Any) -> None:
    """Answers with more than any system keeps for a client."""
    length = (b"content-length", b"%d" % LARGE)
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": bytes(LARGE)})


async def fill(server: uvicorn.Server, send: Any, most: int) -> None:
    """Send until more than this is left for the client, but no more than the next piece."""
    while waiting(server) <= most:
        await send({"type": "http.response.body", "body": bytes(1000), "more_body": True})
        await anyio.sleep(0.001)


def waiting(server: uvicorn.Server) -> int:
    """How much the server keeps for its clients."""
    return sum(each.transport.get_write_buffer_size() for each in server.server_state.connections)


@asynccontextmanager
async def serving(app: Any = large) -> AsyncIterator[tuple[str, uvicorn.Server]]:
    """A server of these answers, with our connections."""
    [bound] = bind("127.0.0.1", 0)
    # The system keeps little: what is read is seen at once.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
    config = uvicorn.Config(
        app,
        http=api_server.Connection,
        lifespan="off",
        log_config=None,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=1,
    )
    server = api_server.LimitedServer(config, api_server.ConnectionLimits(100, 10))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [bound])
        await until(lambda: server.started)
        yield f"http://127.0.0.1:{bound.getsockname()[1]}", server
        server.should_exit = True


@contextmanager
def asking(url: str, *headers: str, room: int = 4096) -> Iterator[socket.socket]:
    """A client that asks, and has little room for what it does not read."""
    with connect(url) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        line.sendall(head("GET", "/", *headers))
        yield line


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("headers", [[], ["Connection: close"]])
async def test_a_client_that_does_not_read_is_given_up(
    monkeypatch: pytest.MonkeyPatch, headers: list[str]
) -> None:
    monkeypatch.setattr(api_server, "READ_S", 0.3)
    async with serving() as (url, server):
        with asking(url, *headers):
            await until(lambda: server.server_state.total_requests == 1)
            await until(lambda: not server.server_state.connections)


@pytest.mark.requirement("B10")
async def test_a_client_that_asks_on_and_does_not_read_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api_server, "READ_S", 0.3)
    async with serving() as (url, server):
        with asking(url) as line:
            line.sendall(head("GET", "/") * 3)
            await until(lambda: server.server_state.total_requests == 1)
            await until(lambda: not server.server_state.connections)
            await until(lambda: not server.server_state.tasks)
            assert server.server_state.total_requests == 1


@pytest.mark.requirement("B10")
@pytest.mark.parametrize(
    ("headers", "more"), [([], b""), (["Connection: close"], b""), ([], b"nonsense\r\n\r\n")]
)
async def test_a_client_that_leaves_a_little_is_given_up(
    monkeypatch: pytest.MonkeyPatch, headers: list[str], more: bytes
) -> None:
    monkeypatch.setattr(api_server, "READ_S", 0.3)

    async def full(scope: Any, receive: Any, send: Any) -> None:
        """Answers with no more than the system keeps, and a little."""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await fill(server, send, 0)
        await send({"type": "http.response.body", "body": b""})

    async with serving(full) as (url, server):
        with asking(url, *headers) as line:
            await until(lambda: server.server_state.total_requests == 1)
            assert 0 < waiting(server) < 10_000
            [connection] = server.server_state.connections
            # As the transport says when there was more.
            connection.resume_writing()
            line.sendall(more)
            await until(lambda: not server.server_state.connections)


async def test_a_client_that_has_read_all_has_its_time_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api_server, "READ_S", 3.0)
    was_read, is_full = anyio.Event(), anyio.Event()

    async def twice(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await fill(server, send, 64 * 1024)
        await was_read.wait()
        await fill(server, send, 5000)
        is_full.set()
        # The first message is the request; the second comes when the client has disconnected.
        await receive()
        await receive()

    async with serving(twice) as (url, server):
        with asking(url, room=64 * 1024) as line:
            await until(lambda: waiting(server) > 64 * 1024)
            paused = time.monotonic()
            line.setblocking(False)
            await until(lambda: read(line) and waiting(server) == 0)
            was_read.set()
            await is_full.wait()
            await anyio.sleep(paused + 1.5 * api_server.READ_S - time.monotonic())
            assert server.server_state.connections


def read(line: socket.socket) -> bool:
    """Take what is there."""
    with contextlib.suppress(BlockingIOError):
        line.recv(2**20)
    return True


async def test_a_connection_has_its_time_again_after_each_answer() -> None:
    ready = anyio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await ready.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    limits = api_server.ConnectionLimits(100, header_timeout_s=30)
    async with serving(slow) as (url, server):
        with asking(url):
            await until(lambda: server.server_state.tasks)
            [connection] = server.server_state.connections
            assert isinstance(connection, api_server.Connection)
            connection.opened_at -= 60
            limits.enforce([connection])
            ready.set()
            await until(lambda: server.server_state.total_requests == 1)
            limits.enforce([connection])
            assert not connection.transport.is_closing()


async def test_a_slow_client_gets_its_complete_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_server, "READ_S", 1.5)
    began = time.monotonic()
    got = 0
    async with serving() as (url, _), await connect_slow(url) as line:
        await line.send(head("GET", "/", "Connection: close"))
        with contextlib.suppress(anyio.EndOfStream):
            while True:
                got += len(await line.receive())
                # At an even pace, until more than the time for one read is over.
                if time.monotonic() - began < 2 * api_server.READ_S:
                    await anyio.sleep(2 * api_server.READ_S * 65536 / LARGE)

    assert got > LARGE


async def connect_slow(url: str) -> anyio.abc.SocketStream:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return await anyio.connect_tcp(parts.hostname, parts.port)
