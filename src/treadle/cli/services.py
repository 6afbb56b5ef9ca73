"""`treadle server`, `treadle reaper` and the other processes beside the worker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, output
from treadle.cli.common import Process
from treadle.cli.options import with_options
from treadle.cli.output import Column, progress_bar
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


@common.command(json=False)
@with_options(process=common.process_options)
def reaper(process: Process) -> None:
    """Take tasks back from workers that crashed, hang or exceed a timeout.

    \b
    Example:
      treadle reaper --health-file /run/treadle/reaper

    Any number may run; SIGTERM stops it.
    """
    from treadle.services.reaper import Reaper

    _serve(Reaper, process)


@common.command(json=False)
@with_options(process=common.process_options)
def promoter(process: Process) -> None:
    """Make delayed tasks and retries ready when they are due.

    \b
    Example:
      treadle promoter --health-file /run/treadle/promoter

    Any number may run; SIGTERM stops it.
    """
    from treadle.services.promoter import Promoter

    _serve(Promoter, process)


@common.command(json=False)
@with_options(process=common.process_options)
def scheduler(process: Process) -> None:
    """Run schedules when they are due, and triggers when events happen.

    \b
    Example:
      treadle scheduler --health-file /run/treadle/scheduler

    Each time of a schedule is handled once. Any number may run; SIGTERM stops it.
    """
    from treadle.cron import Cron
    from treadle.services.scheduler import Scheduler

    # Fails at once where the extra is missing.
    Cron("@daily")
    _serve(Scheduler, process)


@common.command(json=False)
@with_options(process=common.process_options)
def notifier(process: Process) -> None:
    """Send events to webhooks and Redis streams.

    \b
    Example:
      treadle notifier --health-file /run/treadle/notifier

    Each endpoint gets its events in order. Any number may run; SIGTERM stops it.
    """
    from treadle.services.notifier import Notifier, require_sender

    require_sender()
    _serve(Notifier, process)


@common.command(json=False)
@with_options(process=common.process_options)
def dispatcher(process: Process) -> None:
    """Send the tasks of queue push to agents and follow each to its end.

    \b
    Example:
      treadle agents create coder-1 --url https://coder-1.example.org
      treadle dispatcher --health-file /run/treadle/dispatcher

    The first idle agent gets the next task. Any number may run; SIGTERM stops it.
    """
    from treadle.services.dispatcher import Dispatcher
    from treadle.services.outbound import require_httpx

    require_httpx()
    _serve(Dispatcher, process)


@common.command()
@with_options(process=common.process_options)
def pruner(
    once: Annotated[
        bool, typer.Option("--once", help="Prune all that is due at full speed, and exit.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count the tasks that are due, and exit.")
    ] = False,
    *,
    process: Process,
) -> None:
    """Archive or drop finished tasks that are older than their queues keep them.

    \b
    Examples:
      treadle queues update mail --keep 30d
      treadle pruner --dry-run
      treadle pruner --once
      treadle pruner --health-file /run/treadle/pruner

    Queues without an age keep their tasks. Any number may run; SIGTERM stops it.
    """
    if dry_run:
        output.show(common.call(_due), DUE, empty="no task is older than its queue keeps it")
    elif once:
        done = common.call(_prune_once)
        counts = {"tasks": done.pruned, "kept": done.kept, "events": done.events, **done.rest}
        text = "; ".join(f"{kind}: {count}" for kind, count in counts.items())
        output.print_done(text, **counts, seconds=round(done.seconds, 3))
    else:
        from treadle.services.pruner import Pruner

        _serve(Pruner, process)


async def _due(app: Treadle) -> list[dict[str, Any]]:
    return await app.db.retention.prunable()


async def _prune_once(app: Treadle) -> PruneRound:
    from treadle.services.pruner import Pruner

    total = sum(row["tasks"] for row in await _due(app))
    async with app.service(Pruner) as service:
        assert isinstance(service, Pruner)
        with progress_bar("pruned", total) as update:
            return await service.once(lambda done: update(done.pruned))


def _serve(kind: type[Service], process: Process) -> None:
    with common.database() as url:
        common.probe(url, within_s=process.settings.connect_timeout_s)
        common.run(_run(kind, url, process.health_file), fast=True)


async def _run(kind: type[Service], url: str, health_file: Path | None) -> None:
    from treadle.app import Treadle

    app = Treadle(url)
    async with app.service(kind, health_file=health_file, signals=True) as service:
        await service.run()


@common.command(json=False)
@with_options(process=common.logging_options)
def server(
    host: Annotated[
        str | None, typer.Option(metavar="HOST", help="Address to listen on; default: 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT", min=0, max=65535, help="Port to listen on; default: 8420, 0: any."
        ),
    ] = None,
    *,
    process: Process,
) -> None:
    """Serve the HTTP interfaces: /v1, work API, queue API and harness protocol.

    \b
    Examples:
      treadle server
      treadle server --host 0.0.0.0 --port 8420

    The server logs its address; open it in a browser for the documentation of all operations.
    Addresses other than loopback need a token: treadle tokens create.
    """
    with extra("http", "the server"):
        from treadle.api.server import serve
    settings = process.settings
    with common.database() as url:
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
