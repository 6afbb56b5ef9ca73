"""A notifier appends events to a real Redis stream, in order, each with its id."""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest

from tests.drivers.processes.children import Conn, Spawn, rows
from tests.drivers.processes.notifiers import SETTINGS, due, emit, until
from treadle.db.webhooks import WebhookTarget
from treadle.services.notifier.redis import redis_sender
from treadle.services.outbound import OutboundPolicy

SERVER = shutil.which("redis-server")
# With TREADLE_TEST_REDIS=required it fails without a server, as in CI.
pytestmark = pytest.mark.skipif(
    SERVER is None and os.environ.get("TREADLE_TEST_REDIS") != "required",
    reason="redis-server is not installed: apt-get install redis-server",
)
PASSWORD = "correct horse"


class RedisServer:
    """A Redis server of this test's own; its data go with it."""

    def __init__(self, folder: Path, tls: str = "") -> None:
        self._folder = folder
        self._tls = tls
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = int(listener.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{self.port}/2"

    def start(self) -> None:
        port = (
            f"--port 0 --tls-port {self.port} {self._tls}" if self._tls else f"--port {self.port}"
        )
        options = f"{port} --bind 127.0.0.1 --appendonly yes --appendfsync always"
        assert SERVER is not None, "redis-server is not installed: apt-get install redis-server"
        self._process = subprocess.Popen(
            [SERVER, *options.split(), "--requirepass", PASSWORD, "--dir", str(self._folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until_s = time.monotonic() + 10
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert time.monotonic() < until_s
            time.sleep(0.05)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def entries(self, stream: str = "events") -> list[dict[str, Any]]:
        from redis import Redis

        with Redis.from_url(self.url, decode_responses=True) as client:
            return [fields for _, fields in client.xrange(stream)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(folder)
    server.start()
    yield server
    server.kill()


async def add(conn: Conn, server: RedisServer, **settings: object) -> None:
    given: dict[str, object] = {"url": server.url, "format": "redis", "stream": "events"}
    given |= {"kinds": ["test.*"], "allow_private": True, **settings}
    await conn.execute("select treadle.define_webhook('feed', %s::jsonb)", (json.dumps(given),))


def numbers(server: RedisServer) -> list[int]:
    return [json.loads(entry["data"])["data"]["n"] for entry in server.entries()]


@pytest.mark.requirement("F23")
async def test_events_come_to_the_stream_in_order_also_over_a_crash_of_redis(
    conn: Conn, spawn: Spawn, server: RedisServer
) -> None:
    await add(conn, server)
    child = spawn("notifier", **SETTINGS)
    await emit(conn, 1, 20)
    await until(lambda: numbers(server) == list(range(1, 21)))

    server.kill()
    await emit(conn, 21, 40)
    await due(conn)
    failed = await child.logged("webhook.failed", within=30, webhook="feed")
    server.start()
    await due(conn)

    await until(lambda: rows(conn, "select from treadle.webhooks where delivered = 40"))
    # What was appended and not answered before the crash may be there twice, under one id.
    entries = server.entries()
    firsts = {entry["id"]: json.loads(entry["data"])["data"]["n"] for entry in entries}
    assert list(firsts.values()) == list(range(1, 41))
    assert {entry["kind"] for entry in entries} == {"test.counted"}
    assert failed["error"].startswith(f"127.0.0.1:{server.port}: ")
    log = child.log.read_text()
    assert PASSWORD not in log
    assert "correct%20horse" not in log


async def test_the_stream_is_trimmed_to_about_its_maximum_length(
    conn: Conn, spawn: Spawn, server: RedisServer
) -> None:
    await add(conn, server, max_length=100)
    spawn("notifier", **SETTINGS)

    await emit(conn, 1, 400)

    await until(lambda: rows(conn, "select from treadle.webhooks where delivered = 400"))
    kept = numbers(server)
    assert 100 <= len(kept) < 300
    assert kept == list(range(401 - len(kept), 401))


@pytest.fixture
def encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisServer]:
    """A server that is feed.example.org, of a certificate that this process believes."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=test", "-addext"]
    command += ["subjectAltName=DNS:feed.example.org", "-keyout", str(key), "-out"]
    subprocess.run([*command, str(certificate)], check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    server = RedisServer(
        tmp_path,
        f"--tls-cert-file {certificate} --tls-key-file {key} --tls-ca-cert-file {certificate}"
        " --tls-auth-clients no",
    )
    server.start()
    yield server
    server.kill()


@pytest.mark.parametrize("host", ["feed.example.org", "other.example.org"])
async def test_the_certificate_of_redis_is_that_of_the_name(
    encrypted: RedisServer, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    async def look(_: Any, port: Any, **__: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(anyio, "getaddrinfo", look)
    login = f":{PASSWORD.replace(' ', '%20')}@"
    url = f"rediss://{login}{host}:{encrypted.port}/2"
    target = WebhookTarget("t", uuid4(), url, "redis", "events", 10, [], True)

    async with redis_sender(target, OutboundPolicy(private=True)) as sender:
        answer = await sender.send("msg_1", "test", "{}")

    if host == "feed.example.org":
        assert answer.error is None
    else:
        assert "certificate verify failed" in str(answer.error)
