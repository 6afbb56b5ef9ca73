"""HTTP connections that cannot be held for nothing.

uvicorn waits for the headers of a request as long as the client likes, and for the rest of a body
that nobody reads. Here a connection without a request is closed after a while, at once when others
need its place, and what uvicorn itself refuses is a problem document too.
"""

import asyncio
import json
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# Time, and what it may send, for a client to read an answer that came before the end of its body.
LINGER_S = 2.0
LINGER_BYTES = 4 * 1024 * 1024


class Crowd:
    """The connections of a server that wait for a request, those that wait longest first."""

    def __init__(self, most: int, header_timeout_s: float) -> None:
        self.most = most
        self.header_timeout_s = header_timeout_s
        self.waiting: dict[Connection, None] = {}


def connections(crowd: Crowd) -> type["Connection"]:
    """The protocol of a server with this crowd."""

    class Bounded(Connection):
        pass

    Bounded.crowd = crowd
    return Bounded


class Connection(H11Protocol):
    """One connection, with an end to its patience."""

    crowd: Crowd

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._patience: asyncio.TimerHandle | None = None
        self._dropped = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > self.crowd.most:
            # Whoever has waited longest for nothing goes; that may be this one.
            longest = next(iter(self.crowd.waiting))
            longest._stop_waiting()
            longest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_answered():
            self._dropped += len(data)
            if self._dropped > LINGER_BYTES:
                self.transport.abort()
                return
        super().data_received(data)
        if self.transport.is_closing() or self._is_answered():
            return
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._patience is None:
            self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self._is_answered():
            # The rest of the body is read and dropped for a moment: closing at once would take
            # the answer away from a client that still sends.
            self._set_patience(LINGER_S)
        elif self.conn.their_state is h11.IDLE:
            # uvicorn's own clock for idle connections runs; the place is free for others.
            self.crowd.waiting[self] = None

    def _is_answered(self) -> bool:
        """Whether the body goes on behind its answer."""
        return self.conn.their_state is h11.SEND_BODY and self.cycle.response_complete

    def send_400_response(self, msg: str) -> None:
        """What cannot be understood is answered, if there is still a way, and the line closed."""
        error = sys.exception()
        status = getattr(error, "error_status_hint", 400)
        if self.conn.our_state is h11.SEND_RESPONSE or self.conn.our_state is h11.SEND_BODY:
            # The application is at work for the request that broke off.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state is h11.IDLE or self.conn.our_state is h11.SEND_RESPONSE:
            self._send_problem(status, str(error) if error else msg)
        self.transport.close()

    def _send_problem(self, status: int, detail: str) -> None:
        code = {431: "request-header-fields-too-large", 501: "not-implemented"}.get(
            status, "bad-request"
        )
        body = json.dumps(
            {
                "type": f"/problems/{code}",
                "title": code.replace("-", " ").capitalize(),
                "status": status,
                "detail": detail,
                "code": code,
            }
        ).encode()
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        answer = h11.Response(status_code=status, headers=headers, reason=b"")
        for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event))

    def _wait(self) -> None:
        self.crowd.waiting[self] = None
        self._set_patience(self.crowd.header_timeout_s)

    def _stop_waiting(self) -> None:
        self.crowd.waiting.pop(self, None)
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _set_patience(self, seconds: float) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = self.loop.call_later(seconds, self.transport.abort)
