"""Read a stream of server-sent events as a client does."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.drivers.http.servers import Conn

WITHIN_S = 60


@dataclass(frozen=True)
class Block:
    """The lines between two empty lines of a stream."""

    id: str | None
    data: dict[str, Any] | None
    comment: bool


class Stream:
    """An open stream; reads block by block."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._lines = response.iter_lines()
        self.last_id: str | None = None

    def block(self) -> Block:
        fields: dict[str, str] = {}
        for line in self._lines:
            if not line:
                break
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        else:
            raise EOFError
        if "id" in fields:
            self.last_id = fields["id"]
        data = json.loads(fields["data"]) if "data" in fields else None
        return Block(fields.get("id"), data, "" in fields)

    def events(self, count: int) -> list[dict[str, Any]]:
        """The next events of the stream."""
        found: list[dict[str, Any]] = []
        # A stream without events still gets comments from the server.
        until = time.monotonic() + WITHIN_S
        while len(found) < count:
            assert time.monotonic() < until, f"{len(found)} of {count} events came"
            if (data := self.block().data) is not None:
                found.append(data)
        return found

    def rest(self) -> list[dict[str, Any]]:
        """The blocks until the stream ends."""
        found = []
        try:
            while True:
                found += self.events(1)
        except EOFError:
            return found


@contextmanager
def stream(
    url: str, *, last_id: str | None = None, timeout: float = 20, **params: Any
) -> Iterator[Stream]:
    """A stream on a connection of its own; its opening block is read."""
    headers = {} if last_id is None else {"Last-Event-ID": last_id}
    with (
        httpx2.Client(base_url=url, timeout=timeout) as client,
        client.stream("GET", "/v1/events/stream", params=params, headers=headers) as response,
    ):
        assert response.status_code == 200, response.read()
        opened = Stream(response)
        opened.block()
        yield opened


def emit(sql: Conn, *names: str, kind: str = "word.said") -> list[int]:
    """The ids of new events, each in a transaction of its own."""
    found = [
        sql.execute("select treadle.emit_event(%s, '{}', %s)", [kind, name]).fetchone()
        for name in names
    ]
    return [row[0] for row in found if row is not None]
