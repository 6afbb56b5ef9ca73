"""Structured logs: JSON lines for machines (Loki takes them), colours on a terminal.

An event is a dotted name with fields, never a sentence.
"""

import logging
import sys
from typing import Literal

import structlog

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure_logging(
    log_format: Literal["auto", "json", "console"] = "auto", level: str = "info"
) -> None:
    """Set up structlog for this process; everything goes to stderr."""
    as_json = log_format == "json" or (log_format == "auto" and not sys.stderr.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
        structlog.processors.StackInfoRenderer(),
    ]
    if as_json:
        shared += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        shared += [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    structlog.configure(
        processors=shared,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
