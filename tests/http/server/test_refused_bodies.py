"""A slow client with a rejected body still gets the response, within a time limit."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.types import Message

from tests.drivers.http.servers import Serve, Served
from tests.drivers.http.sockets import answer, ask, connect, head
from tests.drivers.processes.children import until
from treadle.api import limits
from treadle.api.limits import Refusals
from treadle.api.problems import problem

PATH = "/nowhere"
JSON = "Content-Type: application/json"
BODY = b"[" + b" " * 2**20 + b"]"
PIECE = 64 * 1024
CLIENTS = 60
# Each client takes more than a second to send its body.
PAUSE_S = 0.1


def post_slowly(server: Served, *headers: str) -> int:
    """The status of the answer to a body that is sent to its end before the answer is read."""
    with connect(server.url, 60) as line:
        line.sendall(head("POST", PATH, JSON, f"Content-Length: {len(BODY)}", *headers))
        for start in range(0, len(BODY), PIECE):
            time.sleep(PAUSE_S)
            line.sendall(BODY[start : start + PIECE])
        return answer(line).status


@pytest.mark.requirement("B10")
@pytest.mark.parametrize(
    ("status", "settings"),
    [
        (413, {"max_body_bytes": 100_000}),
        (429, {"rate_per_s": 5}),
        (503, {"max_requests": 5}),
        # Together the bodies are larger than the memory for them.
        (503, {}),
    ],
)
def test_slow_clients_in_parallel_are_answered_and_not_reset(
    serve: Serve, status: int, settings: dict[str, object]
) -> None:
    server = serve(**settings)

    def post(number: int) -> int | str:
        try:
            return post_slowly(server, *(["Connection: close"] if number % 2 else []))
        except OSError as error:
            return repr(error)

    with ThreadPoolExecutor(CLIENTS) as threads:
        found = Counter(threads.map(post, range(CLIENTS)))

    assert set(found) <= {404, status}
    assert found[status] > 0


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("headers", [[], ["Connection: close"]])
def test_the_answer_comes_before_the_end_of_the_body(serve: Serve, headers: list[str]) -> None:
    server = serve(max_body_bytes=100_000)
    length = f"Content-Length: {len(BODY)}"
    with connect(server.url, 60) as line:
        line.sendall(head("POST", PATH, JSON, length, *headers) + BODY[:PIECE])
        first = line.recv(1)
        # The server has answered, and still takes the rest.
        line.sendall(BODY[PIECE:])
        rest = b"".join(iter(lambda: line.recv(65536), b""))

    text = (first + rest).lower()
    assert text.startswith(b"http/1.1 413")
    assert b"\r\nconnection: close\r\n" in text
    assert text.endswith(b"}")


def test_a_small_body_that_is_refused_leaves_the_connection_open(serve: Serve) -> None:
    server = serve(max_body_bytes=1024)
    request = head("POST", PATH, JSON, "Content-Length: 2000") + b" " * 2000
    with connect(server.url) as line:
        for _ in range(2):
            line.sendall(request)
            found = answer(line)
            assert (found.status, found.closed) == (413, False)

    assert "connection" not in found.headers


def test_a_client_that_waits_to_be_asked_for_its_body_is_not_asked(serve: Serve) -> None:
    server = serve(
        max_body_bytes=1024, constants=[(limits, "SMALL_S", 0.3), (limits, "SILENCE_S", 0.3)]
    )
    lines = head("POST", PATH, JSON, "Expect: 100-continue", "Content-Length: 2000")

    found = ask(server.url, lines)

    assert (found.status, found.closed) == (413, True)


class Client:
    """The other side of a request, with a body that never ends."""

    def __init__(self, piece: bytes, pause_s: float) -> None:
        self._piece = piece
        self._pause_s = pause_s
        self.received = 0
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        await asyncio.sleep(self._pause_s)
        self.received += len(self._piece)
        return {"type": "http.request", "body": self._piece, "more_body": True}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def is_answered(self) -> bool:
        return len(self.sent) >= 2

    @property
    def is_closed(self) -> bool:
        return len(self.sent) == 3 and not self.sent[-1].get("more_body")


def refuse(client: Client, served: Refusals) -> Awaitable[None]:
    scope = {"type": "http", "headers": [(b"transfer-encoding", b"chunked")]}
    return served.send(problem(413, "too-large", "no"), scope, client.receive, client.send)


@pytest.mark.requirement("B10")
@pytest.mark.parametrize(
    ("piece", "pause_s", "limit"),
    [
        (b"x", 0.01, {"DRAIN_S": 0.3}),
        (b"x", 60, {"SILENCE_S": 0.3}),
        (b"x" * PIECE, 0, {"DRAIN_BYTES": 10 * PIECE}),
    ],
)
async def test_a_body_without_end_is_left(
    monkeypatch: pytest.MonkeyPatch, piece: bytes, pause_s: float, limit: dict[str, Any]
) -> None:
    for name, value in limit.items():
        monkeypatch.setattr(limits, name, value)
    client = Client(piece, pause_s)

    async with asyncio.timeout(20):
        await refuse(client, Refusals(most=10))

    assert client.is_closed
    assert client.received <= 12 * PIECE


@pytest.mark.requirement("B10")
async def test_only_so_many_bodies_are_discarded_at_once() -> None:
    served = Refusals(most=1)
    first, second = Client(b"x", 60), Client(b"x", 60)
    task = asyncio.ensure_future(refuse(first, served))
    await until(lambda: first.is_answered)

    await refuse(second, served)

    assert second.is_closed
    assert not first.is_closed
    task.cancel()


async def test_shutting_down_ends_the_discarding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SHUTDOWN_S", 0.05)
    monkeypatch.setattr(limits, "SILENCE_S", 60)
    served = Refusals(most=10)
    client = Client(b"x", 60)
    task = asyncio.ensure_future(refuse(client, served))
    await until(lambda: client.is_answered)

    served.stop()

    async with asyncio.timeout(20):
        await task
    assert client.is_closed
