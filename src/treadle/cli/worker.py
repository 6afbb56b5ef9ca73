"""`treadle worker`: run the handlers of an application."""

from typing import TYPE_CHECKING, Annotated

import typer

from treadle.cli import common
from treadle.errors import ConfigurationError

if TYPE_CHECKING:
    from treadle.app import Treadle, WorkerSettings


def worker(
    app: Annotated[str, typer.Argument(metavar="MODULE:APP", help="Where the application is.")],
    queues: Annotated[
        str | None, typer.Option(metavar="A,B", help="Queues to serve; else: default.")
    ] = None,
    slots: Annotated[
        int | None, typer.Option(metavar="N", help="Handlers to run at once; else 10.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="ID", help="Name of this worker; made up when absent.")
    ] = None,
    capabilities: Annotated[
        str | None, typer.Option(metavar="X,Y", help="What this worker can do that tasks ask for.")
    ] = None,
    drain_timeout: Annotated[
        float | None,
        typer.Option(metavar="S", help="Grace for running handlers on SIGTERM; else 30."),
    ] = None,
    heartbeat: Annotated[
        float | None,
        typer.Option(metavar="S", help="Sign of life; a lease lasts three of them. Else 30."),
    ] = None,
    claim_ttl: Annotated[
        float | None, typer.Option(metavar="S", help="A claim must start within this; else 60.")
    ] = None,
    health_file: common.HealthFile = None,
    until_empty: Annotated[
        bool, typer.Option("--until-empty", help="Stop when there is nothing left to claim.")
    ] = False,
    log_format: common.LogFormat = None,
    log_level: common.LogLevel = None,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Claim tasks and run their handlers.

    \b
    Example:
      treadle worker my_module:app --queues default,mail --slots 20

    The first SIGTERM or Ctrl-C drains: it claims nothing more, lets handlers finish within the
    grace and gives back the rest. The second cancels them at once.
    """
    settings = common.process_logs(log_format, log_level)
    overrides = _overrides(
        queues=queues,
        slots=slots,
        agent_id=agent,
        capabilities=capabilities,
        drain_s=drain_timeout,
        heartbeat_s=heartbeat,
        claim_ttl_s=claim_ttl,
    )
    overrides["signals"] = True
    overrides["until_empty"] = until_empty
    if (path := common.health_path(health_file)) is not None:
        overrides["health_file"] = path

    from treadle.cli.loader import load_app

    found = load_app(app)
    with common.database(database_url or common.given.database_url or _own_url(found)) as url:
        found.use(url)
        common.probe(url, within_s=settings.connect_timeout_s)
        common.run(_work(found, overrides), fast=True)
    leave_threads()


def leave_threads() -> None:
    """Plain functions that were given up may still run; Python would wait for them at its end."""
    import os
    import sys
    import threading
    import time

    import structlog

    threads = [each for each in threading.enumerate() if each.name == "AnyIO worker thread"]
    until = time.monotonic() + 0.2
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    if left := sum(thread.is_alive() for thread in threads):
        structlog.get_logger(__name__).warning("worker.handlers_left", handlers=left)
        sys.stderr.flush()
        os._exit(0)


async def _work(app: "Treadle", overrides: "WorkerSettings") -> None:
    async with app:
        await app.run_worker(**overrides)


def _overrides(**given: object) -> "WorkerSettings":
    """What was given on the command line, checked like every setting."""
    from treadle.settings import load_settings

    checked = load_settings(**given)
    found = {name: getattr(checked, name) for name, value in given.items() if value is not None}
    if "agent_id" in found:
        found["agent"] = found.pop("agent_id")
    if found.get("queues") == []:
        raise ConfigurationError("no queue is named", hint="For example: --queues default,mail")
    return found  # type: ignore[return-value]


def _own_url(app: "Treadle") -> str | None:
    """The database that the application names itself, or finds in the settings."""
    try:
        return app.url
    except ConfigurationError:
        return None
