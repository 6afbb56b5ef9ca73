"""`treadle server`, `treadle reaper` and the like: the processes beside the worker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.output import Column, bar
from treadle.errors import extra

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.services.pruner import PruneRound
    from treadle.services.service import Service
    from treadle.settings import Settings

DUE = [
    Column("queue", "queue"),
    Column("status", "status", output.state),
    Column("tasks", "tasks", right=True),
    Column("oldest", "oldest", output.ago),
]
Host = Annotated[str | None, typer.Option("--host", help="Address to listen on.")]
Port = Annotated[int | None, typer.Option("--port", min=0, max=65535, help="Port to listen on.")]


def reaper(
    health_file: common.HealthFile = None,
    log_format: common.LogFormat = None,
    log_level: common.LogLevel = None,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Take tasks back from workers that are gone, stuck or too slow.

    \b
    Example:
      treadle reaper --health-file /run/treadle/reaper

    Any number may run; SIGTERM ends it.
    """
    settings = common.process_logs(log_format, log_level)
    from treadle.services.reaper import Reaper

    _serve(Reaper, health_file, database_url, settings.connect_timeout_s)


def promoter(
    health_file: common.HealthFile = None,
    log_format: common.LogFormat = None,
    log_level: common.LogLevel = None,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Make tasks claimable when their time has come.

    \b
    Example:
      treadle promoter --health-file /run/treadle/promoter

    It moves due retries and delayed tasks. Any number may run; SIGTERM ends it.
    """
    settings = common.process_logs(log_format, log_level)
    from treadle.services.promoter import Promoter

    _serve(Promoter, health_file, database_url, settings.connect_timeout_s)


def scheduler(
    health_file: common.HealthFile = None,
    log_format: common.LogFormat = None,
    log_level: common.LogLevel = None,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Make the work of schedules when their time has come, and of triggers.

    \b
    Example:
      treadle scheduler --health-file /run/treadle/scheduler

    Each time of a schedule is dealt with once. Any number may run; SIGTERM ends it.
    """
    settings = common.process_logs(log_format, log_level)
    from treadle.cron import Cron
    from treadle.services.scheduler import Scheduler

    # Says at once where the extra is missing.
    Cron("@daily")
    _serve(Scheduler, health_file, database_url, settings.connect_timeout_s)


def notifier(
    health_file: common.HealthFile = None,
    log_format: common.LogFormat = None,
    log_level: common.LogLevel = None,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Send events to webhooks and Redis streams.

    \b
    Example:
      treadle notifier --health-file /run/treadle/notifier

    Each endpoint gets its events in order. Any number may run; SIGTERM ends it.
    """
    settings = common.process_logs(log_format, log_level)
    from treadle.services.notifier import Notifier, require_sender

    require_sender()
    _serve(Notifier, health_file, database_url, settings.connect_timeout_s)


def dispatcher(
    health_file: common.HealthFile = None,
    log_format: common.LogFormat = None,
    log_level: common.LogLevel = None,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Send the tasks of queue push to agents, and follow each to its end.

    \b
    Example:
      treadle agents add coder-1 --url https://coder-1.example.org
      treadle dispatcher --health-file /run/treadle/dispatcher

    The first idle agent gets the next task. Any number may run; SIGTERM ends it.
    """
    settings = common.process_logs(log_format, log_level)
    from treadle.services.dispatcher import Dispatcher
    from treadle.services.outbound import require_httpx

    require_httpx()
    _serve(Dispatcher, health_file, database_url, settings.connect_timeout_s)


def _serve(
    kind: type[Service], health_file: Path | None, database_url: str | None, wait_s: float
) -> None:
    path = common.health_path(health_file)
    with common.database(database_url) as url:
        common.probe(url, within_s=wait_s)
        common.run(_run(kind, url, path), fast=True)


async def _run(kind: type[Service], url: str, health_file: Path | None) -> None:
    from treadle.app import Treadle

    app = Treadle(url)
    async with app.service(kind, health_file=health_file, signals=True) as service:
        await service.run()


def pruner(
    once: Annotated[
        bool, typer.Option("--once", help="Prune all that is due, at full speed, and end.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count the tasks whose time is over.")
    ] = False,
    as_json: common.JsonFlag = False,
    health_file: common.HealthFile = None,
    log_format: common.LogFormat = None,
    log_level: common.LogLevel = None,
    database_url: common.DatabaseUrl = None,
) -> None:
    """Archive or drop finished tasks that are older than their queues keep them.

    \b
    Examples:
      treadle queues define mail --keep 30d
      treadle pruner --dry-run
      treadle pruner --once
      treadle pruner --health-file /run/treadle/pruner

    Nothing goes that no queue has an age for. Any number may run; SIGTERM ends it.
    """
    if dry_run:
        rows = common.call(_due, database_url)
        output.show(rows, DUE, as_json=as_json, empty="no task is older than it is kept")
        return
    if once:
        done = common.call(_once, database_url)
        facts = {"tasks": done.pruned, "kept": done.kept, "events": done.events, **done.rest}
        if as_json:
            output.document({**facts, "seconds": round(done.seconds, 3)})
            return
        common.note("; ".join(f"{kind}: {count}" for kind, count in facts.items()))
        return
    settings = common.process_logs(log_format, log_level)
    path = common.health_path(health_file)
    with common.database(database_url) as url:
        common.probe(url, within_s=settings.connect_timeout_s)
        common.run(_serve_pruner(url, path), fast=True)


async def _serve_pruner(url: str, health_file: Path | None) -> None:
    from treadle.app import Treadle
    from treadle.services.pruner import Pruner

    app = Treadle(url)
    async with app.service(Pruner, health_file=health_file, signals=True) as service:
        await service.run()


async def _due(app: Treadle) -> list[dict[str, Any]]:
    return await app.db.retention.prunable()


async def _once(app: Treadle) -> PruneRound:
    from treadle.services.pruner import Pruner

    total = sum(row["tasks"] for row in await _due(app))
    async with app.service(Pruner) as service:
        assert isinstance(service, Pruner)
        with bar("pruned", total) as tell:
            return await service.once(lambda done: tell(done.pruned))


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


def _application(url: str, settings: Settings) -> Treadle:
    from treadle.app import Treadle

    pool = {"pool_size": settings.server_pool_size}
    application = Treadle(url, settings=settings.model_copy(update=pool))
    application.pool_name = "treadle-server"
    application.statement_timeout_s = settings.server_statement_timeout_s
    return application
