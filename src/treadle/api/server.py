"""Run the server: uvicorn with our logs and limits, until SIGTERM or SIGINT.

uvicorn closes a connection that stays idle after a response. It waits without a limit for a first
request, for the rest of its headers, and for a client that does not read. About a thousand such
connections use up the file descriptors of a process, and new ones are refused (ADR 29). So idle and
stalled connections are closed here, and invalid HTTP is answered with a problem document.
"""

import ipaddress
import socket
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import h11
import structlog
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from treadle.api.app import make_app
from treadle.api.auth import MAX_HEAD
from treadle.api.problems import code_of, problem
from treadle.app import Treadle
from treadle.errors import ConfigurationError
from treadle.process import exit_within
from treadle.settings import Settings

log = structlog.get_logger(__name__)
DRAIN_S = 10
# Open files of the process besides the connections of clients.
OTHER_FILES = 64
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


class _Server(LimitedServer):
    """Logs its address, ends long requests on shutdown, and exits with 0 after a signal."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, limits: ConnectionLimits) -> None:
        super().__init__(config, limits)
        self._app = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or []:
            host, port, *_ = each.getsockname()
            shown = f"[{host}]" if ":" in host else host
            url = f"http://{shown}:{port}"
            log.info("server.started", url=url, docs=f"{url}/docs")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn would wait for long polls and streams.
        self._app.state.stopping.set()
        self._app.state.refusals.stop()
        self._app.state.feed.end()
        self._app.state.long_poll.close()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            exit_within(DRAIN_S)
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        with super().capture_signals():
            yield
            # uvicorn would raise the signal again after the shutdown.
            self._captured_signals.clear()


async def serve(treadle: Treadle, *, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT, then give running requests time to finish."""
    sockets = bind(host, port)
    try:
        local = all(is_local(each) for each in sockets)
        async with treadle:
            await check_access(treadle, host, local=local)
        app = make_app(treadle, local=local, hosts=[host])
        config = uvicorn.Config(
            app,
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            # Callers must not choose their address with X-Forwarded-For.
            proxy_headers=False,
            lifespan="on",
            ws="none",
            http=Connection,
            h11_max_incomplete_event_size=MAX_HEAD,
            timeout_graceful_shutdown=DRAIN_S,
        )
        await _Server(config, app, _connection_limits(treadle.settings)).serve(sockets)
    finally:
        for each in sockets:
            each.close()
    log.info("server.stopped")


def bind(host: str, port: int) -> list[socket.socket]:
    """Bind sockets to every address of the host, without accepting connections yet."""
    bound: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in dict.fromkeys(found):
            each = socket.socket(family, kind, protocol)
            bound.append(each)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            each.bind(address)
            each.setblocking(False)
    except OSError as error:
        for each in bound:
            each.close()
        raise ConfigurationError(
            f"cannot listen on {host} port {port}: {error.strerror}",
            hint="Use another --host or --port, or stop the process that listens there.",
        ) from None
    return bound


async def check_access(treadle: Treadle, host: str, *, local: bool) -> None:
    """Refuse to serve other hosts without a token; warn when no token is needed."""
    wanted, live = await treadle.db.tokens.exist()
    if not local and not live:
        raise ConfigurationError(
            f"the server does not start on {host}: there is no valid token",
            hint="Create one first: treadle tokens create NAME --scope read",
        )
    if local and not wanted:
        log.warning(
            "server.token_not_required", reason="no tokens exist: any local user has admin access"
        )


def is_local(bound: socket.socket) -> bool:
    """Whether only this host can reach a socket."""
    return ipaddress.ip_address(bound.getsockname()[0]).is_loopback


def _connection_limits(settings: Settings) -> ConnectionLimits:
    """The limits of the settings; the process may open twice as many files, for bursts."""
    most = settings.max_connections
    with suppress(ImportError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 2 * most + OTHER_FILES
        if soft != resource.RLIM_INFINITY and soft < wanted:
            soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            most = max((soft - OTHER_FILES) // 2, 16)
    return ConnectionLimits(most, settings.header_timeout_s)
