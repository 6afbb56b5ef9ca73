"""Close idle and stalled connections, and answer invalid HTTP with a problem document.

uvicorn closes a connection that stays idle after a response. It waits without a limit for a first
request, for the rest of its headers, and for a client that does not read. About a thousand such
connections use up the file descriptors of a process, and new ones are refused (ADR 29).
"""

import sys
import time
from collections.abc import Collection
from typing import Any

import h11
import structlog
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from treadle.api.problems import code_of, problem

log = structlog.get_logger(__name__)

# A client must read this much of a waiting response within this time. Streams and files have a
# shorter timeout of their own.
READ_S = 25.0
READ_BYTES = 64 * 1024
# What a connection waits for; while it stays the same, there was no progress.
State = tuple[str, object]
NO_REQUEST_YET: State = ("request", None)


class Connection(H11Protocol):
    """A connection of uvicorn whose own errors are problem documents."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.opened_at = time.monotonic()

    def send_400_response(self, msg: str) -> None:
        """Answer input that h11 rejects, unless a response has begun, and close the connection."""
        error = sys.exception()
        status = getattr(error, "error_status_hint", 400)
        answer = problem(
            status, code_of(status), str(error or msg), headers={"connection": "close"}
        )
        state = self.conn.our_state
        if self.cycle is not None:
            # The application may still be working on the request whose body is broken.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if state in (h11.IDLE, h11.SEND_RESPONSE):
            is_head = state is h11.SEND_RESPONSE and self.scope["method"] == "HEAD"
            body = b"" if is_head else bytes(answer.body)
            begin = h11.Response(status_code=status, headers=answer.raw_headers, reason=b"")
            for event in (begin, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event))
        self.transport.close()


class ConnectionLimits:
    """Closes idle connections above `most`, and those that stay idle or stalled too long."""

    def __init__(self, most: int, header_timeout_s: float) -> None:
        self.most = most
        self._timeouts = {"request": header_timeout_s, "read": READ_S}
        self._since: dict[Connection, tuple[State, float]] = {}

    def enforce(self, connections: Collection[Connection]) -> None:
        now = time.monotonic()
        before, self._since = self._since, {}
        for each in connections:
            if state := _state(each):
                began = each.opened_at if state == NO_REQUEST_YET else now
                known, since = before.get(each, (state, began))
                self._since[each] = (state, since if known == state else now)
        waiting = [each for each, ((kind, _), _) in self._since.items() if kind == "request"]
        waiting.sort(key=lambda each: self._since[each][1])
        for each in waiting[: max(len(connections) - self.most, 0)]:
            each.transport.abort()
        for each, ((kind, _), since) in self._since.items():
            if now - since > self._timeouts[kind]:
                if kind == "read":
                    log.warning("connection.stalled", bytes=each.transport.get_write_buffer_size())
                each.transport.abort()


class LimitedServer(uvicorn.Server):
    """A uvicorn server with these limits."""

    def __init__(self, config: uvicorn.Config, limits: ConnectionLimits) -> None:
        super().__init__(config)
        self._limits = limits

    async def on_tick(self, counter: int) -> bool:
        # uvicorn calls this ten times a second.
        connections = [c for c in self.server_state.connections if isinstance(c, Connection)]
        if counter % 10 == 0 or len(connections) > self._limits.most:
            self._limits.enforce(connections)
        return await super().on_tick(counter)


def _state(connection: Connection) -> State | None:
    """What a connection waits for; None while the application works."""
    cycle: RequestResponseCycle | None = connection.cycle
    is_between = cycle is None or cycle.response_complete
    unread = connection.transport.get_write_buffer_size()
    # While the application writes, more is left although the client reads.
    if unread and (is_between or connection.flow.write_paused):
        return "read", unread // READ_BYTES
    return ("request", cycle) if is_between else None
