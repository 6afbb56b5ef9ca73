"""Run the server: uvicorn on our event loop, with our logs and limits, until a signal."""

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
from treadle.api.protocol import ConnectionLimits, connections
from treadle.app import Treadle
from treadle.errors import ConfigurationError
from treadle.settings import Settings
from treadle.shutdown import exit_within

log = structlog.get_logger(__name__)
DRAIN_S = 10
# Files that the process has besides the connections of clients.
OTHER_FILES = 64


class _Server(uvicorn.Server):
    """Says where it listens: with port 0 that is decided late."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or []:
            host, port, *_ = each.getsockname()
            shown = f"[{host}]" if ":" in host else host
            log.info("server.started", url=f"http://{shown}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Those who wait for something to happen would be waited for.
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
            # The signal was to stop, and that is done: it does not have to kill us too.
            self._captured_signals.clear()


async def serve(treadle: Treadle, *, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT; requests under way are waited for a while."""
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
            # Behind a proxy people say so; nobody else decides who called.
            proxy_headers=False,
            lifespan="on",
            ws="none",
            http=connections(_crowd(treadle.settings)),
            h11_max_incomplete_event_size=MAX_HEAD,
            timeout_graceful_shutdown=DRAIN_S,
        )
        await _Server(config, app).serve(sockets)
    finally:
        for each in sockets:
            each.close()
    log.info("server.stopped")


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets on every address that the host has; nothing is accepted yet."""
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
            hint="Give another --host or --port, or stop what listens there.",
        ) from None
    return bound


async def check_access(treadle: Treadle, host: str, *, local: bool) -> None:
    """Refuse to be reached from elsewhere before there is a token; say who can come in."""
    wanted, live = await treadle.db.tokens.exist()
    if not local and not live:
        raise ConfigurationError(
            f"the server is not opened on {host}: there is no token that callers could use",
            hint="Make one first: treadle token create NAME --scope read",
        )
    if local and not wanted:
        log.warning("server.open", reason="there is no token: whoever is on this host may do all")


def is_local(bound: socket.socket) -> bool:
    """Whether only this host reaches a socket."""
    return ipaddress.ip_address(bound.getsockname()[0]).is_loopback


def _crowd(settings: Settings) -> ConnectionLimits:
    """As many connections as the settings say, and as there may be files."""
    most = settings.max_connections
    with suppress(ImportError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wished = most + OTHER_FILES
        if soft != resource.RLIM_INFINITY and soft < wished:
            soft = wished if hard == resource.RLIM_INFINITY else min(wished, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            most = max(soft - OTHER_FILES, 16)
    return ConnectionLimits(most, settings.header_timeout_s)
