"""HTTP connections that cannot be held for nothing.

uvicorn waits for the headers of a request as long as the client likes, and for a client to read its
answer. Here a connection without a request is closed after a while, at once when others need its
place; so is one whose client does not read. What uvicorn itself refuses is a problem document too.
Bodies are bounded by `treadle.api.limits`, and discarded by `treadle.api.limits`.
"""

import asyncio
import math
import sys
from typing import Any

import h11
import structlog
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from treadle.api.problems import code_of, problem

log = structlog.get_logger(__name__)

# So much of what waits for a client is read in this time, or the client is given up. Streams and
# files give it up a little earlier, and say which it was.
READ_S = 25.0
READ_BYTES = 64 * 1024


class ConnectionLimits:
    """The connections of a server that wait for a request, those that wait longest first."""

    def __init__(self, most: int, header_timeout_s: float) -> None:
        self.most = most
        self.header_timeout_s = header_timeout_s
        self.waiting: dict[Connection, None] = {}


def connections(limits: ConnectionLimits) -> type["Connection"]:
    """The protocol of a server with these limits."""

    class Bounded(Connection):
        pass

    Bounded.limits = limits
    return Bounded


class Connection(H11Protocol):
    """One connection, with an end to its patience."""

    limits: ConnectionLimits

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._patience: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > self.limits.most:
            # Whoever has waited longest for nothing goes; that may be this one.
            longest = next(iter(self.limits.waiting))
            longest._stop_waiting()
            longest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._patience is None:
            self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch()
            return
        if self.conn.their_state is h11.IDLE:
            # uvicorn's own clock for idle connections runs; the place is free for others.
            self.limits.waiting[self] = None

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        if self._reading is None:
            self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_watching()

    def send_400_response(self, msg: str) -> None:
        """What cannot be understood is answered, if there is still a way, and the line closed."""
        error = sys.exception()
        status = getattr(error, "error_status_hint", 400)
        self._end(problem(status, code_of(status), str(error) if error else msg))

    def _end(self, answer: Response) -> None:
        """Answer in place of the application, if there is still a way, and close the line."""
        state = self.conn.our_state
        if state is h11.SEND_RESPONSE or state is h11.SEND_BODY:
            # The application is at work for the request that broke off.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if state is h11.IDLE or state is h11.SEND_RESPONSE:
            is_head = state is h11.SEND_RESPONSE and self.scope["method"] == "HEAD"
            body = b"" if is_head else bytes(answer.body)
            answer.headers["connection"] = "close"
            head = h11.Response(
                status_code=answer.status_code, headers=answer.raw_headers, reason=b""
            )
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event))
        self.transport.close()
        self._watch()

    def _watch(self, before: float = math.inf) -> None:
        """Give the client up when it reads too little of what waits for it.

        For times when nobody writes: what is left then gets less only by reading.
        """
        self._stop_watching()
        left = self.transport.get_write_buffer_size()
        if left == 0:
            return
        if left > before - READ_BYTES:
            log.warning("http.stuck", after_s=READ_S, bytes=left)
            self.transport.abort()
        else:
            self._reading = self.loop.call_later(READ_S, self._watch, left)

    def _stop_watching(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _wait(self) -> None:
        self.limits.waiting[self] = None
        self._set_patience(self.limits.header_timeout_s)

    def _stop_waiting(self) -> None:
        self.limits.waiting.pop(self, None)
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _set_patience(self, seconds: float) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = self.loop.call_later(seconds, self.transport.abort)
