"""`treadle server`: the HTTP interfaces."""

from typing import TYPE_CHECKING, Annotated

import typer

from treadle.cli import common
from treadle.errors import extra

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.settings import Settings

Host = Annotated[str | None, typer.Option("--host", help="Address to listen on.")]
Port = Annotated[int | None, typer.Option("--port", min=0, max=65535, help="Port to listen on.")]


def server(
    host: Host = None,
    port: Port = None,
    log_format: common.LogFormat = None,
    log_level: common.LogLevel = None,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Serve the HTTP interfaces: work API, queue API, harness protocol, and /v1.

    \b
    Examples:
      treadle server
      treadle server --host 0.0.0.0 --port 8420    needs a token: treadle token create
    """
    settings = common.process_logs(log_format, log_level)
    with extra("http", "the server"):
        from treadle.api.server import serve
    with common.database(database_url) as url:
        common.probe(url, within_s=settings.connect_timeout_s)
        common.run(
            serve(
                _application(url, settings),
                host=host or settings.host,
                port=settings.port if port is None else port,
            ),
            fast=True,
        )


def _application(url: str, settings: "Settings") -> "Treadle":
    from treadle.app import Treadle

    pool = {"pool_size": settings.server_pool_size}
    application = Treadle(url, settings=settings.model_copy(update=pool))
    application.pool_name = "treadle-server"
    application.statement_timeout_s = settings.server_statement_timeout_s
    return application
