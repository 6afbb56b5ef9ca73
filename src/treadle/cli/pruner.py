"""`treadle pruner`: let finished tasks go once they are older than their queues keep them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common, out
from treadle.cli.out import Column
from treadle.cli.progress import bar

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.services.pruner import Round

DUE = [
    Column("queue", "queue"),
    Column("status", "status", out.state),
    Column("tasks", "tasks", right=True),
    Column("oldest", "oldest", out.ago),
]


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
        out.show(rows, DUE, as_json=as_json, empty="no task is older than it is kept")
        return
    if once:
        done = common.call(_once, database_url)
        facts = {"tasks": done.pruned, "kept": done.kept, "events": done.events, **done.rest}
        if as_json:
            out.document({**facts, "seconds": round(done.seconds, 3)})
            return
        common.note("; ".join(f"{kind}: {count}" for kind, count in facts.items()))
        return
    settings = common.process_logs(log_format, log_level)
    path = common.health_path(health_file)
    with common.database(database_url) as url:
        common.probe(url, within_s=settings.connect_timeout_s)
        common.run(_serve(url, path), fast=True)


async def _serve(url: str, health_file: Path | None) -> None:
    from treadle.app import Treadle
    from treadle.services.pruner import Pruner

    app = Treadle(url)
    async with app.service(Pruner, health_file=health_file, signals=True) as service:
        await service.run()


async def _due(app: Treadle) -> list[dict[str, Any]]:
    return await (await app.reader()).prunable()


async def _once(app: Treadle) -> Round:
    from treadle.services.pruner import Pruner

    total = sum(row["tasks"] for row in await _due(app))
    async with app.service(Pruner) as service:
        assert isinstance(service, Pruner)
        with bar("pruned", total) as tell:
            return await service.once(lambda done: tell(done.pruned))
