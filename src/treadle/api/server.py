"""Run the server: uvicorn with our logs and limits, until SIGTERM or SIGINT."""

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import structlog
import uvicorn
from fastapi import FastAPI

from treadle.api.app import make_app
from treadle.api.auth import MAX_HEAD
from treadle.api.connections import Connection, ConnectionLimits, LimitedServer
from treadle.app import Treadle
from treadle.errors import ConfigurationError
from treadle.process import exit_within
from treadle.settings import Settings

log = structlog.get_logger(__name__)
DRAIN_S = 10
# Open files of the process besides the connections of clients.
OTHER_FILES = 64


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
