"""Under many concurrent callers the server stays available and small."""

import contextlib
import re
import select
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import httpx2
import psycopg
import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.servers import Serve, Served, served
from tests.drivers.http.sockets import answer, ask, connect, head, is_closed
from tests.drivers.http.tokens import FORGETFUL, bearer, create
from tests.drivers.processes.children import until

PATH = "/nowhere"
JSON = "Content-Type: application/json"


@pytest.fixture(scope="module")
def crowded(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("crowded") / "server.log"
    settings = {"max_connections": 400, "max_requests": 250, "header_timeout_s": 60}
    with new_database() as url, served(url, log, own_interpreter=True, **settings) as server:
        yield server


def memory(server: Served, name: str) -> float:
    """Megabytes of a server process: VmRSS now, VmHWM at the most."""
    text = Path(f"/proc/{server.child.pid}/status").read_text()
    found = re.search(rf"{name}:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) / 1024


@contextlib.contextmanager
def lines(server: Served, count: int, sent: bytes) -> Iterator[list[socket.socket]]:
    """Connections that have sent this, and wait."""
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(count):
            line = stack.enter_context(connect(server.url))
            line.sendall(sent)
            opened.append(line)
        yield opened


@pytest.mark.requirement("B10")
def test_hanging_connections_do_not_stop_others(crowded: Served) -> None:
    with lines(crowded, 300, b"GET /hea") as opened:
        for _ in range(20):
            assert ask_health(crowded) == 200

        # None of them had to be given up for it.
        assert not is_closed(opened[0], 0.01)


def ask_health(server: Served) -> int:
    with connect(server.url) as line:
        line.sendall(head("GET", "/health"))
        return int(line.recv(12)[9:12])


@pytest.mark.requirement("B10")
def test_the_connections_that_were_idle_longest_are_closed_first(crowded: Served) -> None:
    with lines(crowded, 420, b"GET /hea") as opened:
        assert ask_health(crowded) == 200

        # The oldest connections are closed, the newest are not.
        assert [is_closed(line, 5) for line in opened[:10]] == [True] * 10
        assert [is_closed(line, 0.01) for line in opened[-10:]] == [False] * 10


@pytest.mark.requirement("B10")
def test_requests_above_the_limit_get_503_with_retry_after(crowded: Served) -> None:
    slow = head("POST", PATH, JSON, "Content-Length: 10") + b"["
    with lines(crowded, 250, slow) as opened:

        async def full() -> bool:
            return ask(crowded.url, head("GET", "/health")).status == 503

        anyio.run(until, full)
        found = ask(crowded.url, head("GET", "/health"))
        assert found.problem["code"] == "unavailable"
        assert found.headers["retry-after"] == "1"
        assert ask(crowded.url, head("GET", "/healthz")).status == 200
        for line in opened:
            line.sendall(b" " * 8 + b"]")
        assert {answer_status(line) for line in opened} == {404}
    assert ask(crowded.url, head("GET", "/health")).status == 200


def answer_status(line: socket.socket) -> int:
    return int(line.recv(12)[9:12])


@pytest.mark.requirement("B10")
def test_large_bodies_share_a_room_and_small_ones_need_none(crowded: Served) -> None:
    most = 2 * 2**20
    held = head("POST", PATH, JSON, f"Content-Length: {most}") + b" " * (most - 1)
    large = b"[" + b" " * 2**20 + b"]"

    def post(body: bytes) -> int:
        return ask(
            crowded.url, head("POST", PATH, JSON, f"Content-Length: {len(body)}") + body
        ).status

    with lines(crowded, 24, held) as opened:
        # 48 MiB do not fit: some are rejected, the others wait for their last byte.
        told, _, _ = select.select(opened, [], [], 10)
        found = answer(told[0])
        assert (found.status, found.headers["retry-after"]) == (503, "1")
        assert found.problem["detail"] == "the server has no room for more large bodies"
        assert post(b"[1]") == 404
    anyio.run(until, lambda: post(large) == 404)


@pytest.mark.requirement("B10")
def test_the_memory_of_the_server_stays_bounded_under_bad_requests(crowded: Served) -> None:
    most = 2 * 2**20
    wide = b"[" + b"[]," * 33_000 * 20 + b"[]]"
    bodies = {
        "declared": head("POST", PATH, JSON, f"Content-Length: {100 * 2**20}") + b" " * 2**20,
        "chunked": head("POST", PATH, JSON, "Transfer-Encoding: chunked")
        + (b"100000\r\n" + b" " * 2**20 + b"\r\n") * 5,
        "deep": head("POST", PATH, JSON, f"Content-Length: {most}") + b"[" * most,
        "wide": head("POST", PATH, JSON, f"Content-Length: {len(wide)}") + wide,
        "strings": head("POST", PATH, JSON, f"Content-Length: {most}") + b'"' * most,
        # All but the last byte: the server keeps what it has until the time is over.
        "held": head("POST", PATH, JSON, f"Content-Length: {most}") + b" " * (most - 1),
        "headers": head("GET", "/", *[f"X-{n}: {'a' * 1000}" for n in range(500)]),
    }

    def throw(what: str) -> None:
        # Clients that wait to the end leave no work behind that others would wait for.
        within = 2 if what == "held" else 60
        with contextlib.suppress(OSError), connect(crowded.url, within) as line:
            line.sendall(bodies[what])
            with contextlib.suppress(AssertionError):
                answer(line)

    with ThreadPoolExecutor(60) as pool:
        list(pool.map(throw, [what for _ in range(30) for what in bodies]))

    assert ask_health(crowded) == 200
    assert memory(crowded, "VmHWM") < 200
    assert "Traceback" not in crowded.child.log.read_text()


@pytest.mark.requirement("B10")
def test_a_caller_above_its_rate_limit_gets_retry_after(
    new_database: NewDatabase, serve: Serve
) -> None:
    with new_database() as url, psycopg.connect(url, autocommit=True) as sql:
        tokens = [create(sql, name) for name in ("hasty", "calm")]
        server = serve(database_url=url, rate_per_s=5)
        with httpx2.Client(base_url=server.url, timeout=30) as client:
            found = [client.get(PATH, headers=bearer(tokens[0])) for _ in range(60)]

            assert {each.status_code for each in found} == {404, 429}
            assert [each.status_code for each in found[:8]] == [404] * 8
            refused = next(each for each in found if each.status_code == 429)
            assert refused.headers["retry-after"] == "1"
            assert refused.json()["code"] == "too-many-requests"
            assert 0 < refused.json()["retry_after_s"] <= 1
            # Other tokens are not limited; callers without a token are.
            assert client.get(PATH, headers=bearer(tokens[1])).status_code == 404
            nobody = [client.get(PATH).status_code for _ in range(60)]
            assert set(nobody) == {401, 429}
            # One more is let in every 0.2 s: that may have been this one.
            anyio.run(until, lambda: client.get("/health").status_code == 429)
            assert client.get("/healthz").status_code == 200
            assert client.get(PATH, headers=bearer(tokens[1])).status_code == 404


@pytest.mark.requirement("B10")
def test_a_stream_ends_with_its_token(new_database: NewDatabase, serve: Serve) -> None:
    with new_database() as url, psycopg.connect(url, autocommit=True) as sql:
        token = create(sql, "watcher")
        server = serve(database_url=url, constants=FORGETFUL)
        with (
            httpx2.Client(base_url=server.url, timeout=30, headers=bearer(token)) as client,
            client.stream("GET", "/v1/events/stream") as stream,
        ):
            assert stream.status_code == 200
            parts = stream.iter_text()
            sql.execute("select treadle.emit_event('before')")
            seen = ""
            while "before" not in seen:
                seen += next(parts)

            sql.execute("select treadle.revoke_token('watcher')")
            anyio.run(until, lambda: client.get(PATH).status_code == 401)
            sql.execute("select treadle.emit_event('after')")
            rest = ""
            while "after" not in rest and (more := next(parts, "")):
                rest += more

        assert "after" not in rest
