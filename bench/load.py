"""Send HTTP requests at full load: `python -m bench.load`, configured by the variable BENCH.

The client uses plain sockets with keep-alive, in its own process, so that the server is measured.
It reports its CPU usage: near 100%, the client itself was the limit.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlsplit

import uvloop

from bench.common import percentile

# What a flow sends, what it gets back as status and body.
Flow = Generator[bytes, tuple[int, bytes], None]


@dataclass
class Order:
    """The target, the scenario and the duration of a run."""

    url: str
    flow: str
    token: str = ""
    connections: int = 16
    warm_s: float = 0.5
    seconds: float = 3.0
    limit: int = 1
    agents: list[str] = field(default_factory=list)


@dataclass
class Tally:
    """The counts of a run."""

    waits: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    tasks: int = 0
    ended: int = 0
    warm: int = 0

    def clear(self) -> None:
        """Reset the counts after the warm-up."""
        self.warm = len(self.waits)
        self.waits.clear()
        self.statuses.clear()
        self.tasks = 0


class Client(asyncio.Protocol):
    """One connection that sends the next request when the response is complete."""

    def __init__(self, flow: Flow, tally: Tally) -> None:
        self._flow = flow
        self._tally = tally
        self._buffer = b""
        self._sent = 0.0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transport of uvloop is not a subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._send(next(self._flow))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        length = length_of(self._buffer[:head])
        if len(self._buffer) < head + 4 + length:
            return
        status = int(self._buffer[9:12])
        body = self._buffer[head + 4 : head + 4 + length]
        self._buffer = b""
        self._tally.waits.append(time.perf_counter() - self._sent)
        self._tally.statuses[status] += 1
        try:
            self._send(self._flow.send((status, body)))
        except StopIteration:
            self._tally.ended += 1

    def _send(self, request: bytes) -> None:
        assert self._transport is not None
        self._sent = time.perf_counter()
        self._transport.write(request)


def length_of(head: bytes) -> int:
    """The length of a body, from the headers in front of it."""
    place = head.lower().find(b"\r\ncontent-length:")
    return 0 if place < 0 else int(head[place + 17 :].split(b"\r\n", 1)[0])


class Flows:
    """The requests of each scenario."""

    def __init__(self, order: Order, tally: Tally) -> None:
        self._order = order
        self._tally = tally
        self._agents = itertools.cycle(order.agents)
        host = urlsplit(order.url).netloc
        bearer = f"Authorization: Bearer {order.token}\r\n" if order.token else ""
        self._head = f"Host: {host}\r\n{bearer}Accept: application/json\r\n"

    def get(self, path: str) -> bytes:
        return f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode()

    def post(self, path: str, body: object) -> bytes:
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\n{self._head}Content-Type: application/json\r\n"
        return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data

    def look(self) -> Flow:
        """Send GET / repeatedly."""
        request = self.get("/")
        while True:
            yield request

    def keep(self) -> Flow:
        """Send POST / repeatedly."""
        request = self.post("/", {"type": "noop", "spec": {"i": 1}})
        while True:
            yield request

    def enqueue(self) -> Flow:
        """Enqueue one task after the other."""
        number = 0
        while True:
            number += 1
            status, _ = yield self.post("/v1/tasks", {"type": "noop", "spec": {"i": number}})
            self._tally.tasks += status == 201

    def work(self) -> Flow:
        """Claim one task, complete it."""
        claim = self.post("/v1/claims", {"agent": next(self._agents), "limit": 1})
        while True:
            status, body = yield claim
            if status != 200:
                return
            [task] = json.loads(body)["claims"]
            path = f"/v1/claims/{task['id']}/complete"
            status, _ = yield self.post(path, {"token": task["token"], "output": {"ok": True}})
            self._tally.tasks += status == 200

    def batches(self) -> Flow:
        """Claim many tasks, complete them together."""
        order = {"agent": next(self._agents), "limit": self._order.limit}
        claim = self.post("/v1/claims", order)
        while True:
            status, body = yield claim
            if status != 200:
                return
            tasks = json.loads(body)["claims"]
            ends = [{"id": each["id"], "token": each["token"], "output": 1} for each in tasks]
            status, body = yield self.post("/v1/claims/complete", {"claims": ends})
            done = json.loads(body)["items"] if status == 200 else []
            self._tally.tasks += sum(each["verdict"] == "completed" for each in done)


async def send(order: Order) -> dict[str, Any]:
    """Open the connections, warm up, then count."""
    tally = Tally()
    flows = Flows(order, tally)
    start: Callable[[], Flow] = getattr(flows, order.flow)
    target = urlsplit(order.url)
    loop = asyncio.get_running_loop()
    for _ in range(order.connections):
        await loop.create_connection(
            lambda: Client(start(), tally), str(target.hostname), int(target.port or 80)
        )
    await asyncio.sleep(order.warm_s)
    tally.clear()
    began, used = time.perf_counter(), time.process_time()
    await asyncio.sleep(order.seconds)
    took, used = time.perf_counter() - began, time.process_time() - used
    waits = [wait * 1000 for wait in tally.waits]
    return {
        "requests": len(waits),
        "answers": tally.warm + len(waits),
        "requests_per_s": round(len(waits) / took, 1),
        "tasks_per_s": round(tally.tasks / took, 1),
        "p50_ms": round(percentile(waits, 50), 2) if waits else None,
        "p99_ms": round(percentile(waits, 99), 2) if waits else None,
        "generator_cpu": round(used / took, 2),
        "statuses": dict(tally.statuses),
        "ended": tally.ended,
    }


if __name__ == "__main__":
    answer = uvloop.run(send(Order(**json.loads(os.environ["BENCH"]))))
    print("BENCH " + json.dumps(answer), flush=True)
