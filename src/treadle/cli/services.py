"""`treadle reaper`, `treadle promoter` and the like: the background processes."""

from pathlib import Path
from typing import TYPE_CHECKING

from treadle.cli import common

if TYPE_CHECKING:
    from treadle.services.service import Service


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
    from treadle.services.notifier import Notifier, need_a_way

    need_a_way()
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
    from treadle.services.outbound import need_httpx

    need_httpx()
    _serve(Dispatcher, health_file, database_url, settings.connect_timeout_s)


def _serve(
    kind: "type[Service]", health_file: Path | None, database_url: str | None, wait_s: float
) -> None:
    path = common.health_path(health_file)
    with common.database(database_url) as url:
        common.probe(url, within_s=wait_s)
        common.run(_run(kind, url, path), fast=True)


async def _run(kind: "type[Service]", url: str, health_file: Path | None) -> None:
    from treadle.app import Treadle

    app = Treadle(url)
    async with app.service(kind, health_file=health_file, signals=True) as service:
        await service.run()
