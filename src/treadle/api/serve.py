"""Run the server: uvicorn on our event loop, with our logs, until a signal."""

import socket

import structlog
import uvicorn

from treadle.api.app import make_app
from treadle.app import Treadle

log = structlog.get_logger(__name__)
DRAIN_S = 10


class _Server(uvicorn.Server):
    """Says where it listens: with port 0 that is decided late."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for server in self.servers:
            for each in server.sockets:
                host, port, *_ = each.getsockname()
                log.info("server.started", url=f"http://{host}:{port}")


async def serve(treadle: Treadle, *, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT; requests under way are waited for a while."""
    config = uvicorn.Config(
        make_app(treadle),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        # Behind a proxy people say so; nobody else decides who called.
        proxy_headers=False,
        lifespan="on",
        timeout_graceful_shutdown=DRAIN_S,
    )
    await _Server(config).serve()
    log.info("server.stopped")
