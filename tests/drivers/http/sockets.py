"""HTTP over a plain socket: requests that no client library would send."""

import json
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Answer:
    """The response until the server closed the connection or stopped sending."""

    status: int
    headers: dict[str, str]
    body: bytes
    # Whether the server closed the connection after it.
    closed: bool

    @property
    def problem(self) -> Any:
        assert self.headers["content-type"] == "application/problem+json", self
        return json.loads(self.body)


def connect(url: str, within: float = 10) -> socket.socket:
    """A connection to a server."""
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port or 80), timeout=within)


def answer(line: socket.socket) -> Answer:
    """Read one answer, and whether the connection ends with it.

    An answer that does not say so is not followed by an end; that is not waited for.
    """
    data = b""
    while b"\r\n\r\n" not in data:
        more = line.recv(65536)
        assert more, f"closed after {data!r}"
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)
    }
    while len(body) < int(headers.get("content-length", 0)):
        body += line.recv(65536)
    within = 10 if headers.get("connection") == "close" else 0.005
    return Answer(int(first.split()[1]), headers, body, is_closed(line, within))


def is_closed(line: socket.socket, within: float) -> bool:
    """Whether the server closes the connection within this time."""
    line.settimeout(within)
    try:
        return line.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def head(method: str, path: str, *headers: str, host: str = "localhost") -> bytes:
    """The lines before a body."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]
    return "\r\n".join(lines).encode()


def ask(url: str, data: bytes) -> Answer:
    """Send bytes, read an answer."""
    with connect(url) as line:
        line.sendall(data)
        return answer(line)
