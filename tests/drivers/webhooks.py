"""Webhooks through their SQL functions, and an HTTP receiver that can misbehave."""

import base64
import contextlib
import json
import os
import signal
import socket
import ssl
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID, uuid4

from tests.drivers.engine import Driver

HUNDRED_MB = 100 * 1024 * 1024


@dataclass(frozen=True)
class Message:
    """What was posted."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


class Receiver:
    """Listens on a port of this host; `modes` says how a path answers: a status or a word."""

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.modes: dict[str, Any] = {}
        self.headers: dict[str, str] = {}
        self.tries: dict[str, list[Message]] = defaultdict(list)
        self.got: dict[str, list[Message]] = defaultdict(list)
        self.asked: list[str] = []
        self.victims: list[int] = []
        self.let_go = threading.Event()
        self.closing = threading.Event()
        self._server = _Server(("127.0.0.1", port), _handler(self))
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    def ids(self, path: str) -> list[str]:
        return [message.id for message in self.got[f"/{path}"]]

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def __enter__(self) -> "Receiver":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the sender may disconnect at any time


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            receiver.asked.append(self.path)
            self._answer(200)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            message = Message(self.path, headers, body)
            receiver.tries[self.path].append(message)
            mode = receiver.modes.get(self.path.strip("/"), 200)
            if isinstance(mode, int):
                if 200 <= mode < 300:
                    receiver.got[self.path].append(message)
                self._answer(mode)
            else:
                getattr(self, f"_{mode}")(message)

        def _answer(self, status: int, body: bytes = b"thanks") -> None:
            self.send_response(status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _held(self, message: Message) -> None:
            """Accepted when it is let go."""
            receiver.let_go.wait(30)
            receiver.got[self.path].append(message)
            self._answer(200)

        def _hang(self, message: Message) -> None:
            receiver.closing.wait(30)
            self.close_connection = True

        def _drip(self, message: Message) -> None:
            """A header that never ends, byte by byte."""
            self.close_connection = True
            self.wfile.write(b"HTTP/1.1 200 OK\r\nx-long: ")
            with contextlib.suppress(OSError):
                while not receiver.closing.wait(0.05):
                    self.wfile.write(b"x")

        def _headers(self, message: Message) -> None:
            """Headers without an end, as fast as they go."""
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                for number in range(HUNDRED_MB // 1024):
                    self.wfile.write(b"x-%d: %s\r\n" % (number, b"x" * 1000))

        def _flood(self, message: Message) -> None:
            """A hundred megabytes after a refusal."""
            self._pour(500)

        def _generous(self, message: Message) -> None:
            """A hundred megabytes after it was accepted."""
            receiver.got[self.path].append(message)
            self._pour(200)

        def _pour(self, status: int) -> None:
            self.close_connection = True
            self.send_response(status)
            self.send_header("content-length", str(HUNDRED_MB))
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(HUNDRED_MB // 65536):
                    self.wfile.write(b"x" * 65536)

        def _trickle(self, message: Message) -> None:
            """Accepted, with a body that never ends."""
            receiver.got[self.path].append(message)
            self.close_connection = True
            self.send_response(200)
            self.send_header("content-length", "1000000")
            self.end_headers()
            with contextlib.suppress(OSError):
                while not receiver.closing.wait(0.05):
                    self.wfile.write(b"x")

        def _reset(self, message: Message) -> None:
            self.close_connection = True
            linger = b"\1\0\0\0\0\0\0\0"
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()

        def _garbage(self, message: Message) -> None:
            self.close_connection = True
            self.wfile.write(b"\0\1\2 what?\r\n\r\n")

        def _kill(self, message: Message) -> None:
            """Kill the sender after the message arrived and before it gets the response."""
            receiver.got[self.path].append(message)
            receiver.modes[self.path.strip("/")] = 200
            for pid in receiver.victims:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.2)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()


def add(driver: Driver, name: str, url: str, **settings: object) -> str:
    """Create a webhook on this host for the events of these tests."""
    given = {"url": url, "kinds": ["test.*"], "allow_private": True, **settings}
    return str(
        driver.value(
            "select secret from treadle.define_webhook(%s, %s::jsonb)", name, json.dumps(given)
        )
    )


def emit(driver: Driver, *numbers: int, kind: str = "test.counted") -> None:
    for number in numbers:
        driver.rows("select treadle.emit_event(%s, %s::jsonb)", kind, json.dumps({"n": number}))


def hook(driver: Driver, name: str) -> dict[str, object]:
    [found] = driver.records("select * from treadle.webhook_status where name = %s", name)
    return found


def numbers(messages: list[Message]) -> list[int]:
    return [json.loads(message.body)["data"]["n"] for message in messages]


def due(driver: Driver) -> None:
    """The next tries come now."""
    driver.rows("update treadle.webhooks set next_try_at = treadle.clock()")


URL = "https://example.org/hook/s3cr3t-path"


def take(driver: Driver, limit: int = 10) -> tuple[UUID, list[str]]:
    token = uuid4()
    rows = driver.rows("select name from treadle.take_webhooks(%s, %s)", token, limit)
    return token, [name for (name,) in rows]


def read(driver: Driver, name: str, token: UUID, limit: int = 100) -> list[tuple[str, int, int]]:
    """Transaction, id and number of the events that come next."""
    rows = driver.rows(
        "select xid::text, id, document from treadle.read_webhook(%s, %s, %s)", name, token, limit
    )
    return [(xid, event, json.loads(text)["data"]["n"]) for xid, event, text in rows]
